# SPDX-License-Identifier: MIT
"""A script goes on from the checkpoint of a program without Python as from its own: all of the state, and a step."""

from pathlib import Path

import torch

from ftn_pytorch.opening import open_runner

found = []
for folder in ("closure_by_script", "closure_by_program"):
    runner = open_runner(str(Path(__file__).with_name("recorded_closure.py")), {}, {})
    assert runner.restore(folder) == 20, folder
    names = vars(runner._module)
    states = [*names["net"].state_dict().values(), *names["averaged"], torch.get_rng_state()]
    states += [each for state in names["optimizer"].state.values() for each in state.values()]
    generator = torch.Generator().manual_seed(6)
    x, target = torch.randn(32, 16, generator=generator), torch.randn(32, 4, generator=generator)
    loss = names["ftn_pytorch_train"](x, target)[1]
    found.append([*(each.clone() for each in states), loss])
    found[-1] += [parameter.grad for parameter in names["net"].parameters()]
assert len(found[0]) == len(found[1]) > 25
assert all(torch.equal(one, other) for one, other in zip(*found)), "the states differ"
