# SPDX-License-Identifier: MIT
"""Recorded functions against plain Python, bit for bit, where state changes long after the recording was checked.

FTN_PYTORCH_TEST_ATTACK  cases of the product of kinds, places and ways, beside all that were written by hand; without
                         it a choice of both is run
"""

import functools
import os

import pytest

pytest.importorskip("torch")

from recorded_attack import by_hand, crossed, steps  # noqa: E402
from recorded_attack.crossing import KINDS, PLACES, WAYS  # noqa: E402
from recorded_attack.running import VARIED_FROM, change_matters, shows_a_change, verdict  # noqa: E402

SEED = 0
COUNT = int(os.environ.get("FTN_PYTORCH_TEST_ATTACK") or 0)
pytestmark = pytest.mark.usefixtures("extension")

# What a reader who attacked found wrong, and one of each family
CHOSEN = """
a file is read
a thread computes
argument that is a set
as_tensor of numbers
a Guard allows
attribute of a parameter
builtin shadowed later
class of an object is another one
clock
counter in a closure of a decorator
deepcopy of a global
defaults of an optimizer
DLPack of a global
FloatTensor
function with static state
gradients added up over four calls
hook of a parameter later
iterator
itertools.count
itertools.cycle
__kwdefaults__ replaced
last_epoch of a scheduler
layer drop by random
learning rate of SGD
lru_cache
metaclass property
momentum of a batch normalisation
monkeypatched method of a class
name by its text
name of a thread
new_tensor
numpy drawn and not used
numpy generator
numpy noise
operator that fails late, between two steps
os.environ
outside of a Guard
own field of an optimizer of torch
own optimizer, branch, jump
own optimizer, field of a parameter, own change
own optimizer, max, decay
own optimizer, rate, jump
own optimizer, round, warm-up
parametrization registered later
pickle of an argument
random drawn and not used
result is a global
rows of a Replay
samples of a growing Replay
saved_tensors_hooks around later
scheduler inside
shared memory of numpy, by numpy()
shared memory written in the step
state of the generator put back
torch.load of memory
torch.tensor of an argument that changes late
torch.tensor of two numbers of tensors
value of an enum
write into a view of a global
"""

# What docs/recording.md says is not seen: packages that are patched or switched, texts of tensors, locks and loggers,
# objects that live as long as the recording
UNSEEN = """
abstract class that is registered later
attribute set on torch
builtins changed
dead weak reference
decimal context
event of a thread
flags of a backend
forward of a class of torch replaced
lock
logging level
monkeypatched math
monkeypatched torch
numpy settings
precision of matrix products
print options
repr of a tensor
warnings filter
"""


def name_of(case: tuple[str, str]) -> str:
    return f"{case[0]}-{case[1]}"


def chosen() -> list[tuple[str, str]]:
    """Each with inputs that vary from the first call on, or late, in turn."""
    names = [*filter(None, CHOSEN.splitlines()), *crossed(30, SEED)]
    return [(name, list(VARIED_FROM)[place % 2]) for place, name in enumerate(names)]


def everything() -> list[tuple[str, str]]:
    names = [name for name in (*by_hand(), *crossed(COUNT, SEED)) if name not in UNSEEN.splitlines()]
    return [(name, varied) for name in names for varied in VARIED_FROM] if COUNT else []


@functools.cache
def texts() -> dict[str, str]:
    return {**by_hand(), **crossed(max(30, COUNT), SEED)}


@pytest.mark.parametrize("case", chosen(), ids=name_of)
def test_chosen(case):
    name, varied = case
    kind, why, _ = verdict(texts()[name], varied)
    assert kind != "WRONG", f"{why}\n{texts()[name]}"


@pytest.mark.parametrize("name", steps())
def test_no_step_is_made_too_often(name):
    text = steps()[name]
    kind, why, _ = verdict(text, calls=10)
    assert kind != "WRONG", f"{why}\n{text}"
    assert kind == "refused" or not name.endswith("refused")


@pytest.mark.slow
@pytest.mark.skipif(not COUNT, reason="FTN_PYTORCH_TEST_ATTACK says how many; `make stress` sets it")
@pytest.mark.parametrize("case", everything(), ids=name_of)
def test_all(case):
    name, varied = case
    kind, why, _ = verdict(texts()[name], varied)
    assert kind != "WRONG", f"{why}\n{texts()[name]}"


@pytest.mark.slow
@pytest.mark.skipif(not COUNT, reason="FTN_PYTORCH_TEST_ATTACK says how many; `make stress` sets it")
@pytest.mark.parametrize("name", [*by_hand(), *crossed(COUNT, SEED)] if COUNT else [])
def test_each_change_shows(name):
    """A case whose change shows nowhere could not fail."""
    assert not shows_a_change(texts()[name]) or change_matters(texts()[name]), texts()[name]


def test_what_is_not_seen_is_a_case():
    assert set(filter(None, UNSEEN.splitlines())) <= by_hand().keys()


def test_the_same_cases_for_the_same_seed():
    assert crossed(50, 3) == crossed(50, 3) != crossed(50, 4)
    text = "\n".join(crossed(3000, SEED))
    assert all(f"{kind}, " in text for kind in KINDS)
    assert all(f", {place}, " in text for place in PLACES) and all(f", {way}, " in text for way in WAYS)


def test_what_is_wrong_is_seen():
    """A recorder that keeps the first result, or a counter, is found out."""

    def first(function):
        kept = []

        @functools.wraps(function)
        def call(*args):
            if not kept:
                kept.append(function(*args))
            return kept[0]

        call.recording = type("Recording", (), {"is_ready": True, "obstacle": ""})
        return call

    result = "@recorded\ndef step(x): return x * 2\ndef change(): pass"
    counter = "calls = [0]\n@recorded\ndef step(x):\n    calls[0] += 1\n    return None\ndef change(): pass"
    gradient = (
        "w = torch.ones(3, requires_grad=True)\n@recorded\n"
        "def step(x):\n    (x * w).sum().backward()\ndef change(): pass"
    )
    for text, what in ((result, "result"), (counter, "state.calls"), (gradient, "state.w")):
        kind, why, _ = verdict(text, record=first)
        assert kind == "WRONG" and why.startswith(f"call 1: {what}"), why
        assert verdict(text)[0] != "WRONG"
