# SPDX-License-Identifier: MIT
"""Functions that change the containers they are given, or the memory of a tensor, are refused, and nothing is written
where the recording has no room."""

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch.recording import extension  # noqa: E402
from ftn_pytorch.recording.bindings import Facts  # noqa: E402
from ftn_pytorch.recording.recorded_call import record  # noqa: E402
from recorded_attack.running import verdict  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

NET = "net = nn.Linear(3, 3)\n"
STATE = "{'h': torch.zeros(4, 3), 'inner': {'c': torch.zeros(4, 3)}, 'both': (torch.zeros(4, 3), [])}"
TAKES_STATE = NET + f"def inputs(call, x): return x, {STATE}\n@recorded\ndef step(x, state):\n    "
TAKES_LIST = NET + "def inputs(call, x): return x, [x, x + 1]\n@recorded\ndef step(x, outputs):\n    "

CASES = {
    "list that is filled": (TAKES_LIST, "for k in range(40): outputs.append(x + k)", "outputs"),
    "one more": (TAKES_LIST, "outputs.append(x * 2)", "outputs"),
    "list with one item less": (TAKES_LIST, "return outputs.pop() * 2", "outputs"),
    "item of a list": (TAKES_LIST, "outputs[0] = x * 2", "outputs"),
    "order of a list": (TAKES_LIST, "outputs.reverse()", "outputs"),
    "tensor in a dict": (TAKES_STATE, "state['h'] = net(state['h'] + x).detach()", "state"),
    "tensor in a dict in a dict": (TAKES_STATE, "state['inner']['c'] = state['inner']['c'] + x", "state"),
    "dict in a dict": (TAKES_STATE, "state['inner'] = {'c': state['inner']['c'] + x}", "state"),
    "the same in another dict": (TAKES_STATE, "state['inner'] = dict(state['inner'])", "state"),
    "list in a tuple": (TAKES_STATE, "state['both'][1].append(x * 2)", "state"),
    "new key": (TAKES_STATE, "state['y'] = x * 2", "state"),
    "key that goes": (TAKES_STATE, "return state.pop('h') + x", "state"),
    "order of a dict": (TAKES_STATE, "h = state.pop('h'); state['h'] = h; return h + x", "state"),
    "number": (TAKES_STATE, "state['n'] = state.get('n', 0) + 1; return x * 2", "state"),
    "list of a caller": (
        TAKES_STATE.replace("(x, state)", "(x, state, *more)"),
        "state['both'][1].extend([x])",
        "state",
    ),
    "without a name": (TAKES_STATE.replace("(x, state)", "(*given)"), "given[1]['h'] = given[0] * 2", "dict"),
    "memory of a tensor": (TAKES_STATE, "state['h'].data = state['h'].data + x", "state"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_that_changes_its_containers_is_refused(name):
    head, line, argument = CASES[name]
    kind, why, _ = verdict(f"{head}{line}\ndef change(): pass\n", calls=12)
    what = f"it gives an argument other contents ({argument}): return what is to go there"
    assert (kind, why[: len(what)]) == ("refused", what)


def test_an_argument_that_is_given_other_memory():
    kind, why, _ = verdict("@recorded\ndef step(x): x.data = x * 2\ndef change(): pass\n", calls=12)
    assert kind == "refused" and why.startswith("it gives an argument other memory (x)")


KEEPS_STATE = NET + f"state = {STATE}\n" + TAKES_STATE.replace(NET, "").replace(STATE, "state")
KEPT = {
    "read": (KEEPS_STATE, "return state['h'] + state['inner']['c'] * x"),
    "written in place": (KEEPS_STATE, "state['h'].add_(x); state['inner']['c'].mul_(0.5).add_(state['h'])"),
    "the same put back": (KEEPS_STATE, "state['h'] = state['h'].add_(x)"),
    "a list of its own": (TAKES_LIST, "made = list(outputs); made.append(x * 2); return made"),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_function_that_leaves_them_as_they_are_is_recorded(name):
    head, line = KEPT[name]
    kind, why, is_ready = verdict(f"{head}{line}\ndef change(): pass\n", calls=12)
    assert kind == "recorded" and is_ready, why


@pytest.mark.parametrize("count", [0, 1, 3, 300])
def test_a_recording_with_another_number_of_tensors_is_not_run(count):
    def double(x, y):
        return x * y

    given = (torch.ones(2), torch.ones(2))
    _, tape = record(double, given, {}, (), Facts(), frozenset())
    others = tuple(torch.ones(2) for _ in range(count))
    replay = extension.module().Replay(others, {}, tape)
    for run in (lambda: replay.run(others, {}), lambda: replay.launch(list(others), [], False)):
        with pytest.raises(ValueError, match=f"a recording of 2 tensors is given {count}"):
            run()
