# SPDX-License-Identifier: MIT
"""Files for test_archive_file and fuzz_archive: checkpoints and saved recordings as Python writes them, and others.

    make_archives.py <folder>

In the folder: ``python.ckpt`` and ``python.ftr`` with all that a file may hold, ``views.ckpt`` with tensors that share
storages, and files that are no checkpoints.
"""

import io
import json
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path

import torch

from ftn_pytorch.checkpoint import archive, file

KINDS = {"checkpoint": 0, "recording": 1}


def write(path, content, kind="checkpoint", description=None):
    """One file; ``content`` is what torch.save gets, or the bytes of an archive."""

    def fill(stream):
        if isinstance(content, bytes):
            stream.write(content)
        else:
            torch.save(content, stream)

    file.write(str(path), description or {"step": 7, "archive": "torch"}, fill, kind=KINDS[kind])


def described(name, overload, arguments, results):
    schema = getattr(getattr(torch.ops.aten, name), overload or "default")._schema
    return (f"aten::{name}", overload, str(schema), arguments, results)


def recording():
    """A dict with every kind of value that tapes are made of."""
    weight = torch.arange(6.0).reshape(2, 3)
    none = ("value", None)
    operations = [
        ("mm", "", [("slot", 0), ("slot", 1)], [[3]]),
        ("view", "", [("last", 3), ("sizes", [(3, 0)])], [[4]]),
        ("mul", "Scalar", [("slot", 4), ("number", [(0, 0), (2, 2.0), (5, 0)])], [[5]]),
        ("add", "Tensor", [("slot", 5), ("slot", 4), ("value", 1)], [[6]]),
        ("div", "Scalar", [("slot", 6), ("size", 3, 0)], [[7]]),
        ("mul", "Tensor", [("slot", 7), ("fraction", 2.0)], [[8]]),
        ("cat", "", [("list", [7, 8]), ("value", 0)], [[9]]),
        ("zeros_like", "", [("slot", 9), ("dtype", "float64"), *[none] * 4], [[10]]),
        ("full", "", [("value", [2]), ("real", 1, 1), *[none] * 2, ("device", "cpu"), none], [[11]]),
        ("split", "Tensor", [("slot", 9), ("size", 3, 0), ("value", 0)], [[12, 13]]),
        ("clone", "", [("slot", 12), ("memory_format", "preserve_format")], [[14]]),
        ("sum", "dim_IntList", [("slot", 14), ("value", [0]), ("value", True), ("value", None)], [[15]]),
    ]
    tape = {
        "batch": True,
        "least": 1,
        "inputs": [("x", "tensor", 0, "float32", [(1, 0), (0, 3)], [(0, 3), (0, 1)]), ("", "value", 2.5)],
        "slots": 16,
        "constants": [(1, weight.reshape(3, 2)[:, :3].mm(torch.ones(2, 3))), (2, weight[0])],
        "operations": [described(*each) for each in operations],
        "results": [15, 11],
        "template": ("dict", ["sum", "filled"], [("tensor", 0), ("tensor", 1)]),
        "numbers": [("setting", "opt.0.lr"), ("count", weight.sum(), 1)],
        "branches": [(2, [(0, 0)], [(2, 1e-3)], True)],
        "before": [("net/0.weight (its gradient)", 2), ("net/0.bias (its gradient)", -1)],
        "gradients": [("net/0.weight (its gradient)", 8), ("net/0.bias (its gradient)", -1)],
        "writes": False,
        "written_inputs": [0],
    }
    return {
        "version": 2,
        "torch": torch.__version__.partition("+")[0],
        "script": "closure.py",
        "default_dtype": "float32",
        "settings": {"deterministic": False, "matmul_precision": "highest", "cudnn_tf32": True},
        "description": ['{"step": ', ("step",), ', "written": ', ("written",), "}"],
        "functions": {"ftn_pytorch_forward": [tape], "ftn_pytorch_train": []},
    }, weight


def whole(**changes):
    """What the archive of a saved recording holds, with other entries in place of some."""
    tapes, weight = recording()
    torch.manual_seed(3)
    content = {
        file.MARK: 1,
        "state": json.dumps([{"numbers": 1}, {}]),
        "arrays": {"net/0.weight": weight, "net/0.bias": weight[0], "opt/state/0/step": torch.tensor(5.0)},
        "numbers": {"opt.0.lr": 1e-3, "opt.0.betas.1": 0.999},
        "generator": torch.get_rng_state(),
        "holes": [(13, 14, ("number", "opt.0.lr"))],
        "recording": tapes,
    }
    content.update(changes)
    return {name: value for name, value in content.items() if value is not None}


