# SPDX-License-Identifier: MIT
"""Numbers, counters and lists of a recorded function, where the source that tells about them is not as usual. The
corpus has the scripts (counts_and_numbers.txt, schedules_in_steps.txt)."""

import importlib.util
import itertools
import sys

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import footprints  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402
from ftn_pytorch.tensors import device  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions do not tell their places"),
]

COUNTS = """
calls = 0
def step(x):
    global calls
    calls += 1
    return x * (2 if calls % 10 == 0 else 1)
"""
PRINTS = """
calls = 0
def step(x):
    global calls
    calls += 1
    y = x * 2
    if calls % 10 == 0: print("step", calls, y.sum().item())
    return y
"""
CALLS = 90
_names = itertools.count()


@pytest.fixture
def script(tmp_path):
    """Imports a text as a module of a file."""

    def script(text):
        name = f"numbers_{next(_names)}"
        spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
        (tmp_path / f"{name}.py").write_text(text)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    yield script
    for name in [each for each in sys.modules if each.startswith("numbers_")]:
        del sys.modules[name]


def numbers(module, calls=CALLS):
    """What a recorded step gives, and the step."""
    step = recorded(module.step)
    return [step(torch.full((2,), float(call))).tolist() for call in range(calls)], step.recording


def plain(text, calls=CALLS):
    space = {}
    exec(text, space)
    return [space["step"](torch.full((2,), float(call))).tolist() for call in range(calls)], space


def test_calls_that_cannot_be_recorded_beside_others(script, capsys):
    expected, space = plain(PRINTS)
    shown = capsys.readouterr().out
    module = script(PRINTS)
    found, recording = numbers(module)
    assert found == expected and capsys.readouterr().out == shown and shown.count("step") == CALLS // 10
    assert recording.is_ready and not recording.obstacle and module.calls == space["calls"] == CALLS


def test_such_calls_are_recorded_again_when_a_binding_changes(script):
    """They are told from others by what these have read."""
    module = script(PRINTS.replace("x * 2", "x * factor") + "factor = 2\n")
    step = recorded(module.step)
    for call in range(120):
        module.factor = 2 if call < 60 else 3
        assert step(torch.ones(2)).tolist() == [module.factor] * 2
    assert step.recording.is_ready and len(step.recording.tapes()) == 2


def test_a_file_that_was_changed_since(script):
    module = script(COUNTS)
    with open(module.__file__, "w") as file:
        file.write(COUNTS.replace("10", "9"))
    with pytest.warns(FtnPytorchWarning, match="it is not known how step uses calls"):
        found, recording = numbers(module)
    assert found == plain(COUNTS)[0] and not recording.is_ready


def test_code_without_a_file():
    space = {"__name__": "numbers_without_a_file"}
    exec(COUNTS, space)
    step = recorded(space["step"])
    with pytest.warns(FtnPytorchWarning, match="it is not known how step uses calls"):
        found = [step(torch.full((2,), float(call))).tolist() for call in range(CALLS)]
    assert found == plain(COUNTS)[0]


def test_two_functions_of_one_line(script):
    """The tree of a function is told by its name and its first line."""
    one = recorded(script("step = lambda x: x.sum().item()\n").step)
    assert [one(torch.full((2,), float(call))) for call in range(20)] == [2.0 * call for call in range(20)]
    assert one.recording.is_ready
    two = recorded(script("other, step = lambda x: x.sum().item() + 1, lambda x: x.sum().item()\n").step)
    with pytest.warns(FtnPytorchWarning, match="a number is taken out of a tensor"):
        assert [two(torch.full((2,), float(call))) for call in range(20)] == [2.0 * call for call in range(20)]


def test_a_debugger_that_looks_on(script):
    module, seen = script(COUNTS), []

    def look(frame, event, argument):
        seen.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(look)
    try:
        with pytest.warns(FtnPytorchWarning, match="a debugger or a measurement of coverage looks on"):
            found, _ = numbers(module)
        assert sys.gettrace() is look
    finally:
        sys.settrace(before)
    assert found == plain(COUNTS)[0] and "step" in seen


def test_a_call_of_too_many_instructions(script, monkeypatch):
    monkeypatch.setattr(footprints, "_MOST", 5)
    with pytest.warns(FtnPytorchWarning, match="too many instructions"):
        found, _ = numbers(script(COUNTS))
    assert found == plain(COUNTS)[0] and sys.gettrace() is None


def test_a_run_that_goes_another_way_has_changed_nothing(script):
    text = """
import torch
state = torch.zeros(2)
def step(x):
    noise = torch.rand(2)
    if (x > 50).any(): raise ValueError(f"{noise.tolist()}")
    state.add_(noise)
    return x + noise
"""

    def run(function):
        torch.manual_seed(1)
        found = []
        for call in range(70):
            try:
                found.append(function(torch.full((2,), float(call % 50 if call % 9 else 99))).tolist())
            except ValueError as failure:
                found.append(str(failure))
        return found, torch.get_rng_state().tolist()

    one, other = script(text), script(text)
    step = recorded(one.step)
    assert run(step) == run(other.step) and one.state.equal(other.state) and step.recording.is_ready


def test_numbers_of_a_function_that_computes_on_a_device():
    """What moves its arguments there stands around it, and hands on what it returns."""
    net, seen = torch.nn.Linear(2, 1), []

    def step(x):
        loss = net(x).square().mean()
        seen.append(loss.item())
        return loss.item()

    apply = recorded(device.on_device(step, "cpu"))
    for call in range(20):
        x = torch.full((3, 2), float(call))
        assert apply(x) == seen[-1] == net(x).square().mean().item()
    assert apply.recording.is_ready and len(seen) == 20


def test_a_count_beside_an_attribute_that_is_no_constant(script):
    module = script("calls = 0\ndef step(x):\n    global calls\n    calls += 1\n    return x.T / calls\n")
    step, x = recorded(module.step), torch.ones(2, 3)
    with pytest.warns(FtnPytorchWarning, match="calls is another one: count in a tensor"):
        found = [step(x) for _ in range(CALLS)]
    assert all(torch.equal(each, x.T / (call + 1)) for call, each in enumerate(found))
