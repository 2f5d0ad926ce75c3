# SPDX-License-Identifier: MIT
"""The archive inside a checkpoint: text and arrays, by torch where there are tensors, by zipfile and NumPy otherwise.

With tensors it is what ``torch.save`` writes of ``{MARK: 1, "state": text, "arrays": {name: tensor}, ...}``, and
``torch.load`` reads it with ``weights_only=True``: tensors and texts, no code. What a program without Python needs to
go on from it stands beside that, see ``resumption``. Without tensors it holds ``state.json``
and one ``.npy`` for each array, and torch is not needed to write or to read it. Neither ever unpickles anything else.

``parts`` are whole checkpoints of other ranks, by the number of the rank, as bytes: tensors of uint8 in an entry
``"ranks"``, or members ``ranks/7``.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

from ..errors import FtnPytorchError, summary
from ..values import is_tensor
from .file import MARK

TORCH = "torch"
PLAIN = "plain"
_RANKS = "ranks"


def kind_of(arrays: Mapping[str, Any]) -> str:
    """How these arrays will be stored."""
    return TORCH if any(map(is_tensor, arrays.values())) else PLAIN


def write(
    stream: Any,
    state: Any,
    arrays: Mapping[str, Any],
    others: Mapping[str, Any] | None = None,
    parts: Mapping[str, bytes] | None = None,
) -> None:
    """Write text and arrays to a stream that need not be able to go back.

    others: plain values and tensors that stand beside them, which torch writes. ``state`` may have been written as text
    before, see ``text_of``.
    """
    if others or kind_of(arrays) == TORCH:
        _write_torch(stream, state, arrays, others or {}, parts or {})
    else:
        _write_plain(stream, state, arrays, parts or {})


def text_of(state: Any, arrays: Mapping[str, Any]) -> str:
    """What stands in an archive with tensors for a state: JSON of it, and of the types of arrays of NumPy."""
    dtypes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items() if not is_tensor(array)}
    return json.dumps([state, dtypes])


def _write_torch(
    stream: Any, state: Any, arrays: Mapping[str, Any], others: Mapping[str, Any], parts: Mapping[str, bytes]
) -> None:
    import torch

    tensors = {}
    for name, array in arrays.items():
        if is_tensor(array):
            tensors[name] = array
        else:
            # Not torch.from_numpy, which does not know all of NumPy's types.
            tensors[name] = torch.frombuffer(bytearray(array.tobytes()) or bytearray(1), dtype=torch.uint8)
    text = state if isinstance(state, str) else text_of(state, arrays)
    held = {rank: torch.frombuffer(bytearray(part), dtype=torch.uint8) for rank, part in parts.items()}
    of_ranks = {_RANKS: held} if held else {}
    torch.save({MARK: 1, "state": text, "arrays": tensors, **others, **of_ranks}, stream)


def _write_plain(stream: Any, state: Any, arrays: Mapping[str, Any], parts: Mapping[str, bytes]) -> None:
    members = {name: f"{number}.npy" for number, name in enumerate(arrays)}
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(MARK, "")
        archive.writestr("state.json", json.dumps([state, members]))
        for name, array in arrays.items():
            import numpy

            with archive.open(members[name], "w", force_zip64=True) as member:
                numpy.lib.format.write_array(member, array, allow_pickle=False)
        for rank, part in parts.items():
            archive.writestr(f"{_RANKS}/{rank}", part)


def read(raw: BinaryIO | str, kind: str, path: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Text, arrays and parts, which are bytes or tensors of bytes; FORMAT if there is anything else in the archive.

    ``raw``: see ``loaded``.
    """
    try:
        return _read_torch(raw) if kind == TORCH else _read_plain(raw)
    except ImportError as failure:
        raise FtnPytorchError(
            "IMPORT", f"{path} holds tensors, and torch is not there: {summary(failure)}"
        ) from failure
    except (MemoryError, OSError):
        raise
    except Exception as failure:
        # Checksums do not protect against somebody who means harm: what is no tensor and no text is not unpickled.
        raise FtnPytorchError(
            "FORMAT", f"{path} has entries that no checkpoint has, so it is not read: {summary(failure)}"
        ) from failure


class _Type:
    """Stands for the type of a number of NumPy in files of version 0.2.0, which held rates as NumPy had made them."""

    def __init__(self, name: str, *_: Any) -> None:
        self.name, self.order = name, "<"

    def __setstate__(self, state: tuple) -> None:
        self.order = state[1]


def _number(kind: _Type, data: bytes) -> float:
    if kind.name != "f8":
        raise ValueError(f"a number of NumPy of type {kind.name}")
    return struct.unpack(f"{kind.order}d", data)[0]


_OF_NUMPY: list[Any] = [(_Type, "numpy.dtype")] + [
    (_number, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")
]


def loaded(raw: BinaryIO | str) -> Any:
    """What torch reads of an archive: tensors, texts and numbers.

    ``raw``: a stream, or the name of a file, of which numbers of tensors are read where they are looked at only.
    """
    import torch

    if isinstance(raw, str):
        try:
            return torch.load(raw, map_location="cpu", weights_only=True, mmap=True)
        except Exception:  # also where a file system maps no files
            with open(raw, "rb") as stream:
                return loaded(stream)
    begin = raw.tell()
    try:
        return torch.load(raw, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raw.seek(begin)
        with torch.serialization.safe_globals(_OF_NUMPY):
            return torch.load(raw, map_location="cpu", weights_only=True)


def _read_torch(raw: BinaryIO | str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    content = loaded(raw)
    state, dtypes = json.loads(content["state"])
    arrays = content["arrays"]
    for name, (dtype, shape) in dtypes.items():
        import numpy

        size = int(numpy.prod(shape, dtype=int)) * numpy.dtype(dtype).itemsize
        arrays[name] = arrays[name].numpy()[:size].view(dtype).reshape(shape)
    return state, arrays, content.get(_RANKS, {})


def _read_plain(raw: BinaryIO | str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    with zipfile.ZipFile(raw) as archive:
        state, members = json.loads(archive.read("state.json"))
        arrays = {}
        for name, member in members.items():
            import numpy

            arrays[name] = numpy.lib.format.read_array(io.BytesIO(archive.read(member)), allow_pickle=False)
        held = [name for name in archive.namelist() if name.startswith(f"{_RANKS}/")]
        return state, arrays, {name.rpartition("/")[2]: archive.read(name) for name in held}
