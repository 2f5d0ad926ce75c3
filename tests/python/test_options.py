# SPDX-License-Identifier: MIT
"""Options of load for what Python runs: which there are, and what they may be together."""

import dataclasses

import pytest

from ftn_pytorch.runners.options import Options


def test_defaults_are_those_of_the_fields():
    assert Options.of({}) == Options()


def test_what_was_completed_stays_as_it_is():
    once = Options.of({"compile": True, "weights_only": 0, "communicator": -2080374784, "dtype": "float32"})
    assert (once.compile, once.compile_backend, once.weights_only) == ("default", "inductor", False)
    assert Options.of(dataclasses.asdict(once)) == once


@pytest.mark.parametrize("handle", [0, 0x44000000])
def test_saved_recordings_alone_have_ranks(fails, handle):
    """0 is MPI_COMM_WORLD of Open MPI, and no way to say none."""
    chosen = Options.of({"communicator": handle})
    chosen.refuse_for_saved("net.ftr", may_average=True)
    with fails("ARGUMENT", "net.pt is a saved model, and communicator= is for scripts"):
        chosen.refuse_for_saved("net.pt")


@pytest.mark.parametrize(
    "value, mode", [(True, "default"), (1, "default"), (False, None), ("max-autotune", "max-autotune")]
)
def test_compile_is_a_logical_or_a_mode(value, mode):
    assert Options.of({"compile": value}).compile == mode


@pytest.mark.parametrize(
    "given, pieces",
    [
        ({"recrod": True}, ["load has no option 'recrod'", "valid are layout,", "backend", "did you mean 'record'"]),
        ({"speed": 1}, ["load has no option 'speed'"]),
        ({"record": 2}, ["load(..., record=) must be a logical"]),
        ({"background": "yes"}, ["load(..., background=) must be a logical"]),
        ({"compile": 1.5}, ["load(..., compile=) must be a logical"]),
        ({"compile": "max-autotun"}, ["is 'max-autotun'; valid are default, reduce", "did you mean 'max-autotune'"]),
        ({"compile_backend": "inductor"}, ["together with compile= only"]),
        ({"compile": "max-autotune", "compile_backend": "aot_eager"}, ["not of 'aot_eager'"]),
        ({"compile": True, "record": True}, ["both record= and compile="]),
        ({"background": True, "communicator": 0}, ["both background= and communicator="]),
        ({"communicator": 1.5}, ["load(..., communicator=) must be a single integer"]),
        ({"fallback": 1}, ["load(..., fallback=) must be a string"]),
        ({"fallback": ""}, ["load(..., fallback=) is empty"]),
    ],
)
def test_mistakes_are_told(given, pieces, fails):
    with fails("ARGUMENT", *pieces):
        Options.of(given)
