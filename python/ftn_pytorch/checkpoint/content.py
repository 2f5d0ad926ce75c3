# SPDX-License-Identifier: MIT
"""What is in a checkpoint file: its description, the state as trees, arrays, and the parts of other ranks."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ..errors import FtnPytorchError, summary
from ..values import random_states, user_objects
from ..values.encoding import CYCLE, INSTANCE, OBJECT, TAG, FindType, Unstorable
from ..values.graph import Graph
from . import archive, file
from .comparing import AT, GONE
from .restoring import TreeDecoder

_NOT_UNDERSTOOD = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, AssertionError)
"""What decoding raises where nobody has written the content so."""

Content = tuple[dict[str, Any], Any, dict[str, Any], Mapping[str, Any]]
"""Description, state (None if a hook of a script has written it), arrays by name, parts by the number of a rank."""


def read(path: str) -> Content:
    """That of a file, nothing of it applied yet; the failures of ``file.opened``, and FORMAT."""
    with file.opened(path) as (about, raw):
        return _read_from(raw, about, path)


def check(path: str, find_type: FindType, first: Graph | None = None) -> None:
    """Read all of a file as a restart does, but for the numbers in tensors, of which the digest tells enough.

    ``first``: what the restart finds after its load.
    """
    with file.opened(path) as (about, raw):
        found = _read_from(raw, about, path, path)
    if found[1] is None:
        return
    _decode(found, path, find_type, first)
    for rank in found[3]:
        _decode(of_rank(found, int(rank), path), path, find_type, first)


def _decode(found: Content, path: str, find_type: FindType, first: Graph | None) -> None:
    @functools.cache
    def find(name: str) -> Any:
        # Nothing of the script runs, also no __del__ of what is made here.
        kind = find_type(name)
        return user_objects.without_code(kind) if isinstance(kind, type) and user_objects.is_plain(kind) else kind

    with understood(path):
        _Reader(found[2], find, Graph({}) if first is None else first).value(found[1])


class _InPlace:
    """Stands for what a restart changes in place, and cannot make."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __hash__(self) -> int:
        raise Unstorable(f"{self._kind} stands in a set, or as a key, where no restart can put it back")


class _Reader(TreeDecoder):
    """Makes what can be made, but for what is changed in place, or is made of code of the script."""

    def value(self, tree: Any) -> Any:
        tag = tree.get(TAG) if isinstance(tree, dict) else None
        if tag == "tensor":  # its device may not be here
            tree = {key: each for key, each in tree.items() if key != "device"}
        is_of_code = tag in ("method", "partial")
        is_unknown = tag == INSTANCE and self.find_type(tree["type"]) is None
        if not (is_of_code or is_unknown or tag in (CYCLE, OBJECT, GONE, AT)):
            return super().value(tree)
        # A program without Python takes gradients away, and a restart passes over these.
        super().value({key: each for key, each in tree.items() if key not in (TAG, "gradients")})
        return self._made(tree, object() if is_of_code else _InPlace(tree.get("type", "what refers to itself")))


def texts_in(tree: Any, key: str) -> Iterator[str]:
    """What tagged trees have under a key, where that is a text: with "at" the names of the arrays in them."""
    for each in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from texts_in(each, key)
    if isinstance(tree, dict) and TAG in tree and isinstance(tree.get(key), str):
        yield tree[key]


def joined(found: Content, trees: Mapping[str, Any], arrays: Mapping[str, Any]) -> Content:
    """The content with these trees of another file in place of its own, and their arrays. They come last: labels in
    them are theirs.
    """
    about, state, own, parts = found
    objects = {name: tree for name, tree in state["objects"].items() if name not in trees}
    used = {name: arrays[name] for name in texts_in(list(trees.values()), "at") if name in arrays}
    return about, {**state, "objects": {**objects, **trees}}, {**own, **used}, parts


@contextlib.contextmanager
def understood(path: str) -> Iterator[None]:
    """A block that decodes: FORMAT for a file whose content nobody has written so."""
    try:
        yield
    except _NOT_UNDERSTOOD as failure:
        told = str(failure) if isinstance(failure, Unstorable) else summary(failure)
        raise FtnPytorchError("FORMAT", f"{path} cannot be understood: {told}") from failure


def of_rank(found: Content, rank: int, path: str) -> Content:
    """The content that the file of a rank would have had, of which another one has written a part into its own."""
    try:
        part = found[3][str(rank)]
        if not isinstance(part, bytes) and part.dim() != 1:
            raise ValueError("it is no row of bytes")
        part = part if isinstance(part, bytes) else random_states.to_bytes(part)
    except (LookupError, TypeError, ValueError, AttributeError) as failure:
        raise FtnPytorchError("FORMAT", f"{path} has no state of rank {rank}, and says that it has") from failure
    return of_bytes(part, f"the state of rank {rank} in {path}")


def of_bytes(data: bytes, name: str) -> Content:
    """The content of a file that stands in another one; CORRUPT, FORMAT."""
    raw = io.BytesIO(data)
    return _read_from(raw, file.check(raw, name), name)


def _read_from(raw: BinaryIO, about: dict[str, Any], path: str, source: str | None = None) -> Content:
    """``source``: the name of the file, where numbers of tensors are not needed."""
    if about.get("archive") not in (archive.TORCH, archive.PLAIN):
        return about, None, {}, {}
    state, arrays, held = archive.read(source or raw, about["archive"], path)
    parts = ("objects", "config", "random")
    if not isinstance(state, dict) or not all(isinstance(state.get(part), dict) for part in parts):
        raise FtnPytorchError("FORMAT", f"{path} cannot be understood: it lacks {', '.join(parts)}, or one of them")
    return about, state, arrays, held
