# SPDX-License-Identifier: MIT
"""Scripts that one process cannot load for others."""

import sys
import threading
import time
import types

import ftn_pytorch
from ftn_pytorch.system import process


def ftn_pytorch_setup(way):
    if way == "thread":
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    elif way == "rank":
        ftn_pytorch.rank()
    elif way == "host":
        ftn_pytorch.host()
    elif way == "mpi":
        sys.modules["mpi4py"] = types.ModuleType("mpi4py")
        sys.modules["mpi4py"].__path__ = []
        import mpi4py.MPI  # noqa: F401
    elif way == "sum":
        import ctypes

        from ftn_pytorch.ranks import communicator

        numbers = (ctypes.c_double * 3)(1, 1, 1)
        communicator.current().combine(ctypes.addressof(numbers), 3, 7, "sum", "a sum")
    elif way == "halo":
        from ftn_pytorch.halo import Exchange

        Exchange((3, 3), 1, grid=(1, 1))
    elif way == "end":
        import os

        os._exit(3)
    else:
        process.warn("a warning of a load that fails")
        raise RuntimeError(way)
