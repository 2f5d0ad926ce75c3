# SPDX-License-Identifier: MIT
"""Files: finding one, and importing a script under its stem."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import linecache
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any

from ..errors import FtnPytorchError, did_you_mean, message, report, summary, trace
from ..system import log
from ..values.code_names import named_by
from . import shadowing

# Folders that loads put on sys.path. Scripts of the same stem in several of them do not hide modules.
_script_folders: set[str] = set()

ARCHIVE = b"PK\x03\x04"
"""How a zip archive begins."""


def script_folders() -> frozenset[str]:
    """Folders that loads of this process have put on ``sys.path``."""
    return frozenset(_script_folders)


def inherit_script_folders(folders: Iterable[str]) -> None:
    """Take those of a parent, whose ``sys.path`` a child has as well."""
    _script_folders.update(folders)


def find(file: str) -> str:
    """Absolute path of a file that can be read; FILE otherwise."""
    if not file.strip():
        raise FtnPytorchError("FILE", "the file name is empty")
    path = file
    try:
        path = os.path.abspath(file)
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise FtnPytorchError("FILE", f"{path} is a directory, name a file in it")
        if not stat.S_ISREG(mode):
            raise FtnPytorchError("FILE", f"{path} is no regular file")
        with open(path, "rb"):
            return path
    except FileNotFoundError:
        raise FtnPytorchError("FILE", f"{path} does not exist{_similar(file, path)}") from None
    except (OSError, ValueError) as failure:
        raise FtnPytorchError("FILE", f"{path!r} cannot be read: {failure}") from failure


def is_source(path: str) -> bool:
    """True for a script: a file that ends in .py and is no archive under such a name."""
    with open(path, "rb") as stream:
        return path.lower().endswith(".py") and stream.read(4) != ARCHIVE


def _similar(file: str, path: str) -> str:
    folder, name = os.path.split(path)
    hint = "" if os.path.isabs(file) else f" (the name was {file!r}, relative to the working directory)"
    if not os.path.isdir(folder):
        return f"{hint}; there is no directory {folder} either"
    if os.path.islink(path):
        return f"{hint}: it is a link to {os.readlink(path)!r}, which is not there"
    neighbours: list[str] = []
    with contextlib.suppress(OSError):
        neighbours = [entry for entry in os.listdir(folder) if "." in entry]  # no programs
    return hint + did_you_mean(name, neighbours)


def module_name(path: str) -> str:
    """Free name for a module made of a script: its stem, else ``stem__2``, ``stem__3``, ...

    The stem is not free either where it would hide a module that can be imported, for the whole process.
    """
    stem = os.path.splitext(os.path.basename(path))[0].replace(".", "_")
    if stem not in sys.modules and stem not in shadowing.RESERVED:
        if not _hides_module(stem, path):
            return stem
        log.job_warning(f"{path} has the name of a Python module: a later 'import {stem}' finds the script. Rename it.")
    number = 2
    while f"{stem}__{number}" in sys.modules:
        number += 1
    return f"{stem}__{number}"


def _hides_module(stem: str, path: str) -> bool:
    origin = shadowing.installed(stem, {*_script_folders, os.path.dirname(path)})
    return origin is not None and (not os.path.exists(origin) or not os.path.samefile(origin, path))


class OngoingLoad:
    """A script that is run and set up."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.made: list[Any] = []
        """What the script makes that another process must find, in this order."""
        self.folder = os.getcwd()
        """The working directory before the script runs."""


_loads: list[OngoingLoad] = []


@contextlib.contextmanager
def begun(runner: Any) -> Iterator[OngoingLoad]:
    """While the script of a runner is run and set up, ``current`` tells so."""
    _loads.append(OngoingLoad(runner))
    try:
        yield _loads[-1]
    finally:
        _loads.pop()


def current() -> OngoingLoad | None:
    """The load that goes on just now."""
    return _loads[-1] if _loads else None


@contextlib.contextmanager
def undone_on_failure(path: str, name: str) -> Iterator[None]:
    """Put the script's directory first on ``sys.path``; when the body fails, leave no trace of it.

    IMPORT if that would hide from everybody what this package itself imports, and has not imported yet.

    Undone are the module called ``name``, imports of modules of the directory, and every change of ``sys.path``. On
    success the directory stays, so that functions can import neighbours later, and so that workers of multiprocessing
    find the script.
    """
    folder = os.path.dirname(path)
    for needed, text in shadowing.explain(shadowing.NEEDED, folder, _script_folders).items():
        if needed not in sys.modules:
            raise FtnPytorchError("IMPORT", f"{path} cannot be loaded: {text}")
    shadowing.reserve()
    paths, modules, previous = list(sys.path), set(sys.modules), sys.modules.get(name)
    sys.path[:] = [folder, *(other for other in paths if other != folder)]
    try:
        yield
    except BaseException as failure:
        neighbours = [new for new in set(sys.modules) - modules if _is_neighbour(new, folder)]
        explained = _with_hidden_modules(failure, {new.partition(".")[0] for new in neighbours} - {name}, folder)
        sys.path[:] = paths
        restore_module(name, previous)
        for new in neighbours:
            sys.modules.pop(new, None)
        if explained is not failure:
            raise explained from failure
        raise
    _script_folders.add(folder)


