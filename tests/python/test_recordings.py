# SPDX-License-Identifier: MIT
"""What cannot be saved says why, and no file is written."""

import os
import types

import pytest

import program
from ftn_pytorch import load_recording, recorded, save_recording
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.halo import Exchange
from ftn_pytorch.system.process import FtnPytorchWarning

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("extension")

net = torch.nn.Linear(3, 2)
other = torch.Generator().manual_seed(3)
scratch = torch.zeros(4, 3)
exchange = Exchange((4, 3), 1)


@recorded
def draws(x):
    return x + torch.rand(x.shape, generator=other)


@recorded
def writes(x):
    scratch.add_(x)
    return net(x)


@recorded
def returns(x):
    return net(x), b"bytes"


@recorded
def takes(x, mode):
    return net(x) * 2 if mode is None else net(x)


@recorded
def exchanges(x):
    return net(exchange(x)[1:-1, 1:-1])


def ready(function, *others):
    for _ in range(8):
        function(torch.ones(4, 3), *others)
    return function


@pytest.mark.parametrize(
    "function, names, reason",
    [
        (draws, {"net": net}, "it draws numbers from a generator of its own"),
        (writes, {"net": net}, r"it changes a tensor of shape \(4, 3\) that no checkpoint keeps"),
        (exchanges, {"net": net}, "it calls the operator ftn_pytorch::exchange_rows"),
        (returns, {"net": net}, "it returns a bytes, which no file holds"),
    ],
)
def test_what_no_file_can_hold(tmp_path, function, names, reason):
    path = str(tmp_path / "net.ftr")
    with pytest.raises(FtnPytorchError, match=f"step cannot be saved: .*{reason}") as failure:
        save_recording(path, {"step": ready(function)}, names)
    assert failure.value.status == "HOOK" and not os.path.exists(path)


def test_numbers_of_an_optimizer_that_no_file_can_name(tmp_path):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @recorded
    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    path = str(tmp_path / "net.ftr")
    ready(step)
    with pytest.raises(FtnPytorchError, match="it uses 'lr' of an optimizer that no name of the script leads to"):
        save_recording(path, {"step": step}, {"net": net})
    optimizer.param_groups[0]["lr"] = 0.0
    with pytest.raises(FtnPytorchError, match="it uses 'lr' of an optimizer, which is 0 now"):
        save_recording(path, {"step": step}, {"net": net, "optimizer": optimizer})
    assert not os.path.exists(path)
    optimizer.param_groups[0]["lr"] = 0.2
    assert save_recording(path, {"step": step}, {"net": net, "optimizer": optimizer})


def test_what_is_not_recorded(tmp_path):
    path = str(tmp_path / "net.ftr")
    with pytest.raises(FtnPytorchError, match="it is not recorded"):
        save_recording(path, {"step": net.forward}, {"net": net})
    with pytest.raises(FtnPytorchError, match="it has not run often enough"):
        save_recording(path, {"step": recorded(lambda x: net(x))}, {"net": net})
    with pytest.raises(FtnPytorchError, match="is given no function"):
        save_recording(path, {})
    assert not os.path.exists(path)


HOOKS = """
import torch
import ftn_pytorch
@ftn_pytorch.recorded
def ftn_pytorch_forward(x):
    return 2 * x
{}
def ftn_pytorch_train(x, target):
    return (2 * x - target).sum()
"""


@pytest.mark.parametrize(
    "decorator, record, why",
    [
        ("", False, "it is not recorded: decorate it with ftn_pytorch.recorded, or load with record=.true."),
        ("@ftn_pytorch.recorded", False, "it has not run often enough"),
        ("", True, "it has not run often enough"),
    ],
)
def test_a_hook_that_is_not_in_the_file_is_told(load, tmp_path, decorator, record, why):
    module, path = load(HOOKS.format(decorator), record=record), str(tmp_path / "net.ftr")
    forward = module.bind("ftn_pytorch_forward", 0)[0]
    for _ in range(8):
        forward(torch.ones(3))
    with pytest.warns(FtnPytorchWarning, match=f"{path} is written without a function: ftn_pytorch_train .*{why}"):
        program.save(module, path)
    assert load_recording(path).functions() == ["ftn_pytorch_forward"]


OF_AN_OBJECT = """
import torch
from ftn_pytorch import recorded
class Trainer:
    def __init__(self):
        self.net = torch.nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.advance = recorded(self.step)
    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.net(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss
trainers = [Trainer()]
"""


def test_what_objects_hold_that_hold_what_is_recorded(load, tmp_path):
    module = types.ModuleType("a_program_of_python")
    exec(OF_AN_OBJECT, vars(module))
    trainer = module.trainers[0]
    path = save_recording(str(tmp_path / "net.ftr"), {"step": ready(trainer.advance)}, vars(module))
    runner = load(OF_AN_OBJECT)
    program.restore(runner, path)
    assert torch.equal(vars(runner._module)["trainers"][0].net.weight, trainer.net.weight)


def test_a_script_without_recordings_says_so(load, tmp_path):
    text = "import torch\nnet = torch.nn.Linear(2, 2)\ndef ftn_pytorch_forward(x): return net(x)\n"
    path = str(tmp_path / "net.ftr")
    with pytest.raises(FtnPytorchError, match="or load with record=.true."):
        load(text, name="plain_net.py").save(path)
    with pytest.raises(FtnPytorchError, match="it has not run often enough"):
        load(text, name="plain_net.py", record=True).save(path)


def test_arguments_may_be_constants(tmp_path):
    path = save_recording(str(tmp_path / "net.ftr"), {"step": ready(takes, None)}, {"net": net})
    saved = load_recording(path)
    assert torch.equal(saved.call("step", torch.ones(4, 3), None), takes(torch.ones(4, 3), None))
    with pytest.raises(FtnPytorchError) as failure:
        saved.call("step", torch.ones(4, 3), "other")
    assert failure.value.status == "ARGUMENT"


@pytest.mark.parametrize("held", ["conj()", "conj().imag"])
def test_tensors_whose_conjugate_or_sign_is_pending(tmp_path, held):
    """Also where a file is compared with the script before it is kept."""
    names = {"held": eval(f"torch.arange(3).mul(1 + 2j).{held}")}
    exec("def step(x): return x * held", names)
    step, x = ready(recorded(names["step"])), torch.ones(4, 3)
    path = save_recording(str(tmp_path / "net.ftr"), {"step": step}, {"held": names["held"]})
    assert torch.equal(load_recording(path).call("step", x), step(x))
