# SPDX-License-Identifier: MIT
"""Which of the loaded modules go into a pack, and what tells later that one of them has changed.

For Python's own library that is the version of Python, for an installed package its RECORD, which installers write anew
with each change, and for all other modules the file itself. So packages cost one look each, and others one a module.
"""

from __future__ import annotations

import csv
import marshal
import os
import sys
import sysconfig
import zlib
from collections.abc import Iterable
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, BinaryIO

from ..system import pack

_COMMANDS = __package__
_MAIN = f"{__package__.partition('.')[0]}.__main__"


class PackedModules:
    """What is loaded now and found by way of ``folders``, those of ``sys.path`` that programs search, too."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(folders)
        self._index_of_folders = [(each, pack.time_of_folder(each), pack.stems(each)) for each in self._folders]
        self._record_of = self._records()
        self._code: list[bytes] = []
        self._size = 0
        self._used_records: set[str] = set()
        self.modules: dict[str, tuple[Any, ...]] = {}
        for name, module in list(sys.modules.items()):
            self._add(name, module)

    def write(self, stream: BinaryIO, script: str) -> int:
        """The file; how many bytes it has."""
        index = {
            **pack.environment(),
            "folders": self._index_of_folders,
            "stamps": [(record, pack.stamp_of(record)) for record in sorted(self._used_records)],
            "modules": self.modules,
        }
        table = marshal.dumps(index)
        return sum(map(stream.write, [pack.heading(script, table, self._size), table, *self._code]))

    def _records(self) -> dict[str, str]:
        """The RECORD of the installed package that a file belongs to."""
        found: dict[str, str] = {}
        for folder in self._folders:
            for name in os.listdir(folder) if os.path.isdir(folder) else ():
                record = os.path.join(folder, name, "RECORD")
                if name.endswith(".dist-info") and os.path.isfile(record):
                    with open(record, newline="", encoding="utf-8") as stream:
                        found.update((os.path.join(folder, row[0]), record) for row in csv.reader(stream) if row)
        return found

    def _add(self, name: str, module: ModuleType) -> None:
        """A module that Python's own finders have found, and would find again by what the pack keeps of it."""
        spec = _spec(name, module)
        if spec is None or spec.name != name or name == _MAIN or f"{name}.".startswith(f"{_COMMANDS}."):
            return
        loader, origin, places = spec.loader, spec.origin or "", spec.submodule_search_locations
        # Those alone: what others change on the way cannot be told.
        is_known = type(loader) in (SourceFileLoader, ExtensionFileLoader) and os.path.isabs(origin)
        folder = pack.folder_of(origin, places is not None)
        is_found = folder in self._folders if "." not in name else self._is_below(name, folder)
        if not (is_known and is_found) or (places is not None and list(places) != [os.path.dirname(origin)]):
            return
        code = marshal.dumps(loader.get_code(name)) if type(loader) is SourceFileLoader else b""
        self.modules[name] = (
            *(origin, places is not None),
            *(self._size, len(code), zlib.crc32(code)),
            self._stamp(origin),
        )
        self._code.append(code)
        self._size += len(code)

    def _is_below(self, name: str, folder: str) -> bool:
        """Whether the parent of a module is searched there, and the uppermost package is in one of the folders."""
        places, top = (_places(each) for each in (name.rpartition(".")[0], name.partition(".")[0]))
        return places[:1] == [folder] and bool(top) and os.path.dirname(top[0]) in self._folders

    def _stamp(self, path: str) -> tuple[int, int, int] | None:
        """None where the version of Python, or a RECORD, tells of changes."""
        record = self._record_of.get(path)
        if record is not None:
            self._used_records.add(record)
            return None
        return None if _is_of_python(path) else pack.stamp_of(path)


def _spec(name: str, module: ModuleType) -> ModuleSpec | None:
    """Also of what has put itself in the place of a module, as torch.backends does."""
    spec = getattr(module, "__spec__", None)
    if spec is None and isinstance(getattr(module, "__file__", None), str):
        return PathFinder.find_spec(name, _places(name.rpartition(".")[0]))
    return spec


def _places(name: str) -> list[str]:
    places = getattr(sys.modules.get(name), "__path__", None)
    return places if type(places) is list else []


def _is_of_python(path: str) -> bool:
    """Part of the library that comes with Python."""
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    packages = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
    return any(path.startswith(place + os.sep) for place in places) and not any(each in path for each in packages)
