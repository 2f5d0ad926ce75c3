# SPDX-License-Identifier: MIT
"""Promises of the library for the scripts of ``tests/corpus``, against plain Python, bit for bit.

A choice of scripts is run for each promise; the others are slow. FTN_PYTORCH_TEST_SEED makes another choice.
FTN_PYTORCH_TEST_ATTACK is how many scripts of the product of kinds, places and ways are run beside.
"""

import functools
import os
import random
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from promises.asked import PROMISES, verdict  # noqa: E402
from promises.crossing import KINDS, PLACES, PLACES_OF_RESTARTS, TIMES, WAYS, crossed, restarts  # noqa: E402
from promises.fortran_driver import obstacle  # noqa: E402
from promises.plain import Numbers, change_matters, shows_a_change  # noqa: E402
from promises.recorded import recorded  # noqa: E402
from promises.scripts import Script, blocks_of_docs, corpus  # noqa: E402

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("FTN_PYTORCH_TEST_SEED") or 0)
MOST = int(os.environ.get("FTN_PYTORCH_TEST_ATTACK") or 30)
# How many scripts are run for a promise by `make test`
CHOSEN = {"recorded": 90, "recorded-late": 25, "restarted": 30, "saved": 40, "background": 12, "compiled": 2}
CHOSEN |= {"arrays": 16, "sections": 12, "tensors": 12, "ranks": 4, "node": 1, "device": 60, "saved-device": 40}
pytestmark = pytest.mark.usefixtures("extension")


def chosen(promise):
    """Of each file of the corpus one after the other, so that each has its share."""
    numbers = random.Random(f"{SEED} {promise}")
    turns, ranked = {}, []
    for name, script in sorted(corpus().items(), key=lambda each: numbers.random()):
        if script.can_be_asked(promise):
            turns[script.family] = turns.get(script.family, 0) + 1
            ranked.append((turns[script.family], name))
    return {name for _, name in sorted(ranked)[: CHOSEN[promise]]}


def cases():
    for promise in PROMISES:
        quick = chosen(promise)
        for name, script in corpus().items():
            if not script.can_be_asked(promise):
                continue
            marks = () if name in quick else pytest.mark.slow
            yield pytest.param(promise, name, id=f"{promise}-{name}", marks=marks)


@pytest.mark.parametrize(("promise", "name"), [*cases()])
def test_a_promise_is_kept(promise, name):
    script = corpus()[name]
    if script.needs:
        pytest.importorskip(script.needs)
    if why := obstacle(promise):
        pytest.skip(why)
    kind, text = verdict(script, promise)
    wanted = script.verdict_of(promise)
    allowed = {"unseen": ("same", "refused", "wrong"), "either": ("same", "refused")}.get(wanted, (wanted,))
    assert kind in allowed, f"{kind}: {text}\n{script.text}"
    assert kind != "refused" or all(part in text for part in script.says.get(promise, [])), text


@pytest.mark.parametrize("place, name", [*enumerate(crossed(MOST, SEED))])
def test_what_is_recorded_of_the_product(place, name):
    script, varied = product()[name], ("early", "late")[place % 2]
    kind, text = recorded(script, Numbers(script, varied))
    assert kind != "wrong", f"{text}\n{script.text}"


@functools.cache
def product():
    return crossed(MOST, SEED)


@functools.cache
def product_of_restarts():
    return restarts()


def cases_of_restarts():
    quick = random.Random(SEED).sample(sorted(product_of_restarts()), 10)
    for name in product_of_restarts():
        yield pytest.param(name, marks=() if name in quick else pytest.mark.slow)


@pytest.mark.parametrize("name", [*cases_of_restarts()])
def test_what_is_restarted_of_the_product(name):
    script = product_of_restarts()[name]
    kind, text = verdict(script, "restarted")
    assert kind == script.verdict_of("restarted"), f"{kind}: {text}\n{script.text}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*corpus(), *crossed(MOST, SEED)])
def test_each_change_shows(name):
    """A script whose change shows nowhere could not fail."""
    script = {**corpus(), **product()}[name]
    assert not shows_a_change(script) or change_matters(script), script.text


def test_the_same_scripts_for_the_same_seed():
    assert crossed(50, 3) == crossed(50, 3) != crossed(50, 4)
    text = "\n".join(crossed(3000, SEED))
    assert all(f"{kind}, " in text for kind in KINDS)
    assert all(f", {place}, " in text for place in PLACES) and all(f", {way}, " in text for way in WAYS)
    assert restarts(50, 3).keys() == restarts(50, 3).keys() != restarts(50, 4).keys()
    text = "\n".join(product_of_restarts())
    assert all(f"{kind}, " in text for kind in KINDS) and all(f", {time}, " in text for time in TIMES)
    assert all(f", {place}, " in text for place in PLACES_OF_RESTARTS)


def test_all_scripts_of_the_product_are_python():
    for script in restarts(10000, SEED).values():
        compile(script.text, script.name, "exec")


def test_the_corpus_names_promises_that_there_are():
    named = {promise for script in corpus().values() for promise in (*script.expected, *script.says)}
    assert named <= PROMISES.keys()


def test_scripts_of_the_documentation_are_in_the_corpus():
    """But for what needs ranks or a clock, or makes a process of its own, or has no body."""
    texts = "".join(script.text for script in corpus().values() if script.family == "docs")
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for text, calls in blocks_of_docs(str(page.relative_to(ROOT))):
            if re.search("def ftn_pytorch_(?:forward|train)|^@recorded", text, re.MULTILINE) and calls:
                last = text.rstrip().splitlines()[-1]
                assert last in texts or re.search(r"average_gradients|log.timing|Background\(|\.\.\.$", text), text


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
        script = Script(what, text, {})
        kind, why = recorded(script, Numbers(script), first)
        assert kind == "wrong" and why.startswith(f"call 1: {what}"), why
        assert recorded(script, Numbers(script)).kind != "wrong"


@pytest.mark.parametrize(
    ("form", "step", "what"),
    [
        ("arrays", "return x * 2 if 'ftn_next' in globals() else x", "result"),
        ("arrays", "raise ValueError('there' if 'ftn_next' in globals() else 'here')", "ValueError: here is 9"),
        ("arrays", "x.mul_(3 if 'ftn_next' in globals() else 2)", "arguments"),
        ("arrays", "net.weight.data.add_(int('ftn_next' in globals()))", "net.weight at the end"),
        ("tensors", "return (x, x * 2 if 'ftn_next' in globals() else x)", "result"),
        ("sections", "x.mul_(2)\n    if 'ftn_next' in globals(): x.as_strided((3,), (1,))[1] = 5", "elements around"),
    ],
)
def test_what_is_wrong_in_fortran_is_seen(form, step, what):
    if why := obstacle(form):
        pytest.skip(why)
    script = Script(what, f"net = nn.Linear(3, 1)\ndef step(x):\n    {step}\n", {}, 2)
    kind, text = PROMISES[form][0](script, Numbers(script))
    assert kind == "wrong" and what in text, text
