# SPDX-License-Identifier: MIT
"""Promise: a function that runs as code of torch's compiler gives what it gives in Python, within a tolerance."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import torch

import ftn_pytorch
from ftn_pytorch.recording.compiled_steps import CompiledReplay
from ftn_pytorch.system import process

from .plain import Numbers, kept_settings, run
from .scripts import Script
from .state import difference
from .verdicts import REFUSED, SAME, WRONG, Verdict

SECONDS = 900
NEAR = 1e-3
"""Relative to the largest number of a tensor, after up to sixty calls that each may differ by 1e-5."""
_REALS = {"torch.float32": numpy.float32, "torch.float64": numpy.float64}


def compiled(script: Script, plain: Numbers) -> Verdict:
    """Refused where nothing of it runs as code at the end."""
    made: list[Any] = []

    def made_by(function: Any, **options: Any) -> Any:
        made.append(ftn_pytorch.recorded(function, **{**options, "compiled": True}))
        return made[-1]

    def replays() -> list[CompiledReplay]:
        found = [variant.runner for each in made for variant in each.recording._ready]
        return [each for each in found if isinstance(each, CompiledReplay)]

    def wait() -> None:
        assert all(each.wait(SECONDS) for each in replays()), "the compiler does not end"

    with kept_settings(), process.warnings_held() as told:
        found = run(script, plain.varied, made_by, wait)
    for call, (one, other) in enumerate(itertools.zip_longest(plain.seen, found)):
        if one is not None and other is not None:
            other = type(other)(*map(settled, one, other))
        if why := difference(one, other):
            return Verdict(WRONG, f"call {call}: {why}")
    if any(each.is_compiled() for each in replays()):
        return Verdict(SAME)
    return Verdict(REFUSED, next((each for each in told if "recorded" in each), "no code"))


def settled(one: Any, other: Any) -> Any:
    """The second of two that ``state_of`` has made, with real numbers of the first where they are near."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: settled(one[name], each) if name in one else each for name, each in other.items()}
    if type(one) is not type(other) or not isinstance(one, (list, tuple)) or len(one) != len(other):
        return other
    if len(one) > 2 and isinstance(one[0], str) and one[0] in _REALS and one[:2] == other[:2]:
        a, b = (torch.from_numpy(numpy.frombuffer(each[2], _REALS[one[0]]).copy()) for each in (one, other))
        if a.numel() and torch.allclose(a, b, rtol=0, atol=NEAR * float(a.abs().max()), equal_nan=True):
            other = (*other[:2], one[2], *other[3:])
    if one and one[0] == other[0] == "float" and abs(float(one[1]) - float(other[1])) <= NEAR * abs(float(one[1])):
        return one
    return type(other)(map(settled, one, other)) if type(other) in (list, tuple) else other