def _is_neighbour(name: str, folder: str) -> bool:
    """True if the module, or the package it is part of, is Python source in the folder itself."""
    top = sys.modules.get(name.partition(".")[0])
    source = getattr(top, "__file__", None) or ""
    stem = source[: -len("/__init__.py")] if source.endswith("__init__.py") else source
    return source.endswith(".py") and os.path.dirname(stem) == folder


def execute(path: str, name: str) -> ModuleType:
    """Run a script as a new module ``name``, put it into ``sys.modules`` and return it.

    Raises SYNTAX, IMPORT or SCRIPT; what it leaves behind then is cleared by ``undone_on_failure``.
    """
    loader = importlib.machinery.SourceFileLoader(name, path)
    spec = importlib.machinery.ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    code = _compile(loader, path)
    # Tracebacks take lines from here; a source changed within the clock's resolution would not be seen to be another.
    linecache.cache.pop(path, None)
    sys.modules[name] = module
    try:
        run(path, exec, code, vars(module))
    except FtnPytorchError as failure:
        raise _with_hidden_modules(failure, _imported(code), os.path.dirname(path)) from failure
    _warn_of_foreign_neighbours(path, code)
    _warn_of_hidden_modules(path, code)
    return module


def restore_module(name: str, module: ModuleType | None) -> None:
    """Put back what ``sys.modules`` held under a name."""
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module


def forget_module(name: str, path: str) -> None:
    """Free the name of a script that is gone, unless another one has it meanwhile."""
    if getattr(sys.modules.get(name), "__file__", None) == path:
        sys.modules.pop(name, None)


def _compile(loader: importlib.machinery.SourceFileLoader, path: str) -> CodeType:
    # Not through loader.get_code: byte code in __pycache__ counts as current for a source of the same size that was
    # changed within the same second, as happens between a load and a reload.
    try:
        return loader.source_to_code(loader.get_data(path), path)
    except (SyntaxError, ValueError) as failure:
        text = f"{path} is not valid Python: {summary(failure)}\n{message(failure)}"
        raise FtnPytorchError("SYNTAX", text) from failure


def run(path: str, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Call something that runs code of a script while it is loaded: IMPORT or SCRIPT for what it raises."""
    try:
        return function(*args, **kwargs)
    except FtnPytorchError:
        raise
    except ImportError as failure:
        raise FtnPytorchError("IMPORT", import_text(path, failure)) from failure
    except BaseException as failure:
        raise FtnPytorchError("SCRIPT", f"{path} failed while it was loaded: {report(failure)}") from failure


def import_text(path: str, failure: ImportError) -> str:
    """What was imported, for which interpreter, and where it was looked for."""
    begin = f"{path} needs a module that cannot be imported: {summary(failure)}\n"
    if "relative import" in str(failure):
        advice = 'A script is no part of a package. Its folder is searched: write "import name" for a file beside it.'
        return f"{begin}{advice}\n{trace(failure)}"
    if not isinstance(failure, ModuleNotFoundError):
        return begin + trace(failure)
    version = ".".join(map(str, sys.version_info[:3]))
    searched = "\n".join(f"  {folder}" for folder in sys.path)
    return (
        f"{begin}"
        f"The interpreter is {sys.executable} (Python {version}). Install the module for it, or name another "
        f"interpreter with FTN_PYTORCH_PYTHON. These folders were searched:\n{searched}\n{trace(failure)}"
    )


def imports(code: CodeType) -> list[str]:
    """Names of the modules that a piece of code, or a function defined in it, imports."""
    return named_by(code, "IMPORT_NAME")


def _imported(code: CodeType) -> set[str]:
    """Top-level names of what it imports; relative imports have none."""
    return {name.partition(".")[0] for name in imports(code)} - {""}


def _warn_of_foreign_neighbours(path: str, code: CodeType) -> None:
    """Python imports a name once: a script may get the ``helpers`` that lies beside another script."""
    folder = os.path.dirname(path)
    for name in _imported(code):
        beside = os.path.join(folder, f"{name}.py")
        used = getattr(sys.modules.get(name), "__file__", None)
        if used and beside != path and os.path.isfile(beside) and not os.path.samefile(beside, used):
            log.job_warning(f"{path} imports {name!r} and got {used}, not {beside}: rename one of the two")


def _warn_of_hidden_modules(path: str, code: CodeType) -> None:
    """Warn of neighbours that the script gets, or would get, in place of installed modules."""
    folder = os.path.dirname(path)
    for name, text in shadowing.explain(_imported(code), folder, _script_folders).items():
        if name not in sys.modules or _is_neighbour(name, folder):
            log.job_warning(text)


def _with_hidden_modules(failure: BaseException, names: Iterable[str], folder: str) -> BaseException:
    """The failure of a load, with what the folder of the script hides of these names."""
    if not isinstance(failure, FtnPytorchError):
        return failure
    hiding = [text for text in shadowing.explain(names, folder, _script_folders).values() if text not in failure.text]
    return FtnPytorchError(failure.status, "\n".join([failure.text, *hiding])) if hiding else failure
