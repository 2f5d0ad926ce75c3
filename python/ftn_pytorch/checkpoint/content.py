# SPDX-License-Identifier: MIT
"""What is in a checkpoint file: its description, the state as trees, arrays, and the parts of other ranks."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, BinaryIO

from ..errors import FtnPytorchError
from ..values import random_states
from . import archive, file

Content = tuple[dict[str, Any], Any, dict[str, Any], Mapping[str, Any]]
"""Description, state (None if a hook of a script has written it), arrays by name, parts by the number of a rank."""


def read(path: str) -> Content:
    """That of a file, nothing of it applied yet; the failures of ``file.opened``, and FORMAT."""
    with file.opened(path) as (about, raw):
        return _read_from(raw, about, path)


def of_rank(found: Content, rank: int, path: str) -> Content:
    """The content that the file of a rank would have had, of which another one has written a part into its own."""
    try:
        part = found[3][str(rank)]
        if not isinstance(part, bytes) and part.dim() != 1:
            raise ValueError("it is no row of bytes")
        raw = io.BytesIO(part if isinstance(part, bytes) else random_states.to_bytes(part))
    except (LookupError, TypeError, ValueError, AttributeError) as failure:
        raise FtnPytorchError("FORMAT", f"{path} has no state of rank {rank}, and says that it has") from failure
    name = f"the state of rank {rank} in {path}"
    return _read_from(raw, file.check(raw, name), name)


def _read_from(raw: BinaryIO, about: dict[str, Any], path: str) -> Content:
    if about.get("archive") not in (archive.TORCH, archive.PLAIN):
        return about, None, {}, {}
    state, arrays, held = archive.read(raw, about["archive"], path)
    parts = ("objects", "config", "random")
    if not isinstance(state, dict) or not all(isinstance(state.get(part), dict) for part in parts):
        raise FtnPytorchError("FORMAT", f"{path} cannot be understood: it lacks {', '.join(parts)}, or one of them")
    return about, state, arrays, held
