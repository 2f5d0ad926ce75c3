# SPDX-License-Identifier: MIT
"""What is in the file of a saved recording, and in checkpoints that a program without Python can go on from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import FtnPytorchError
from ..recording import kernel_settings
from ..recording.saved_tape import SavedTape
from . import archive, file, resumption
from .content import NOT_UNDERSTOOD, not_understood

FORMAT = 2


class Content(NamedTuple):
    """What an archive holds, and what its file says of itself."""

    about: dict[str, Any]
    parts: dict[str, Any]


class Functions(NamedTuple):
    """Recordings by the names of functions, and the settings of torch that they ask for."""

    tapes: dict[str, list[SavedTape]]
    settings: dict[str, Any]


def read(path: str, device: Any, is_mapped: bool = False) -> Content:
    """That of a file; FORMAT, and the failures of ``file.opened``. ``is_mapped``: see ``archive.loaded``."""
    with file.opened(path) as (about, raw):
        if about.get("archive") != archive.TORCH:
            raise FtnPytorchError(
                "FORMAT", f"{path} holds no tensors, and so nothing that a recording could go on from"
            )
        try:
            parts = archive.loaded(path if is_mapped else raw, device)
        except (MemoryError, OSError):
            raise
        except Exception as failure:
            raise not_understood(path, failure) from failure
    if not isinstance(parts, dict) or not isinstance(parts.get("arrays"), dict):
        raise FtnPytorchError("FORMAT", f"{path} cannot be understood: it lacks arrays")
    if "holes" not in parts:
        raise FtnPytorchError(
            "FORMAT",
            f"{path} was written by an earlier version, whose checkpoints only a script can go on from: restore the "
            "script from it, and write it again",
        )
    return Content(about, parts)


def functions(recording: Mapping[str, Any], path: str, device: Any) -> Functions:
    """What a file records; FORMAT for that of another version, or of a torch whose operators are others."""
    if recording["version"] != FORMAT:
        raise FtnPytorchError(
            "FORMAT",
            f"{path} has format {recording['version']} of recordings, this version of ftn_pytorch reads "
            f"format {FORMAT}",
        )
    held = sum(
        len(tape["operations"]) + len(tape["constants"]) for all in recording["functions"].values() for tape in all
    )
    if held > os.path.getsize(path):  # one of them may stand in the file once, and be named often
        raise FtnPytorchError("FORMAT", f"{path} names {held} operators and tensors, more than it holds")
    tapes = {
        name: [SavedTape(each, f"{name} of {path}", device) for each in tapes]
        for name, tapes in recording["functions"].items()
    }
    return Functions(tapes, kernel_settings.of_file(recording))


def check(path: str) -> None:
    """Read a file that was just written as ``load`` and ``restore`` do; numbers in tensors are not looked at."""
    parts = read(path, "cpu", is_mapped=True).parts
    try:
        resumption.opened(parts["state"], parts["holes"])
        if "recording" in parts:
            functions(parts["recording"], path, "cpu")
    except NOT_UNDERSTOOD as failure:
        raise not_understood(path, failure) from failure
