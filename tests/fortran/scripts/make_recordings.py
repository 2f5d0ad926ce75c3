# SPDX-License-Identifier: MIT
"""Write a saved recording and what its script computes into the current folder, for test_saved_recording."""

import struct
from pathlib import Path

import torch

from ftn_pytorch.opening import open_runner

ROWS = (32, 7)
STEPS = 20

runner = open_runner(str(Path(__file__).with_name("recorded_closure.py")), {"record": True}, {})
train, forward = (runner.bind(name, 0)[0] for name in ("ftn_pytorch_train", "ftn_pytorch_forward"))
others = {name: runner.find(name) for name in ("moments", "parts", "halve", "shared")}
generator = torch.Generator().manual_seed(5)
x, target = torch.randn(32, 16, generator=generator), torch.randn(32, 4, generator=generator)
for rows in ROWS:
    for _ in range(8):
        train(x[:rows], target[:rows])
        forward(x[:rows])
        others["moments"](x[:rows], 2)
        others["parts"](x[:rows])
        others["halve"](x[:rows].clone())
        both = x[:rows].clone()
        others["shared"](both[:], both[:])  # two tensors over one array
recorded = {"ftn_pytorch_train": train, "ftn_pytorch_forward": forward, **others}
for name, function in recorded.items():
    assert len(function.recording.tapes()) == len(ROWS), f"{name}: {function.recording.obstacle}"
runner.save("closure.ftr")

losses = [train(x[: ROWS[step % 2]], target[: ROWS[step % 2]])[1].item() for step in range(STEPS)]
predicted = forward(x)
mean, spread = others["moments"](x, 2)
with open("closure.bin", "wb") as file:
    for tensor in (x, target):
        file.write(tensor.numpy().tobytes())
    file.write(struct.pack(f"{STEPS}f", *losses))
    for tensor in (predicted, mean, spread):
        file.write(tensor.numpy().tobytes())

# What a program without Python leaves goes on here: the same step twice, from the checkpoint of either.
runner.checkpoint("closure_by_script", 3, STEPS)