def every_dtype():
    """One tensor of each element type, and views that stretch, skip and share."""
    base = torch.arange(24.0)
    square = base.reshape(4, 6)
    whole_numbers = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
    others = [torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
    narrow = [torch.float8_e5m2, torch.float8_e4m3fn]
    arrays = {str(dtype): torch.tensor([1, 0, 3]).to(dtype) for dtype in whole_numbers + others + narrow}
    complex_numbers = torch.tensor([1 + 2j, 3 - 1j])
    return arrays | {
        "bool": torch.tensor([True, False]),
        "complex": complex_numbers,
        "conjugate": complex_numbers.conj(),
        "negative": torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
        "base": base,
        "transposed": square.T,
        "skipping": square[1::2, ::3],
        "expanded": base[2].expand(3, 5),
        "empty": torch.empty(0, 4),
        "scalar": base[23],
    }


def archive_of(names, replace=lambda name, data: data):
    """The records of an archive of torch, changed."""
    buffer, result = io.BytesIO(), io.BytesIO()
    torch.save(names, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(result, "w") as new:
        for entry in old.infolist():
            data = replace(entry.filename, old.read(entry))
            if data is not None:
                new.writestr(zipfile.ZipInfo(entry.filename), data)
    return result.getvalue()


def make_refused(folder):
    """Files with a right digest that no reader may take; the names are those of the tests."""
    plain = whole(recording=None)
    sparse = torch.eye(2).to_sparse()
    shared = []
    shared.append((shared,))
    changed = {
        "parameter": whole(arrays={"a": torch.nn.Parameter(torch.ones(2))}),
        "sparse": whole(arrays={"a": sparse}),
        "object": whole(arrays={"a": types.SimpleNamespace()}),
        "complex": whole(arrays={"a": 1j}),
        "set": whole(arrays={"a": {1}}),
        "large_integer": whole(arrays={"a": 1 << 70}),
        "cycle": whole(arrays={"a": shared}),
        "deep": whole(recording={"a": nested(300)}),
        "wide": whole(recording={"a": doubled(40)}),
        "key": whole(recording={"a": {2.5: 1}}),
        "no_tensor": whole(arrays={"a": "text"}),
        "no_names": whole(arrays={1: torch.ones(1)}),
        "integers": whole(numbers={"a": 1}),
        "generator": whole(generator=torch.ones(4)),
        "state": whole(state=5),
        "later": whole(**{file.MARK: 2}),
        "entry": whole(more=1),
        "no_state": whole(state=None),
        "no_recording": whole(recording=None),
        "recording_list": whole(recording=[]),
        "no_dict": [1, 2],
    }
    for name, content in changed.items():
        write(folder / f"refused_{name}.ftr", content, "recording")
    write(folder / "refused_tapes.ckpt", whole())
    write(folder / "refused_plain.ckpt", b"PK\x05\x06" + bytes(18))
    write(folder / "refused_no_zip.ckpt", b"no archive at all" * 20)
    write(folder / "refused_no_pickle.ckpt", archive_of(plain, lambda name, data: None if "data.pkl" in name else data))
    write(folder / "refused_no_storage.ckpt", archive_of(plain, lambda name, data: None if "/data/0" in name else data))
    write(folder / "refused_short.ckpt", archive_of(plain, lambda name, data: data[:-1] if "/data/0" in name else data))
    write(folder / "refused_order.ckpt", archive_of(plain, lambda name, data: b"big" if "byteorder" in name else data))
    write(
        folder / "refused_logical.ckpt",
        archive_of(
            whole(recording=None, arrays={"a": torch.ones(3, dtype=torch.bool)}, generator=None),
            lambda name, data: b"\1\2\1" if "/data/0" in name else data,
        ),
    )


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def doubled(times):
    """A list that stands for 2**times of them, in a few bytes."""
    value = [1]
    for _ in range(times):
        value = [value, value]
    return value


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "python.ckpt", whole(recording=None))
    write(folder / "python.ftr", whole(), "recording", {"step": 7, "archive": "torch", "script": "café"})
    write(folder / "older.ckpt", whole(recording=None, numbers=None, generator=None))
    write(folder / "no_numbers.ckpt", whole(recording=None, numbers={}, generator=None))
    write(folder / "views.ckpt", whole(recording=None, arrays=every_dtype()))
    shared = [1, 2]
    write(
        folder / "containers.ftr",
        whole(recording={"a": [shared, shared], "b": OrderedDict(c=()), "d": 1 << 40}),
        "recording",
    )
    file.write(
        str(folder / "numpy.ckpt"), {"step": 1, "archive": "plain"}, lambda stream: archive.write(stream, [], {})
    )
    make_refused(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
