# SPDX-License-Identifier: MIT
"""One file with the bytecode of all modules that a script imports, read in place of the files of these modules.

``commands/pack.py`` writes it. Everything else of a module is where it was: ``__file__``, sources, data of packages.

Until a pack is in use, each module costs operations on paths, so this one imports no more than it needs.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
import zlib
from importlib import machinery

from .._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType, ModuleType
    from typing import Any

VARIABLE = "FTN_PYTORCH_PACK"
_OPENING = "ftn_pytorch pack"
_HEADING_BYTES = 4096


def stamp_of(path: str) -> tuple[int, int, int]:
    """What tells later whether a file is the same: time of change in ns, bytes, hash of its bytes. OSError."""
    found = os.stat(path)
    with open(path, "rb") as stream:
        return found.st_mtime_ns, found.st_size, zlib.crc32(stream.read())


def is_unchanged(path: str, stamp: Iterable[Any]) -> bool:
    """One operation where the time is the same; a copy with another time is read."""
    changed, size, content = stamp
    try:
        found = os.stat(path)
        if found.st_mtime_ns == changed or found.st_size != size:
            return found.st_size == size
        with open(path, "rb") as stream:
            return zlib.crc32(stream.read()) == content
    except OSError:
        return False


def time_of_folder(path: str) -> int | None:
    """When a name was last added or removed, in ns; None where there is no folder."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def stems(folder: str) -> frozenset[str] | None:
    """What may be modules in a folder of ``sys.path``, None if that cannot be told."""
    if not os.path.isabs(folder):
        return None
    try:
        return frozenset(name.partition(".")[0] for name in os.listdir(folder))
    except FileNotFoundError:
        return frozenset()
    except OSError:
        return None


def folder_of(origin: str, is_package: bool) -> str:
    """The folder that is searched for a module."""
    folder = os.path.dirname(origin)
    return os.path.dirname(folder) if is_package else folder


def heading(script: str, index: bytes, code_bytes: int) -> bytes:
    """How the file begins. What follows can only be read where the first lines are the same."""
    about = zlib.crc32(index)
    lines = [*_made_with(), script.replace("\n", " "), f"{len(index)} {about} {code_bytes}", ""]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _made_with() -> list[str]:
    """Versions that bytecode depends on."""
    python = " ".join(sys.version.split())
    return [
        _OPENING,
        f"ftn_pytorch {__version__}",
        f"Python {python}, {sys.implementation.cache_tag}",
    ]


def environment() -> dict[str, Any]:
    """What all modules depend on, besides their own files."""
    return {"prefix": sys.prefix, "base_prefix": sys.base_prefix, "optimize": sys.flags.optimize}


