# SPDX-License-Identifier: MIT
"""Functions that cannot be recorded go on as they are, and one sentence says why."""

import ctypes
import warnings

import pytest

torch = pytest.importorskip("torch")

from build_tree import build_folder  # noqa: E402

import program  # noqa: E402
from ftn_pytorch import __version__, recorded  # noqa: E402
from ftn_pytorch.recording import comparison  # noqa: E402
from ftn_pytorch.system import extension  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

X = torch.arange(6.0).reshape(2, 3)
CALLS = 12


pytestmark = pytest.mark.usefixtures("extension")


def item(x):
    return x * x.sum().item()


def test_what_is_said():
    """Where scripts are refused, the corpus has the texts."""
    apply = recorded(item)
    with pytest.warns(FtnPytorchWarning) as caught:
        results = [apply(X + call) for call in range(CALLS)]
    (text,) = [str(each.message) for each in caught if issubclass(each.category, FtnPytorchWarning)]
    assert text.startswith("item is not recorded: test_recorded_refused.py:") and apply.recording.obstacle in text
    assert not apply.recording.is_ready and all(torch.equal(each, item(X + call)) for call, each in enumerate(results))


@torch.library.custom_op("recorded_refused::untold", mutates_args=())
def untold(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


held = torch.zeros(3)


@pytest.mark.filterwarnings("ignore:.*is not recorded yet")
@pytest.mark.parametrize("function", [lambda x: untold(x), lambda x: untold(held) + x], ids=["argument", "name"])
def test_what_an_operator_writes_and_does_not_tell_is_written_once(function):
    apply = recorded(function)
    for call in range(CALLS):
        held.zero_()
        x = torch.zeros(3)
        assert torch.equal(apply(x), torch.full((3,), 2.0)), call
        assert x.sum() + held.sum() == 3, call
    assert not apply.recording.is_ready


def test_a_tolerance_lets_small_differences_pass():
    noise = iter([0.0] * 4 + [1e-7] * 100)

    def step(x):
        return x * torch.tensor(1 + next(noise), dtype=torch.float64)

    x = torch.ones(3, dtype=torch.float64)
    loose = recorded(step, tolerance=1e-5, ignore=["noise"])
    for _ in range(12):
        loose(x)
    assert loose.recording.is_ready


def test_an_operator_that_adds_up_in_no_fixed_order(monkeypatch):
    """Played: what others write makes the difference, and each time that the recording is made again gives another."""
    copies, times = comparison.copies_of, iter(range(1000))

    def step(x):
        doubled, same = x * 2, x + 0
        ctypes.memmove(doubled.data_ptr(), same.data_ptr(), 8)
        return x * doubled

    monkeypatch.setattr(comparison, "copies_of", lambda result: [each + 1e-3 * next(times) for each in copies(result)])
    apply = recorded(step)
    with pytest.warns(
        FtnPytorchWarning, match=r"(mul|add).Tensor \(.*:\d+\) gives other numbers each time .*tolerance="
    ):
        for call in range(CALLS):
            apply(torch.full((2,), float(call)))


def test_memory_that_nobody_has_written_makes_no_difference(monkeypatch):
    """Played as above: the first operator with numbers is named, and not the one that has made its memory."""
    copies, times = comparison.copies_of, iter(range(1000))

    def step(x):
        room = torch.empty_like(x)
        ctypes.memmove(room.copy_(x).data_ptr(), torch.full_like(x, 3.0).data_ptr(), 4)
        return room * 2

    monkeypatch.setattr(comparison, "copies_of", lambda result: [each + 1e-3 * next(times) for each in copies(result)])
    apply = recorded(step)
    with pytest.warns(FtnPytorchWarning, match=r"is not recorded: aten.copy_ \(.*:\d+\) gives "):
        for call in range(CALLS):
            apply(torch.full((2,), float(call)))


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((3,), "recorded is given a int, which cannot be called"),
        ((len, {"checks": -1}), "must not be negative"),
        ((len, {"tolerance": -1.0}), "must not be negative"),
        ((len, {"ignore": "self.history"}), "ignore='self.history' must be a list of names"),
    ],
)
def test_arguments(fails, arguments, text):
    with fails("ARGUMENT", text):
        recorded(arguments[0], **(arguments[1] if len(arguments) > 1 else {}))


