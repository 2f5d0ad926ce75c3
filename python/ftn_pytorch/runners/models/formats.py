# SPDX-License-Identifier: MIT
"""What a file is, told by its content and then by its extension. Nothing of a file is run, and nothing is imported."""

from __future__ import annotations

import io
import json
import os
import pickletools
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from ...checkpoint import file
from ...errors import FtnPytorchError
from ...script.loading import ARCHIVE

SCRIPT = "script"
TORCHSCRIPT = "torchscript"
EXPORTED = "exported"
AOTI = "aoti"
ONNX = "onnx"
PICKLE = "pickle"
RECORDING = "recording"

_ACCEPTED = (
    "Accepted are Python scripts (.py), TorchScript models written by torch.jit.save (.pt), programs of torch.export "
    "and packages of AOTInductor (.pt2), ONNX models (.onnx), and saved recordings (.ftr)."
)

# Files of others, by how they begin: what they are, and what to do.
_FOREIGN = (
    (b"\x89HDF", "It is an HDF5 file, as Keras writes them. Convert the model to ONNX."),
    (b"GGUF", "It is a GGUF file, which holds parameters but no program. Load a script that runs it."),
)

# Fields of an ONNX ModelProto (onnx.proto3) and their wire types: 0 for a number, 2 for what has a length.
_ONNX_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
_ONNX_GRAPH = 7

# Code is all that torch compresses. A model that was packed again by hand may be more, in proportion.
_ALWAYS_UNPACKED, _LARGEST_RATIO = 1 << 28, 100

# What torch.save puts into a file of parameters; everything else names code of somebody.
_HARMLESS_MODULES = ("collections", "torch", "torch._utils", "torch.nn.parameter", "torch.serialization")


def identify(path: str) -> str:
    """One of the kinds above; FORMAT with advice for anything else."""
    # Not os.path.splitext, to which "..py" is a name without extension.
    _, dot, extension = os.path.basename(path).lower().rpartition(".")
    extension = f".{extension}" if dot else ""
    with open(path, "rb") as stream:
        start = stream.read(16)
        if start[:4] == ARCHIVE and file.kind(path) == file.RECORDING:
            return RECORDING
        if start[:4] == ARCHIVE:
            kind = _identify_archive(path)
            if kind == AOTI and extension != ".pt2":
                raise FtnPytorchError(
                    "FORMAT",
                    f"{path} is a package of AOTInductor, which is machine code, under the name of something else. If "
                    "you trust whoever wrote it, give it a name that ends in .pt2.",
                )
            return kind
        if extension == ".py":
            return SCRIPT
        if start[:1] == b"\x80" and start[1:2] <= b"\x05":
            # A bare pickle: torch.save before version 1.6.
            return PICKLE
        is_onnx, wrong = _look_for_onnx(stream)
    if is_onnx:
        return ONNX
    if extension == ".onnx":
        raise FtnPytorchError("FORMAT", f"{path} is no ONNX model: {wrong}; write it again")
    if not start:
        advice = f"It is empty. {_ACCEPTED}"
    elif extension in (".pt", ".pth", ".pt2"):
        advice = (
            f"Its content is no model of torch, it begins with {start[:8]!r}: damaged or not finished? Write it again."
        )
    else:
        found = f"the extension {extension!r}" if extension else "no extension"
        advice = f"It has {found} and its content is no saved model. {_ACCEPTED}"
    if start[8:9] == b"{" and extension == ".safetensors":
        advice = "It holds parameters but no program. Load a script that builds the network and reads this file."
    for beginning, foreign in _FOREIGN:
        if start.startswith(beginning):
            advice = foreign
    raise FtnPytorchError("FORMAT", f"{path} cannot be loaded. {advice}")


