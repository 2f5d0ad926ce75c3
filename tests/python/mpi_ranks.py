# SPDX-License-Identifier: MIT
"""Ranks of a real MPI as processes of Python, which have the Fortran bindings of MPI as programs in Fortran do.

The library calls MPI, for a Python that it has not started.
Each case has ranks of its own: what one leaves behind, or a rank that hangs, is met by no other.
"""

import ctypes.util
import json
import os
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path

import pytest
import warm
from mpi_environment import MPI_ENVIRONMENT

import program

# By name: what starts ranks, the library with the Fortran bindings, the handle of MPI_COMM_WORLD.
IMPLEMENTATIONS = {
    "Open MPI": ("mpirun.openmpi", "mpi_mpifh", 0),
    "MPICH": ("mpiexec.mpich", "mpichfort", 0x44000000),
}

BEGIN = """
import ctypes, json, os, sys, time, warnings
LIBRARY, WORLD, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
mpi = ctypes.CDLL(LIBRARY, ctypes.RTLD_GLOBAL)
code = ctypes.c_int32()
mpi.mpi_init_(ctypes.byref(code))
import torch
torch.set_num_threads(1)
import ftn_pytorch
from ftn_pytorch.system import installation, process
library = ctypes.CDLL(installation.library())
assert library.fpt_init(None, ctypes.c_int64(0)) == 0

@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
def warn(text, length):
    warnings.warn(ctypes.string_at(text, length).decode(), process.FtnPytorchWarning)

library.fpt_on_warning(warn)
from ftn_pytorch import average_gradients, errors
from ftn_pytorch.ranks import communicator, failed_calls, sums
ours = communicator.opened(WORLD)
rank, size = ours.rank, ours.size

def told(function, *arguments, **named):
    try:
        return function(*arguments, **named)
    except Exception as failure:
        return list(errors.describe(failure, ""))

def tell(answer):
    with open(os.path.join(FOLDER, f"answer{rank}"), "w") as file:
        json.dump(answer, file)

def end(answer):
    # not where ranks are gone, or where what was begun cannot end
    tell(answer)
    mpi.mpi_finalize_(ctypes.byref(code))
    os._exit(0)

def leave(answer, *ranks):
    # once those ranks have told theirs: the one that goes first would be what the others report
    tell(answer)
    files = [os.path.join(FOLDER, f"answer{each}") for each in ranks]
    latest = time.monotonic() + 60
    while time.monotonic() < latest and not all(map(os.path.exists, files)):
        time.sleep(0.05)
    os._exit(0)
"""


def implementations():
    """As parameters of a test, those that are not here last and skipped."""
    here = {
        name: bool(_library(library) and shutil.which(start)) for name, (start, library, _) in IMPLEMENTATIONS.items()
    }
    return [
        pytest.param(
            name,
            id=name.replace(" ", ""),
            marks=() if here[name] else pytest.mark.skip(reason=f"no {name} with Fortran bindings is here"),
        )
        for name in sorted(here, key=here.get, reverse=True)
    ]


def _library(name):
    """Of the folders that the loader is told of, too, which ``find_library`` does not look into."""
    found = ctypes.util.find_library(name)
    folders = filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    return found or next((str(each) for folder in folders for each in Path(folder).glob(f"lib{name}.so.*")), None)


def run(size, folder, code, implementation="Open MPI", options=(), expect=0, timeout=600):
    """What the ranks gave to ``tell``, ``end`` or ``leave``, in their order; those that ended otherwise are left out.

    ``expect``: exit code of the launcher, None for any.
    """
    start, library, world = IMPLEMENTATIONS[implementation]
    environment = {
        **os.environ,
        "PYTHONPATH": program.PYTHONPATH,
        "ftn_pytorch_ROOT": os.environ.get("FTN_PYTORCH_BUILD_DIR", ""),
        **MPI_ENVIRONMENT,
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMP_NUM_THREADS": "1",
    }
    folder = Path(tempfile.mkdtemp(dir=folder))
    file = folder / "rank.py"
    file.write_text(BEGIN + textwrap.dedent(code))
    command = [start, "-n", str(size), *options, *warm.command([file, _library(library), world, folder])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    assert expect is None or done.returncode == expect, done.stdout + done.stderr
    files = [folder / f"answer{rank}" for rank in range(size)]
    return [json.loads(file.read_text()) for file in files if file.exists()]
