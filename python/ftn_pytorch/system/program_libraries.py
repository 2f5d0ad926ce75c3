# SPDX-License-Identifier: MIT
"""Libraries of the program that the loader gives to torch and to modules in place of their own; see the core.

Nothing is watched where the program has no function under a name of theirs.
"""

from __future__ import annotations

import glob
import mmap
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from ..errors import FtnPytorchError
from . import process

OF_PROGRAM = "the program has started Python itself, so that modules are opened as it wants"


def obstacle(found: Mapping[str, Any]) -> str:
    """Why modules do not take their own names first; empty where they do. ``found``: what the core has found."""
    return OF_PROGRAM if process.is_adopted() else found["obstacle"]


def watch() -> None:
    """At the start: look at what is imported, where functions of the program could take the place of others."""
    found = process.host().program_libraries()
    why = obstacle(found)
    if found["torch"]:
        if "torch" in sys.modules:
            _require_right_numbers(sys.modules["torch"], why)
        else:
            sys.meta_path.insert(0, _Torch(why))
    if found["modules"] and why:
        sys.addaudithook(_Modules(found["modules"], why).event)


class _Torch:
    """Finds torch as others do, tries the BLAS of the program before torch is opened, and its numbers afterwards."""

    def __init__(self, why: str) -> None:
        self._why = why
        self._refused: tuple[ModuleType, FtnPytorchError] | None = None

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch" or path is not None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = cast(Loader, _Checked(spec.loader, self))
                return spec
        return None

    def require_usable(self) -> None:
        if self._refused:
            raise FtnPytorchError(*self._refused[1].args)
        if self._why:
            process.host().require_usable_blas(self._why)

    def require_right(self, torch: ModuleType) -> None:
        try:
            _require_right_numbers(torch, self._why)
        except FtnPytorchError as failure:
            # It would be taken down, and the libraries of torch keep objects of it until the process ends.
            self._refused = torch, failure
            raise
        sys.meta_path.remove(self)


class _Checked:
    """A loader whose module is looked at before and after its import; everything else is the loader's own."""

    def __init__(self, loader: Any, finder: _Torch) -> None:
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        self._finder.require_usable()
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._finder.require_right(module)


def _require_right_numbers(torch: Any, why: str) -> None:
    process.host().judge_numbers(wrong_function(torch), why)


def wrong_function(torch: Any) -> str:
    """The function of torch that gives wrong numbers, "vdot"; empty where all are right that use a BLAS or LAPACK.

    Whole numbers are compared with what torch computes without a BLAS. Changes no state of torch.
    """
    with torch.no_grad():
        for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
            for function in _wrong(torch, dtype):
                return function
    return ""


def _wrong(torch: Any, dtype: Any) -> Iterator[str]:
    def numbers(first: int, *shape: int) -> Any:
        count = torch.Size(shape).numel()
        values = torch.arange(first, first + count, dtype=torch.int64, device="cpu").remainder(5).view(shape)
        return values.to(dtype) * (1 + 2j) if dtype.is_complex else values.to(dtype)

    def product(a: Any, b: Any) -> Any:
        return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)

    for n in (3, 40):
        a, b = numbers(0, 2, n, n), numbers(2, 2, n, n)
        x, y = a[0][1], b[1][2]
        for name, found, right in (
            ("mm", torch.mm(a[0], b[0]), product(a[0], b[0])),
            ("bmm", torch.bmm(a, b), product(a, b)),
            ("mv", torch.mv(a[0], y), (a[0] * y).sum(-1)),
            ("dot", torch.dot(x, y), (x * y).sum()),
            ("vdot", torch.vdot(x, y), (x.conj().resolve_conj() * y).sum()),
        ):
            if not torch.equal(found, right):
                yield name
    factor = numbers(1, 3, 3).tril(-1) + 2 * torch.eye(3, dtype=dtype, device="cpu")
    found = torch.linalg.cholesky_ex(product(factor, factor.mH.resolve_conj()))[0]
    if not torch.allclose(found, factor, 1e-3, 1e-3):
        yield "linalg.cholesky"


class _Modules:
    """Refuses extension modules that would be given an HDF5 or NetCDF of another version than they bring."""

    def __init__(self, functions: Mapping[str, str], why: str) -> None:
        self._functions = functions
        self._why = why

    def event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """For ``sys.addaudithook``: the import of an extension module has its file."""
        if event != "import" or not isinstance(arguments[1], str):
            return
        name, file = arguments[:2]
        for function, library in self._functions.items():
            bringing = [path for path in _libraries_of(name, file) if _names(path, function)]
            # Of one environment or distribution, both are the same library, and the loader has it only once.
            if bringing and not any(_names(path, os.path.basename(library)) for path in bringing):
                raise FtnPytorchError(
                    "LIBRARY",
                    f"the module {name} ({file}) would be given {function} of {library}, which the program is linked "
                    f'with, in place of its own: {self._why}. Load with per="node", or use a Python whose packages are '
                    "built with the library of the program",
                )


def _libraries_of(name: str, file: str) -> list[str]:
    """The file of an extension module, and the libraries that its wheel brings."""
    top = name.partition(".")[0]
    packages = os.path.abspath(file)
    for _ in name.split("."):
        packages = os.path.dirname(packages)
    return [file, *glob.glob(os.path.join(glob.escape(packages), f"{glob.escape(top)}.libs", "*.so*"))]


def _names(file: str, text: str) -> bool:
    """Whether a library has a name in one of its tables."""
    try:
        with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(b"\0" + os.fsencode(text) + b"\0") >= 0
    except (OSError, ValueError):
        return False
