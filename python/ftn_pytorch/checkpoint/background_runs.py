# SPDX-License-Identifier: MIT
"""Checkpoints of ``load(..., background=.true.)`` and of runs without it: each restores those of the other.

The process that trains has loaded the same script. Its state is a checkpoint of that script, by the same names, within
that of the run, and it is the state with which a run without ``background`` goes on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..system import process
from ..values.encoding import decode
from .base import LEFT_OUT
from .content import Content, joined, of_bytes
from .restoring import FindType, plain

NAME = "torch_background"
"""Name of the process that trains, among the objects of a checkpoint."""

_MADE_FOR_MODEL = re.compile(r"torch_\w+\.\d+")


def as_trained(found: Content, path: str, find_type: FindType) -> Content:
    """The content of a file that a run with ``background`` wrote, as a run without would have written it.

    Samples that waited are not kept, with a warning.
    """
    about, state, arrays, parts = found
    objects = dict(state["objects"])
    beside = decode(plain(objects.pop(NAME)), arrays, find_type)
    if beside["queue"]:
        process.warn(
            f"{path} was written with background=, when {len(beside['queue'])} sets of samples waited to be learnt: "
            "without it they are not used"
        )
    if not beside["remote"]:  # it had made no step
        return about, {**state, "objects": objects}, arrays, parts
    trained, state, *rest = of_bytes(beside["remote"], f"the state of the process that trains in {path}")
    # The process that trains has not what the program made for the model; of all else here is what was loaded.
    others = {name: tree for name, tree in objects.items() if _MADE_FOR_MODEL.fullmatch(name)}
    return joined(({**trained, "step": about.get("step")}, state, *rest), others, arrays)


def beside(found: Content) -> Content:
    """What a run without ``background`` wrote, for one with it: of the process that trains it tells nothing."""
    about, *rest = found
    return {**about, LEFT_OUT: [*(about.get(LEFT_OUT) or ()), NAME]}, *rest


def is_of(found: Content) -> bool:
    """True for what a run with ``background`` wrote."""
    return isinstance(found[1], Mapping) and NAME in found[1]["objects"]