def _identify_archive(path: str) -> str:
    names = set(Archive(path).names)
    if "constants.pkl" in names and any(name.startswith("code/") for name in names):
        return TORCHSCRIPT
    if any(name.startswith("data/aotinductor/") for name in names):
        return AOTI
    # Programs were called so before they had a folder of their own (torch 2.6 and older).
    if "serialized_exported_program.json" in names or any(name.startswith("models/") for name in names):
        return EXPORTED
    if "data.pkl" in names:
        return PICKLE
    if "archive_format" in names:
        raise FtnPytorchError("FORMAT", f"{path} is a .pt2 archive without a model; write it again")
    raise FtnPytorchError("FORMAT", f"{path} cannot be loaded. It is a zip archive, but no saved model. {_ACCEPTED}")


class Archive:
    """A zip archive of torch, which is open as long as this lives: its table may be long.

    All entries are in one folder, whose name is free: "net/code/...", "net/data.pkl".
    """

    def __init__(self, path: str, content: bytes | None = None) -> None:
        """``content``: of an archive inside the file."""
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path if content is None else io.BytesIO(content))
            entries = self._archive.namelist()
            unpacked = sum(each.file_size for each in self._archive.infolist() if each.compress_type)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as failure:
            raise self._damaged(failure) from failure
        size = os.path.getsize(path) if content is None else len(content)
        if unpacked > max(_ALWAYS_UNPACKED, _LARGEST_RATIO * size):
            text = f"{path} would unpack to {unpacked} bytes, and has {size}: it is damaged or made to do harm"
            raise FtnPytorchError("FORMAT", text)
        # Before torch 2.7 programs of torch.export had no such folder.
        self._entries = {entry.partition("/")[2] or entry: entry for entry in entries}
        self.names = list(self._entries)

    def read(self, name: str) -> bytes:
        """Content of one entry; FORMAT if it is damaged or not there."""
        try:
            return self._archive.read(self._entries[name])
        except (zipfile.BadZipFile, OSError, KeyError, ValueError, NotImplementedError, EOFError) as failure:
            raise self._damaged(failure) from failure

    def read_json(self, name: str) -> Any:
        """An entry that is JSON; FORMAT if it is not."""
        try:
            return json.loads(self.read(name))
        except ValueError as failure:
            raise self._damaged(f"{name} in it is no JSON: {failure}") from failure

    def _damaged(self, why: object) -> FtnPytorchError:
        return FtnPytorchError("FORMAT", f"{self.path} is a damaged archive ({why}); write it again")


def _look_for_onnx(stream: BinaryIO) -> tuple[bool, str]:
    """Whether a file is an ONNX model, and why not: walks over the outermost fields and reads none of them."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    seen: set[int] = set()
    while stream.tell() < size:
        place = stream.tell()
        tag, length = _varint(stream), _varint(stream)
        if tag is None or length is None:
            return False, f"it ends inside the field at byte {place}"
        field, wire = tag >> 3, tag & 7
        if _ONNX_FIELDS.get(field) != wire:
            return False, f"it has no such content at byte {place}"
        if wire == 2 and stream.tell() + length > size:
            return False, f"it is cut off: {stream.tell() + length - size} bytes are missing"
        if wire == 2:
            stream.seek(length, os.SEEK_CUR)
        seen.add(field)
    if _ONNX_GRAPH not in seen:
        return False, "it holds no graph" if size else "it is empty"
    return True, ""


def _varint(stream: BinaryIO) -> int | None:
    """A number as protobuf writes it; None at the end of the file, or where it is longer than 64 bits."""
    value = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            return None
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    return None


def foreign_names(data: bytes) -> list[str]:
    """Classes and functions that reading a pickle would import and call, apart from those of plain parameters."""
    found = {f"{module}.{name}" for module, name in _globals(data) if module not in _HARMLESS_MODULES}
    return sorted(found)


def _globals(data: bytes) -> Iterator[tuple[str, str]]:
    """Module and name of everything that a pickle imports, as far as it can be read. Runs nothing of it."""
    texts: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in ("GLOBAL", "INST"):
                module, _, name = str(argument).partition(" ")
                yield module, name
            elif opcode.name == "STACK_GLOBAL" and len(texts) > 1:
                yield texts[-2], texts[-1]
            elif isinstance(argument, str):
                texts.append(argument)
    except Exception:
        # pickletools raises what it likes on damaged data; what was seen up to there is named.
        return
