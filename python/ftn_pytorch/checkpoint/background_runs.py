# SPDX-License-Identifier: MIT
"""Checkpoints of ``load(..., background=.true.)`` and of runs without it: each restores those of the other.

The process that trains has loaded the same script. Its state is a checkpoint of that script, by the same names, within
that of the run, and it is the state with which a run without ``background`` goes on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from ..system import process
from ..values.encoding import decode
from .restoring import FindType, plain

NAME = "torch_background"
"""Name of the process that trains, among the objects of a checkpoint."""


def as_trained(
    content: Any, path: str, read: Callable[[str], Any], find_type: FindType
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The content of a file that a run with ``background`` wrote, as a run without would have written it.

    Also by name the trees of what the program made for the model, which the process that trains has not, and their
    arrays. ``read``: gives the content of a file. Samples that waited are not kept, with a warning.
    """
    about, state, arrays, *_ = content
    objects = dict(state["objects"])
    beside = decode(plain(objects.pop(NAME)), arrays, find_type)
    if beside["queue"]:
        process.warn(
            f"{path} was written with background=, when {len(beside['queue'])} sets of samples waited to be learnt: "
            "without it they are not used"
        )
    if not beside["remote"]:  # it had made no step
        return (about, {**state, "objects": objects}, arrays), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        inner = os.path.join(folder, "child")
        with open(inner, "wb") as stream:
            stream.write(beside["remote"])
        trained, state, inner_arrays, *_ = read(inner)
    others = {name: tree for name, tree in objects.items() if name not in state["objects"]}
    return ({**trained, "step": about.get("step")}, state, inner_arrays), others, arrays


def is_of(content: Any) -> bool:
    """True for what a run with ``background`` wrote."""
    return isinstance(content[1], Mapping) and NAME in content[1]["objects"]
