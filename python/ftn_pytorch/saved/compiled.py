# SPDX-License-Identifier: MIT
"""Code of torch's compiler in a saved recording, see docs/ftr-format.md."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..compiling import plan
from ..compiling.compilation import compiled
from ..recording.compiled_plan import Memory, Uncompilable
from .portable import Plain, Unsavable

_FOLDER = "data/aotinductor/"
_SOURCES = (".cpp", ".h")


class Code:
    """The code of several recordings, as records of an archive."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self._count = 0

    def add(self, tape: Plain, batch: int) -> None:
        """Compile a recording, where it is one for any batch with this size as an example. Unsavable says why not."""
        inputs = {each[2]: each for each in tape["inputs"] if each[1] == "tensor"}
        wanted = (*tape["results"], *(slot for _, slot in tape["gradients"]))
        try:
            memory = Memory(tape["constants"], list(inputs), wanted)
        except Uncompilable as reason:
            raise Unsavable(str(reason)) from None
        if not inputs or not (memory.computed or tape["writes"] or tape["written_inputs"]):
            raise Unsavable("it computes nothing of what it is given")
        for name, overload, *_ in tape["operations"]:
            if why := plan.obstacle(name, overload):
                raise Unsavable(f"the operator {name} {why}")
        package = compiled(
            plan.Plan(
                steps=tuple((*each[:2], *each[3:]) for each in tape["operations"]),
                memory=(*(_memory(each, batch) for each in inputs.values()), *map(plan.memory_of, memory.tensors)),
                slots=(*inputs, *memory.slots),
                views=tuple(memory.views),
                numbers=len(tape["numbers"]),
                results=tuple(memory.computed),
                threads=torch.get_num_threads(),
                batch=batch,
                least=tape["least"],
            )
        )
        model, self._count = str(self._count), self._count + 1
        with zipfile.ZipFile(package) as archive:
            for name in archive.namelist():
                place = name.partition(f"/{_FOLDER}model/")[2]
                if place and not place.endswith(_SOURCES):
                    self.records[f"{_FOLDER}{model}/{place}"] = archive.read(name)
        tape["code"] = (model, list(inputs), memory.tensors, memory.computed)


def _memory(described: tuple, batch: int) -> plan.Memory:
    *_, dtype, sizes, strides = described
    shape, steps = (tuple(a * batch + b for a, b in axes) for axes in (sizes, strides))
    return plan.Memory(shape, steps, getattr(torch, dtype), tuple(a for a, _ in sizes))


def write_with(stream: Any, fill: Callable[[Any], None], records: Mapping[str, bytes]) -> None:
    """Write what ``fill`` writes, an archive of torch, with further records."""
    with tempfile.TemporaryFile() as raw:
        fill(raw)
        with zipfile.ZipFile(raw, "a") as archive:
            folder = archive.namelist()[0].partition("/")[0]
            for name, content in records.items():
                archive.writestr(zipfile.ZipInfo(f"{folder}/{name}"), content, zipfile.ZIP_DEFLATED)
        raw.seek(0)
        shutil.copyfileobj(raw, stream)
