# SPDX-License-Identifier: MIT
"""The small file of docs/ftr-format.md, byte by byte: nothing of it depends on a version of Python or torch.

It is written from that page alone: values as a pickle, records as a zip archive, the end of the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from typing import Any, NamedTuple

SCHEMA = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"


class Stored(NamedTuple):
    """A tensor that is whole and contiguous: its record, the class of its storage, and its sizes."""

    record: str
    storage: str
    sizes: tuple[int, ...]


def pickled(value: Any) -> bytes:
    """A value as data.pkl holds it. No value is referred to twice."""
    return b"\x80\x02" + _pickled(value) + b"."


def _pickled(value: Any) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value) if abs(value) < 1 << 31 else b"\x8a\x08" + struct.pack("<q", value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        text = value.encode()
        return b"X" + struct.pack("<I", len(text)) + text
    if isinstance(value, Stored):
        return _tensor(value)
    if isinstance(value, dict):
        return b"}(" + b"".join(_pickled(each) for pair in value.items() for each in pair) + b"u"
    items = b"".join(map(_pickled, value))
    return b"(" + items + b"t" if isinstance(value, tuple) else b"](" + items + b"e"


def _tensor(value: Stored) -> bytes:
    """_rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks)"""
    count, strides = 1, []
    for size in reversed(value.sizes):
        strides.insert(0, count)
        count *= size
    storage = b"(" + _pickled("storage") + f"ctorch\n{value.storage}\n".encode()
    storage += b"".join(map(_pickled, (value.record, "cpu", count))) + b"tQ"
    numbers = b"".join(map(_pickled, (0, value.sizes, tuple(strides), False)))
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + numbers + b"ccollections\nOrderedDict\n)RtR"


def archive(pickle: bytes, records: dict[str, bytes]) -> bytes:
    """Records of an archive, none of them compressed, in one folder."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        everything = {"data.pkl": pickle, "byteorder": b"little", "version": b"3\n"}
        everything |= {f"data/{name}": data for name, data in records.items()}
        for name, data in everything.items():
            made.writestr(zipfile.ZipInfo(f"archive/{name}"), data)
    return stream.getvalue()


def closed(archive_: bytes, description: dict[str, Any], format_: int = 3, kind: int = 1) -> bytes:
    """The whole file."""
    text = json.dumps(description).encode()
    before = archive_ + text + struct.pack("<16sIIQQ", b"ftn_pytorch ckpt", format_, kind, len(archive_), len(text))
    return before + hashlib.sha256(before).digest()


def small_content() -> dict[str, Any]:
    """``ftn_pytorch_forward(x)``, which multiplies rows of three numbers by a weight."""
    weight = Stored("0", "FloatStorage", (3,))
    tape = {
        "batch": True,
        "least": 1,
        "inputs": [("x", "tensor", 0, "float32", [(1, 0), (0, 3)], [(0, 3), (0, 1)])],
        "slots": 3,
        "constants": [(1, weight)],
        "operations": [("aten::mul", "Tensor", SCHEMA, [("last", 0), ("slot", 1)], [[2]])],
        "results": [2],
        "template": ("tensor", 0),
        "numbers": [],
        "branches": [],
        "before": [],
        "gradients": [],
        "writes": False,
        "written_inputs": [],
    }
    recording = {
        "version": 2,
        "torch": "2.13.0",
        "script": "scale.py",
        "default_dtype": "float32",
        "settings": {"deterministic": False, "matmul_precision": "highest", "cudnn_tf32": True},
        "description": ['{"step": ', ("step",), "}"],
        "parameters": [("weight", "weight")],
        "functions": {"ftn_pytorch_forward": [tape]},
    }
    return {
        "ftn_pytorch checkpoint": 1,
        "state": "[{}, {}]",
        "arrays": {"weight": weight},
        "numbers": {},
        "generator": Stored("1", "ByteStorage", (5056,)),
        "holes": [],
        "recording": recording,
    }


def generator_state() -> bytes:
    """Of torch's generator of the host right after ``torch.manual_seed(0)``."""
    import torch

    return torch.Generator().manual_seed(0).get_state().numpy().tobytes()


def small_file(content: dict[str, Any] | None = None, format_: int = 3, kind: int = 1) -> bytes:
    """The file of the page, or one with other content."""
    records = {"0": struct.pack("<3f", 1.0, 2.0, 4.0), "1": generator_state()}
    made = archive(pickled(small_content() if content is None else content), records)
    return closed(made, {"step": None, "archive": "torch"}, format_, kind)