class Pack:
    """An open pack, and the finder of its modules.

    file: absolute path. misfit: why its modules must not be used in this process, empty if they may be. script: what
    the pack was made for.

    FILE if the file cannot be read, FORMAT if it is no pack, CORRUPT if it is cut off or damaged.
    """

    def __init__(self, file: str) -> None:
        self.file, self.misfit, self.script = os.path.abspath(file), "", ""
        self.modules: dict[str, tuple[Any, ...]] = {}
        self.told = ""
        self.warns: Callable[[str], None] | None = None
        self._names: dict[str, frozenset[str] | None] = {}
        try:
            # A pipe would be waited for.
            self._descriptor = os.open(self.file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as failure:
            raise self._failure("FILE", f"it cannot be read ({failure.strerror})") from failure
        try:
            self._read()
        except BaseException:
            self.close()
            raise
        if self.misfit:
            self.close()

    def _read(self) -> None:
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise self._failure("FILE", "it is no regular file")
        begin = os.pread(self._descriptor, _HEADING_BYTES, 0)
        lines = begin.split(b"\n", 5)
        if lines[0] != _OPENING.encode():
            raise self._failure("FORMAT", "it is no file of ftn_pytorch pack")
        if len(lines) < 6:
            raise self._failure("CORRUPT", "it is cut off")
        texts = [line.decode("utf-8", "surrogateescape") for line in lines[:5]]
        self.script = texts[3]
        for was, here in zip(texts[1:3], _made_with()[1:]):
            if was != here:
                self.misfit = f"it was made with {was}, and this is {here}"
                return
        try:
            index_bytes, content, code_bytes = texts[4].split()
            size, begins = int(index_bytes), len(begin) - len(lines[5])
            self._begin = begins + size
            is_whole = self._begin + int(code_bytes) == found.st_size
        except ValueError:
            is_whole = False
        index = os.pread(self._descriptor, size, begins) if is_whole else b""
        if not is_whole or zlib.crc32(index) != int(content):
            raise self._failure("CORRUPT", "it is cut off or damaged")
        self._use(marshal.loads(index))

    def _use(self, index: dict[str, Any]) -> None:
        here = environment()
        other = [f"{name} {index[name]!r}, and here it is {here[name]!r}" for name in here if index[name] != here[name]]
        changed = [path for path, stamp in index["stamps"] if not is_unchanged(path, stamp)]
        if other:
            self.misfit = f"it was made with {other[0]}"
        elif changed:
            self.misfit = f"a package has changed: {changed[0]}"
        else:
            self.modules = index["modules"]
            self._names.update(
                (folder, names) for folder, time, names in index["folders"] if time_of_folder(folder) == time
            )

    def _failure(self, status: str, text: str) -> Exception:
        from ..errors import FtnPytorchError

        return FtnPytorchError(status, f"{VARIABLE} is {self.file!r}: {text}. {self._advice()}")

    def _advice(self) -> str:
        import shlex

        command = shlex.join(["ftn_pytorch", "pack", self.script or "SCRIPT", "--output", self.file])
        return f"Make it again: {command}; or unset {VARIABLE}"

    def close(self) -> None:
        """Of a pack that is not used, or not any more."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def warning(self, text: str) -> str:
        """That modules are found as always, why, and what to do."""
        return f"{VARIABLE} is {self.file!r}, and {text}. The program starts slowly. {self._advice()}"

    def _tell(self, text: str) -> None:
        """Warn once. Nothing may be imported meanwhile, since this is part of an import."""
        if not self.told:
            self.told = text
            if self.warns is not None:
                self.warns(self.warning(text))

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> machinery.ModuleSpec | None:
        """Of a module that Python would find in the place where it was when the pack was made."""
        entry = self.modules.get(name)
        if entry is None:
            return None
        origin, is_package, _, size, _, stamp = entry
        folder = folder_of(origin, is_package)
        if not (self._is_first(name, folder) if path is None else type(path) is list and path[:1] == [folder]):
            return None
        if stamp and not is_unchanged(origin, stamp):
            self._tell(f"{origin} has changed since it was made")
            return None
        loader = _Loader(name, origin, self) if size else machinery.ExtensionFileLoader(name, origin)
        spec = machinery.ModuleSpec(name, loader, origin=origin)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(origin)]
        return spec

    def _is_first(self, name: str, home: str) -> bool:
        """Whether no folder before ``home`` on ``sys.path`` may have a module of the name."""
        for folder in sys.path:
            if folder == home:
                return True
            if folder not in self._names:
                self._names[folder] = stems(folder)
            names = self._names[folder]
            if names is None or name in names:
                return False
        return False

    def begin(self) -> None:
        """Be asked before other finders. Folders that are as they were are not looked at for other names."""
        sys.path_importer_cache.update({each: _Folder(each, names) for each, names in self._names.items() if names})
        sys.meta_path.insert(0, self)

    def invalidate_caches(self) -> None:
        """As ``importlib.invalidate_caches`` asks finders to: look into folders again."""
        self._names.clear()

    def code(self, name: str) -> CodeType | None:
        """Of a module; None where the file does not have it any more."""
        _, _, begin, size, content, *_ = self.modules[name]
        try:
            read = os.pread(self._descriptor, size, self._begin + begin)
        except OSError:
            read = b""
        if zlib.crc32(read) == content:
            return marshal.loads(read)
        self._tell("it is damaged, or was written to after the program had started")
        return None


class _Loader(machinery.SourceFileLoader):
    """Of a module with its source, from which all but the code comes."""

    def __init__(self, name: str, path: str, pack: Pack) -> None:
        super().__init__(name, path)
        self._pack = pack

    def get_code(self, fullname: str) -> CodeType | None:
        return self._pack.code(fullname) or super().get_code(fullname)


class _Folder(machinery.FileFinder):
    """A folder of ``sys.path`` whose names are known: it is not looked at for others."""

    def __init__(self, folder: str, names: frozenset[str]) -> None:
        super().__init__(
            folder,
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        )
        self._names: frozenset[str] | None = names

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> machinery.ModuleSpec | None:
        is_there = self._names is None or fullname.rpartition(".")[2] in self._names
        return super().find_spec(fullname, target) if is_there else None

    def invalidate_caches(self) -> None:
        super().invalidate_caches()
        self._names = None


def in_use() -> Pack | None:
    """The pack of this process."""
    return next((finder for finder in sys.meta_path if isinstance(finder, Pack)), None)


def use(file: str) -> None:
    """Find the modules of a pack first, from now on; failures are those of ``Pack``.

    A pack that does not fit is passed over, with a warning of rank 0.
    """
    if in_use() is not None:
        return
    pack = Pack(file)
    if not pack.misfit:
        pack.begin()
    from . import log

    pack.warns = log.job_warning
    if pack.misfit or pack.told:
        pack.warns(pack.warning(pack.misfit or pack.told))
    else:
        log.info(f"modules come from {pack.file}, which has {len(pack.modules)}")