def test_without_the_extension(monkeypatch):
    monkeypatch.setattr(extension._Found, "module", None)
    monkeypatch.setattr(extension._Found, "obstacle", "it is not there")
    apply = recorded(lambda x: x * 2)
    with pytest.warns(FtnPytorchWarning, match="is not recorded: it is not there"):
        for _ in range(CALLS):
            assert torch.equal(apply(X), X * 2)


@pytest.mark.parametrize("is_described", [True, False])
def test_an_extension_for_another_torch(python, tmp_path, is_described):
    """By what is written beside it, before it is opened; by itself where nothing is."""
    for file in (build_folder() / "lib").glob("_ftn_pytorch_recording*"):
        (tmp_path / file.name).symlink_to(file)
    if is_described:
        (tmp_path / "libftn_pytorch_direct.torch").write_text(f"\n2.13.0\n{__version__}\n")
    code = f"""
        import os
        import torch
        torch.__version__ = "2.9.9"
        os.environ["FTN_PYTORCH_EXTENSIONS"] = {str(tmp_path)!r}
        from ftn_pytorch.system import extension as library
        print(library.module(), library.obstacle())
    """
    found = python(code, warm=True)
    assert found.startswith("None") and "was built for torch 2.1" in found and "this is torch 2.9.9" in found
    assert ("cannot be used" in found) is not is_described


def test_an_extension_that_is_missing(monkeypatch, tmp_path):
    from ftn_pytorch.system import installation

    monkeypatch.setattr(extension._Found, "module", None)
    monkeypatch.setattr(extension._Found, "obstacle", None)
    monkeypatch.setattr(installation, "library", lambda: str(tmp_path / "libftn_pytorch.so"))
    assert "is missing: configure the library with -DFTN_PYTORCH_DIRECT=ON" in extension.obstacle()


@pytest.mark.parametrize(
    "text, piece",
    [
        ("import numpy\ndef ftn_pytorch_forward(x): return numpy.add(x, 1)", "uses NumPy, which cannot be recorded"),
    ],
)
def test_record_option(load, fails, text, piece):
    with fails("ARGUMENT", piece):
        load(text, record=True)


TEXT = """
import torch
def ftn_pytorch_forward(x): return x + 2
"""


def test_tolerance_option(load, fails):
    forward = program.function(load(TEXT, record=True, tolerance=1e-6), "ftn_pytorch_forward")
    for _ in range(12):
        assert forward(torch.ones(2)).tolist() == [3, 3]
    assert forward.recording.is_ready, forward.recording.obstacle
    assert forward.recording._tolerance == 1e-6
    with fails("ARGUMENT", "tolerance is 1e-06", "together with record="):
        load(TEXT, tolerance=1e-6)
    for wrong in (-1.0, 1.0, float("nan"), "high"):
        with fails("ARGUMENT", "load(..., tolerance=)", "from 0 to less than 1"):
            load(TEXT, record=True, tolerance=wrong)


def test_record_of_a_saved_model(fails, tmp_path):
    path = str(tmp_path / "net.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(path)
    with fails("ARGUMENT", "is a saved model", "leave out record="):
        program.load_model(path, record=True)


def test_a_hook_is_called_by_its_name(load):
    """What a decorator makes of a network has the name of the decorator's inner function."""
    text = """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x): return x * len(x[x > 0])
        ftn_pytorch_forward = torch.inference_mode()(Net())
    """
    forward = program.function(load(text, record=True), "ftn_pytorch_forward")
    with pytest.warns(FtnPytorchWarning, match="^ftn_pytorch_forward is not recorded: "):
        for _ in range(12):
            forward(torch.ones(2))


def test_a_result_that_no_operator_writes_is_not_what_differs():
    """torch makes memory for gradients of an LSTM that predicts, and writes nothing into it."""
    net = torch.nn.LSTM(3, 4, 2).eval()

    @recorded
    def step(x):
        with torch.no_grad():
            return net(x)[0]

    x = torch.randn(5, 2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [step(x) for _ in range(9)]
    assert all(torch.equal(each, found[0]) for each in found)
    assert "each time that it is given the same" not in step.recording.obstacle
