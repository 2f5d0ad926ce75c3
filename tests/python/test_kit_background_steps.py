# SPDX-License-Identifier: MIT
"""What a step may do in a process of its own as in the program: its samples, its workers, its network, its folder."""

import os

import pytest

from ftn_pytorch.errors import FtnPytorchError

torch = pytest.importorskip("torch")

SCRIPT = """
    import os
    import torch

    start = os.getcwd()

    def ftn_pytorch_setup(folder):
        global net, steps, kept
        os.chdir(folder)
        torch.manual_seed(0)
        net, steps, kept = torch.nn.Linear(3, 1), 0, []

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return torch.full((2,), float(i))

    def ftn_pytorch_train(x, target, *, what):
        global steps
        steps += 1
        kept.append(x)
        return False, globals()[what](x, target)

    def first(x, target): return kept[0].sum()
    def second(x, target): return target.sum() if isinstance(target, torch.Tensor) else target
    def count(x, target): return steps
    def odd(x, target): return lambda: 0
    def workers(x, target): return sum(float(x.sum()) for x in torch.utils.data.DataLoader(Samples(), num_workers=1))

    def gradient(x, target):
        x.requires_grad_()
        (x**2).sum().backward()
        return x.grad.sum()

    def assigns(x, target):
        net.load_state_dict({"weight": torch.full((1, 3), 7.0), "bias": torch.zeros(1)}, assign=True)
        return 0.0

    def casts(x, target):
        with torch.no_grad():
            net.double().weight.fill_(8)
        return 0.0

    def submits(x, target):
        from ftn_pytorch.kit import Background
        inner = Background(submits, process=True)
        inner.submit(x, target)
        inner.flush()

    def place(x, target):
        with open("place.txt", "w") as out:
            out.write(start)
        return 0.0

    def ftn_pytorch_forward(x):
        return net(x)
"""


def test_a_step_beside_does_what_it_would_do_here(load, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    runner = load(SCRIPT, {"folder": "folder"}, background=True)
    background, net = runner._background, runner.networks()["net"]

    ones, zeros = torch.ones(2, 3), torch.zeros(2)

    def loss_of(what, x=ones, target=zeros):
        runner.bind("ftn_pytorch_train", 0)[0](x, target, what=what)
        background.flush()
        return background.loss

    def save(name):
        runner.save(str(tmp_path / name))
        return str(tmp_path / name)

    before = save("before")
    assert loss_of("first", torch.ones(2, 3)) == 6
    assert loss_of("first", torch.zeros(2, 3)) == 6, "samples that a step keeps stay as they are"
    assert loss_of("second", target=5) == 5
    assert loss_of("second", target=torch.ones(2)) == 2, "a tensor after a number in the same place"
    assert loss_of("gradient") == loss_of("gradient") == 12, "gradients are not those of the samples before"
    assert loss_of("workers") == 12
    with pytest.raises(FtnPytorchError, match="must be its loss") as failure:
        loss_of("odd")
    assert failure.value.status == "RESULT_TYPE"
    with pytest.raises(FtnPytorchError, match="cannot start another one"):
        loss_of("submits")
    assert loss_of("place") == 0
    assert (folder / "place.txt").read_text() == str(tmp_path), "scripts see the folder in which they were loaded"
    loss_of("assigns")
    assert float(net.weight.detach().sum()) == 21
    loss_of("casts")
    assert float(net.weight.detach().sum()) == 24
    os.chdir(tmp_path)
    runner.restore(before)
    assert float(net.weight.detach().sum()) != 24
    assert loss_of("count") == 1, "a file that was written before the first step"
    background.stop()
    assert loss_of("count") == 1, "a stop ends the process, and the next call begins another one"
    background.stop()


def test_scripts_of_one_name_in_two_folders(load):
    """Workers of a step find the script by its name, also beside one that was loaded before."""
    other = load("def ftn_pytorch_forward(x): return x", name="other/model.py")
    runner = load(SCRIPT, {"folder": "."}, background=True)
    background = runner._background
    runner.bind("ftn_pytorch_train", 0)[0](torch.ones(2, 3), torch.zeros(2), what="workers")
    background.flush()
    assert background.loss == 12 and other.name == "model"
    background.stop()


def test_networks_that_have_swapped_their_names_keep_their_numbers_in_a_restart(load, tmp_path):
    """Each lies in the memory that it had before, whichever name leads to it."""
    text = """
        import torch
        one, other = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)

        def ftn_pytorch_setup():
            with torch.no_grad():
                one.weight.fill_(1)
                other.weight.fill_(10)

        @torch.no_grad()
        def ftn_pytorch_train():
            global one, other
            one, other = other, one
            one.weight.add_(1)
            return False, 100 * one.weight.item() + other.weight.item()
    """

    def losses(place, first, last):
        runner = load(text, background=True)
        if first:
            runner.restore(place)
        found = []
        for _ in range(first, last):
            runner.bind("ftn_pytorch_train", 0)[0]()
            runner._background.flush()
            found.append(runner._background.loss)
        if not first:
            runner.save(place)
            runner._background.stop()
        return found, runner

    place = str(tmp_path / "state")
    before, _ = losses(place, 0, 3)
    after, runner = losses(place, 3, 5)
    assert before + after == [1101, 211, 1202, 312, 1303]
    runner.restore(place)
    runner.bind("ftn_pytorch_train", 0)[0]()
    runner._background.flush()
    assert runner._background.loss == 312, "also in the process that is there"
    runner._background.stop()


ANEW = """
    import numpy
    import torch
    net, sums = torch.nn.Linear(3, 1), numpy.zeros(2)

    def ftn_pytorch_train(x):
        global sums
        sums = sums + x
        return False, float(sums.sum())
"""


def test_a_run_without_goes_on_with_what_was_bound_anew_beside(load, tmp_path):
    one, two = load(ANEW, background=True), load(ANEW)
    one.bind("ftn_pytorch_train", 0)[0](1.5)
    one._background.flush()
    one.save(str(tmp_path / "one"))
    two.restore(str(tmp_path / "one"))
    assert vars(two._module)["sums"].tolist() == [1.5, 1.5], "the file has the array after the load, too"
    one._background.stop()
