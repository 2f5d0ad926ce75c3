# SPDX-License-Identifier: MIT
"""``export script.py:function --to recording``: a recorded function in place of a training that decides in Python."""

import os

import pytest

from ftn_pytorch import __main__

torch = pytest.importorskip("torch")

from ftn_pytorch.commands import export_recording  # noqa: E402

SCRIPT = """
    import torch
    from ftn_pytorch import recorded
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    steps = 0
    def ftn_pytorch_forward(x): return net(x)
    def ftn_pytorch_train(x, target):
        global steps
        steps += 1
        return refine(x, target)
    @recorded
    def refine(x, target):
        loss = torch.nn.functional.mse_loss(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return steps < 0, loss
"""
OPTIONS = ("--to", "recording", "--input", "8x3", "--output", "net.ftr")
TARGET = ("--target", "8x1")
FORWARD = "ftn_pytorch_forward cannot be called with inputs"


@pytest.fixture
def command(write, tmp_path, monkeypatch, capsys, extension):
    """command(source, *options): exit code, and what was written on both streams."""
    monkeypatch.chdir(tmp_path)
    write("model.py", SCRIPT)

    def command(source, *options):
        code = __main__.main(["export", source, *OPTIONS, *options])
        return code, "".join(capsys.readouterr())

    return command


def test_the_function_trains_the_file(command):
    import ftn_pytorch

    code, told = command("model.py:refine", *TARGET)
    assert code == 0, told
    assert told.count("equal to the script bit for bit") == 4 and "ftn_pytorch_train" in told
    saved = ftn_pytorch.load_recording("net.ftr")
    assert saved.functions() == ["ftn_pytorch_forward", "ftn_pytorch_train"]
    x = torch.ones(5, 3)
    (finished, first), (_, second) = (saved.train(x, torch.zeros(5, 1)) for _ in range(2))
    assert finished is False and second < first


def test_a_training_that_is_not_in_the_file_is_told(command, write):
    code, told = command("model.py")
    assert code == 0 and "ftn_pytorch_train is not in the file, which predicts alone" in told, told
    write("predicts.py", "import torch\ndef ftn_pytorch_forward(x): return 2 * x\n")
    code, told = command("predicts.py", *TARGET)
    assert code == 2 and "predicts.py has no ftn_pytorch_train, which would take what --target names" in told, told


def test_a_file_that_is_not_equal_leaves_the_older_one(command, tmp_path, monkeypatch):
    (tmp_path / "net.ftr").write_text("good")
    before = sorted(os.listdir(tmp_path))
    monkeypatch.setattr(export_recording._Export, "_is_equal", lambda self, part, name, size: size == 1)
    code, told = command("model.py:refine", *TARGET)
    assert code == 1 and "FAILED, the script gives other numbers" in told and "is still the older one" in told
    assert (tmp_path / "net.ftr").read_text() == "good"
    assert sorted(name for name in os.listdir(tmp_path) if name != "__pycache__") == before


@pytest.mark.parametrize(
    "source, options, text",
    [
        ("model.py:nowhere", TARGET, "FTN_PYTORCH_ERR_HOOK"),
        ("model.py:ftn_pytorch_forward", TARGET, "ftn_pytorch_forward of model.py is not recorded"),
        ("model.py:refine", (), "say with --target what refine takes"),
        ("model.py:a.b", TARGET, "take the script itself"),
        ("model.pt", TARGET, "take the script itself"),
    ],
)
def test_what_is_no_such_function(command, source, options, text):
    code, told = command(source, *options)
    assert code == 2 and text in told


@pytest.mark.parametrize(
    "was, becomes, text",
    [
        ("Linear(3, 1)", "Linear(4, 1)", f"{FORWARD} 8x3: RuntimeError: mat1"),
        ("net(x), heating", "nothing(x), heating", "refine cannot be called with inputs 8x3, 8x1: NameError"),
        ("return net(x)", "return net(x.view(8, 3))", f"{FORWARD} 9x3 (for one batch size alone: --batch 8): Runtime"),
    ],
)
def test_what_the_script_raises_is_told_with_the_inputs(command, write, tmp_path, was, becomes, text):
    write("other.py", SCRIPT.replace("target", "heating").replace(was, becomes))
    code, told = command("other.py:refine", *TARGET)
    assert code == 2 and f"export: FTN_PYTORCH_ERR_ARGUMENT: {text}" in told, told
    assert 'other.py", line' in told and "export_recording.py" not in told
    assert not [name for name in os.listdir(tmp_path) if "net" in name]


def test_numbers_that_depend_on_the_gradient_mode_are_told(command, write):
    code, told = command("model.py:refine", *TARGET)
    assert code == 0 and "gradients are off" not in told
    write("asks.py", "import torch\ndef ftn_pytorch_forward(x): return x if torch.is_grad_enabled() else 2 * x\n")
    code, told = command("asks.py")
    assert code == 0 and "bit for bit" in told
    assert told.count("ftn_pytorch_forward: where gradients are off (scope%no_grad, the module ftorch)") == 1


@pytest.mark.parametrize("kind", ["NAdam(", "Adagrad(initial_accumulator_value=0.1, params="])
def test_an_optimizer_begins_as_in_the_script(command, write, kind):
    write("other.py", SCRIPT.replace("SGD(", kind))
    code, told = command("other.py:refine", *TARGET)
    assert code == 0 and "any batch size" in told.partition("ftn_pytorch_train")[2].partition("\n")[0], told


OWN = """
    class Own(torch.optim.Optimizer):
        def __init__(self, parameters, lr): super().__init__(parameters, {"lr": lr})
        @torch.no_grad()
        def step(self):
            for each in self.param_groups[0]["params"]:
                state = self.state[each]
                if not state:
                    state.update(momentum=torch.zeros_like(each), power=torch.ones_like(each))
                state["power"].mul_(0.9)
                state["momentum"].mul_(0.9).add_(each.grad, alpha=0.1)
                each.addcdiv_(state["momentum"], 1 - state["power"], value=-0.1)
    optimizer = Own("""


def test_products_in_the_state_of_an_optimizer_begin_with_one(command, write):
    """Of whatever class, by whatever name."""
    write("other.py", SCRIPT.replace("    optimizer = torch.optim.SGD(", OWN))
    code, told = command("other.py:refine", *TARGET)
    assert code == 0 and "any batch size" in told.partition("ftn_pytorch_train")[2].partition("\n")[0], told


def test_a_first_call_that_goes_another_way_is_in_the_file(command, write):
    """An average begins with a copy of the weights."""
    averaged = SCRIPT.replace("    steps = 0", "    average = torch.optim.swa_utils.AveragedModel(net)\n    steps = 0")
    averaged = averaged.replace("optimizer.step()", "optimizer.step(); average.update_parameters(net)")
    write("other.py", averaged)
    code, told = command("other.py:refine", *TARGET)
    assert code == 0 and "any batch size" in told.partition("ftn_pytorch_train")[2].partition("\n")[0], told
    assert " operators and " in told and "not recorded" not in told


def test_a_first_step_that_no_file_can_make_is_told(command, write, tmp_path):
    write("other.py", SCRIPT.replace("lr=0.1", "lr=0.1, momentum=0.9, dampening=0.3"))
    code, told = command("other.py:refine", *TARGET)
    assert code == 2 and "its first step computes optimizer.state.0.momentum_buffer otherwise" in told, told
    assert not (tmp_path / "net.ftr").exists()
    write("other.py", SCRIPT.replace("lr=0.1", "lr=0.1, momentum=0.9"))
    assert command("other.py:refine", *TARGET)[0] == 0
