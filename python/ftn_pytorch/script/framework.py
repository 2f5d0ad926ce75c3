# SPDX-License-Identifier: MIT
"""Whether a script gets its arrays as torch tensors or as NumPy arrays: decided from the script, never by importing."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ..errors import FtnPytorchError
from ..values import is_array, is_tensor
from ..values.walk import Kind, Walk
from .conventions import FRAMEWORK as OVERRIDE
from .loading import import_text, imports

NUMPY = "numpy"
TORCH = "torch"
_CODE = (Kind.FUNCTION, Kind.CLASS, Kind.NAMESPACE)

# Scripts whose load brought torch into the process by a way that is not seen in their names. A second instance of the
# same file must be told the same.
_brought_torch: set[str] = set()


def is_torch_loaded() -> bool:
    """True if torch is imported in this process, by whomever."""
    return "torch" in sys.modules


def import_torch(path: str) -> Any:
    """torch, for a file that needs it; IMPORT if it is not there."""
    try:
        import torch
    except ImportError as failure:
        raise FtnPytorchError("IMPORT", import_text(path, failure)) from failure
    return torch


def note_bringing_torch(path: str) -> None:
    """Let ``decide`` take a script as one whose load brought torch into the process, though torch is there already."""
    _brought_torch.add(path)


def decide(module: ModuleType, path: str, torch_was_loaded: bool) -> str:
    """``TORCH`` or ``NUMPY`` for a script that has been run.

    The script's own ``ftn_pytorch_framework`` decides. Without it, a script uses torch if it, or a module that it
    imported, has a name that is of torch, if one of its hooks imports torch, or if torch came into the process while it
    ran. Whether another script uses torch plays no part.
    """
    override = vars(module).get(OVERRIDE)
    if override is not None:
        if override not in (NUMPY, TORCH):
            raise FtnPytorchError(
                "SCRIPT", f'{path} sets {OVERRIDE} to {override!r}, it must be "{TORCH}" or "{NUMPY}"'
            )
        return override
    if is_torch_loaded() and not torch_was_loaded:
        _brought_torch.add(path)
    if path in _brought_torch or _names_torch(module) or _hooks_import_torch(module):
        return TORCH
    return NUMPY


def _names_torch(script: ModuleType) -> bool:
    """Look through all names that code of the script can reach, and those of the packages that they come from."""
    homes: set[str] = set()
    for edge in Walk([(script.__name__, script)], enters=lambda value, kind: kind in _CODE):
        if edge.holder is sys.modules:  # what a function imports when it runs; of hooks it counts, see below
            continue
        if _is_of_torch(edge.value):
            return True
        home = sys.modules.get(name := _home(edge.value))
        if home is not None and name not in homes:
            homes.add(name)
            if any(map(_is_of_torch, list(vars(home).values()))):
                return True
    return False


def _home(value: Any) -> str:
    """Name of the module that a value is or comes from."""
    if isinstance(value, ModuleType):
        return value.__name__
    home = getattr(value, "__module__", None) if callable(value) else None
    return home if isinstance(home, str) else ""


def _is_of_torch(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return _is_torch(value.__name__)
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    return any(_is_torch(kind.__module__) for kind in kinds) or _is_torch(_home(value))


def _is_torch(name: Any) -> bool:
    return isinstance(name, str) and (name == "torch" or name.startswith("torch."))


def _hooks_import_torch(module: ModuleType) -> bool:
    codes = (
        getattr(value, "__code__", None) for name, value in vars(module).items() if name.startswith("ftn_pytorch_")
    )
    return any(_is_torch(name) for code in codes if code is not None for name in imports(code))


def fresh(value: Any, framework: str) -> Any:
    """A copy of an array, as the script's framework has it; other values pass."""
    if is_tensor(value):
        return value.clone() if framework == TORCH else value.clone().numpy()
    if not is_array(value):
        return value
    if framework == NUMPY:
        return value.copy()
    import torch

    return torch.from_numpy(value.copy())
