# SPDX-License-Identifier: MIT
"""Calls of the MPI of the program, which the library makes (``src/base/mpi_ranks.hpp``), by the names of Fortran."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from ..errors import FtnPytorchError
from ..system import process

BACKEND = "ftn_pytorch"
"""Its name as a backend of torch.distributed; see ``mpi_group``."""


def library(purpose: str) -> Any:
    """The module of the library, which calls MPI. ARGUMENT in a plain Python: ranks are those of a program."""
    found = process.host()
    if found is None:
        raise FtnPytorchError(
            "ARGUMENT", f"{purpose} needs the MPI of a program, and no program has started this Python by the library"
        )
    return found


def call(name: str, purpose: str, *arguments: Any) -> None:
    """A subroutine of MPI, which may be none that waits for other ranks; see ``addresses``."""
    library(purpose).call_mpi(purpose, name, addresses(arguments))


def addresses(arguments: Sequence[Any]) -> list[int]:
    """Of objects of ctypes: everything goes to MPI by address, which a ``c_void_p`` is."""
    return [(a.value or 0) if isinstance(a, ctypes.c_void_p) else ctypes.addressof(a) for a in arguments]


def integer_of(name: str, purpose: str, *given: int) -> int:
    """Of a subroutine that takes integers and gives one integer or logical back."""
    answer = ctypes.c_int32()
    call(name, purpose, *map(ctypes.c_int32, given), answer)
    return answer.value


def group_of(group: int, ranks: Sequence[int], purpose: str) -> int:
    """A handle of some ranks of a group, in their order."""
    count, made = ctypes.c_int32(len(ranks)), ctypes.c_int32()
    call("mpi_group_incl_", purpose, ctypes.c_int32(group), count, (ctypes.c_int32 * len(ranks))(*ranks), made)
    return made.value
