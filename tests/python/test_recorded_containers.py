# SPDX-License-Identifier: MIT
"""What a call is given, returns and leaves in names: nothing is written where a recording has no room, and results are
what the function makes."""

import contextlib
import itertools
import sys

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording.arguments import Call  # noqa: E402
from ftn_pytorch.recording.following import Known  # noqa: E402
from ftn_pytorch.recording.recorded_call import record  # noqa: E402
from ftn_pytorch.system import extension  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")


@pytest.mark.parametrize("count", [0, 1, 3, 300])
def test_a_recording_with_another_number_of_tensors_is_not_run(count):
    def double(x, y):
        return x * y

    given = (torch.ones(2), torch.ones(2))
    _, tape = record(Call(double, given, {}), (), frozenset(), Known())
    others = tuple(torch.ones(2) for _ in range(count))
    replay = extension.module().Replay(others, {}, tape)
    for run in (lambda: replay.run(others, {}), lambda: replay.launch(list(others), [], False)):
        with pytest.raises(ValueError, match=f"a recording of 2 tensors is given {count}"):
            run()


class Pair(tuple):
    pass


@pytest.mark.parametrize("made", [tuple, list, Pair])
def test_results_keep_their_class_and_what_is_one_tensor(made):
    """In plain calls and in runs. A tuple of an own class cannot be recorded, and is returned all the same."""
    factor = torch.ones(3, requires_grad=True)

    def pair(x):
        product = x * factor
        return made((product, product))

    apply = recorded(pair)
    with pytest.warns(FtnPytorchWarning, match="it returns a Pair") if made is Pair else contextlib.nullcontext():
        results = [apply(torch.ones(3)) for _ in range(12)]
    assert all(type(each) is made and each[0] is each[1] for each in results)
    assert made is Pair or not any(each[0].requires_grad for each in results)
    assert apply.recording.is_ready == (made is not Pair)


LOOKS = """
try:
    import absent_part
except ImportError:
    pass
"""


@pytest.mark.parametrize("text", ["import time\n\nSTARTED = time.time()\n", LOOKS], ids=["clock", "absent module"])
def test_a_module_does_once_what_it_does_while_it_is_imported_in_the_call(tmp_path, monkeypatch, text):
    """As it would without a recorder. The library of torch imports modules when it first needs them."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "late_part.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))

    @recorded
    def doubled(x):
        import late_part  # noqa: F401

        return x * 2

    for _ in range(12):
        doubled(torch.ones(3))
        sys.modules.pop("late_part", None)
    assert doubled.recording.is_ready, doubled.recording.obstacle


def test_a_function_that_looks_for_an_absent_module_is_not_recorded():
    @recorded
    def doubled(x):
        with contextlib.suppress(ImportError):
            import absent_part  # noqa: F401
        return x * 2

    with pytest.warns(FtnPytorchWarning, match=r"it looks for a module that is not there \(absent_part\)"):
        for _ in range(12):
            doubled(torch.ones(3))
    assert not doubled.recording.is_ready


@pytest.mark.parametrize("is_switched", [False, True])
def test_attributes_of_a_class_that_a_run_leaves_are_seen_by_all(is_switched):
    """Python keeps what it has read of a class until somebody tells the class that it is another one."""

    class Cell:
        state = torch.zeros(3)
        is_new = True

    class Inner(Cell):
        pass

    def step(x):
        if is_switched:
            Cell.is_new = False
        else:
            Cell.state = x + Inner.state * 0.5
        return x * 2

    found, inner = [], Inner()
    for way in (lambda function: function, recorded):
        apply, Cell.state = way(step), torch.zeros(3)
        for number in range(20):
            Cell.is_new = True
            seen = [Cell.is_new, inner.is_new, Inner.state.tolist()]
            apply(torch.full((3,), float(number)))
            found.append([*seen, Cell.is_new, inner.is_new, Inner.is_new, *(e.state.tolist() for e in (Cell, inner))])
    assert apply.recording.is_ready, apply.recording.obstacle
    assert found[:20] == found[20:]


@pytest.mark.parametrize("is_around", [False, True])
def test_tensors_of_inference_mode_are_such_in_each_call(is_around):
    """What the function returns, and what it leaves in a name, which it is given in the next call."""

    class Cell:
        state = torch.zeros(3)
        calls = itertools.count()

    @torch.inference_mode()
    def function(x):
        next(Cell.calls)
        Cell.state = x + Cell.state * 0.5
        return Cell.state * 2

    apply = recorded(function, ignore=["Cell.calls"])
    for number in range(20):
        with torch.inference_mode(is_around):
            result = apply(torch.full((3,), float(number)))
        assert result.is_inference() and Cell.state.is_inference(), number
        if number == 9:
            begun = next(Cell.calls)
    assert apply.recording.is_ready, apply.recording.obstacle
    assert next(Cell.calls) == begun + 1, "each call is given what a recording holds for"


def test_what_comes_out_of_a_part_in_inference_mode_is_not_recorded():
    class Cell:
        state = torch.zeros(3)

    @recorded
    def function(x):
        with torch.inference_mode():
            Cell.state = x + Cell.state * 0.5
        return x * 2

    with pytest.warns(FtnPytorchWarning, match="enter it around the whole function"):
        for number in range(12):
            result = function(torch.full((3,), float(number)))
            assert Cell.state.is_inference() and not result.is_inference(), number
    assert not function.recording.is_ready


def _whole(x):
    return x * 2 if x.detach().sum() > 10 else x * 3


def _part(x):
    with torch.inference_mode():
        is_large = x.detach().sum() > 10
    return x * 2 if is_large else x * 3


@pytest.mark.parametrize("is_around", [False, True])
@pytest.mark.parametrize("function", [_whole, _part, torch.inference_mode()(_whole)], ids=["whole", "part", "inside"])
def test_numbers_of_tensors_of_inference_mode_decide(function, is_around):
    """torch hands their operators over unsplit: what asks for the number has another name."""
    apply = recorded(function)
    with torch.inference_mode(is_around):
        for number in [*range(3), *range(3), *range(3), *range(20)]:
            x = torch.full((3,), float(number))
            assert torch.equal(apply(x), function(x)), number
    assert apply.recording.is_ready, apply.recording.obstacle
