# SPDX-License-Identifier: MIT
"""Calls of the MPI of the program.

It is called by the names of its Fortran bindings in the libraries that the program has loaded. So nothing is built
against an MPI, and a handle of Fortran is all that has to be known of it. No constant of an implementation is needed.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import FtnPytorchError

BACKEND = "ftn_pytorch"
"""Its name as a backend of torch.distributed; see ``mpi_group``."""
# Behind an integer, for an MPI with integers of 8 bytes.
_UNTOUCHED = 0x5A5A5A5A << 32


def require_running(purpose: str) -> None:
    """ARGUMENT if MPI does not run, or if it is one whose integers have another size."""
    what = f"{purpose} needs a running MPI"
    flag = ctypes.c_int64(_UNTOUCHED)
    call("mpi_initialized_", what, flag)
    is_running, behind = flag.value & 0xFFFFFFFF, flag.value >> 32
    if behind != _UNTOUCHED >> 32:
        raise FtnPytorchError(
            "ARGUMENT",
            f"{purpose}: the MPI of this process has integers of 8 bytes (ILP64), and is called with those of 4: link "
            "the program with the MPI that has these",
        )
    if not is_running:
        raise FtnPytorchError("ARGUMENT", f"{what}, and MPI_Init has not been called yet")
    if integer_of("mpi_finalized_", what):
        raise FtnPytorchError("ARGUMENT", f"{what}, and MPI_Finalize has been called: do this before")


@functools.cache
def _subroutine(name: str) -> Callable[..., None]:
    """A Fortran binding of MPI among what the program has loaded; AttributeError if there is none."""
    found = getattr(ctypes.CDLL(None), name)
    found.restype = None
    return found


def call(name: str, purpose: str, *arguments: Any) -> None:
    """A subroutine of MPI: everything by address, which a ``c_void_p`` is, the error code last."""
    prepared(name, purpose, *arguments)()


def prepared(name: str, purpose: str, *arguments: Any) -> Callable[[], None]:
    """Calls a subroutine, as ``call`` does, with the same arguments each time."""
    try:
        subroutine = _subroutine(name)
    except AttributeError:
        raise FtnPytorchError(
            "ARGUMENT",
            f"{purpose}: there is no {name} in this process, a Fortran binding of MPI. Either the program does not use "
            "MPI, or the bindings of its MPI have other names, or MPI was linked statically or came with a library "
            "that was opened with RTLD_LOCAL",
        ) from None
    code = ctypes.c_int32()
    given = [a if isinstance(a, (ctypes.Array, ctypes.c_void_p)) else ctypes.byref(a) for a in (*arguments, code)]

    def run() -> None:
        subroutine(*given)
        if code.value:
            text = f"{purpose}: {name.rstrip('_')} has failed with error code {code.value} of MPI"
            raise FtnPytorchError("PYTHON", text)

    return run


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
