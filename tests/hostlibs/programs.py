# SPDX-License-Identifier: MIT
"""The programs: what each is linked with, what is loaded into it before, and where a library is found.

Libraries are looked for where the compiler looks, so LIBRARY_PATH names further folders, and in the environment of
Python, as that of the package mkl. Packages of Python are found by PYTHONPATH.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

DIRECT = "torchscript-direct recording-direct tensors"
PYTHON = "algebra recorded torchscript-python recording-python"
PACKAGES = {
    "with_scipy": "scipy",
    "with_h5py": "h5py",
    "with_netcdf4": "netCDF4",
    "with_onnxruntime": "onnxruntime",
    "with_mpi4py": "mpi4py",
}


@dataclass(frozen=True)
class Program:
    name: str
    """What the page calls it."""
    libraries: tuple[str, ...] = ()
    """Files to link with, each as the compiler finds it."""
    own: tuple[str, ...] = ()
    """What own.c does with them."""
    flags: tuple[str, ...] = ()
    """For the link, behind the libraries."""
    main: str = "main.f90"
    main_flags: tuple[str, ...] = ()
    preloaded: str = ""
    """A file, as the compiler finds it."""
    scripts: tuple[str, ...] = ()
    """Scripts with other packages, by their stems, in place of all paths."""
    foreign: tuple[str, ...] = field(default=())
    """Parts of names of files, one of which a refusal or a warning must name; default: the libraries."""

    @property
    def named(self) -> tuple[str, ...]:
        return self.foreign or tuple(Path(library).name.partition(".")[0] for library in self.libraries)


SHORT, LONG = ("BLAS_INTEGER=int32_t",), ("BLAS_INTEGER=int64_t",)
REFERENCE = ("lapack/liblapack.so.3", "blas/libblas.so.3")
OPENBLAS = ("openblas-pthread/libopenblas.so.0",)
BLIS = ("blis-pthread/libblis.so.4",)
FLEXIBLAS = ("libflexiblas.so.3",)
LONG_REFERENCE = ("blas64/libblas64.so.3",)
MKL = ("libmkl_intel_lp64.so.3", "libmkl_sequential.so.3", "libmkl_core.so.3")
INTEL_MKL = ("libmkl_intel_lp64.so.3", "libmkl_intel_thread.so.3", "libmkl_core.so.3", "libiomp5.so")
LONG_MKL = ("libmkl_intel_ilp64.so.3", *MKL[1:])
ARCHIVES = ("-Wl,--whole-archive", "blas/libblas.a", "-Wl,--no-whole-archive", "lapack/liblapack.a")
NETCDF = ("libnetcdf.so.19", "libhdf5_serial.so.103")
HDF5 = ("libhdf5_serial.so.103",)
JEMALLOC, TCMALLOC, MIMALLOC = "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"
LAPACK = (*SHORT, "LAPACK")
RDYNAMIC = ("-rdynamic",)

PROGRAMS = [
    Program("no such library"),
    Program("reference BLAS and LAPACK", REFERENCE, LAPACK),
    Program("OpenBLAS", OPENBLAS, LAPACK),
    Program("BLIS", BLIS, SHORT),
    Program("FlexiBLAS", FLEXIBLAS, LAPACK),
    Program("MKL", MKL, LAPACK),
    Program("reference BLAS with integers of 8 bytes", LONG_REFERENCE, LONG),
    Program("MKL with integers of 8 bytes (ILP64)", LONG_MKL, (*LONG, "LAPACK")),
    Program("static reference BLAS and LAPACK", ARCHIVES, LAPACK),
    Program("the same, linked with `-rdynamic`", ARCHIVES, LAPACK, RDYNAMIC, foreign=("program",)),
    Program("MKL with Intel's OpenMP", INTEL_MKL, LAPACK),
    Program("a procedure `sgemm` of 8-byte reals, and `-rdynamic`", (), ("OWN_SGEMM",), RDYNAMIC, foreign=("program",)),
    Program("NetCDF and HDF5", NETCDF, ("NETCDF", "HDF5")),
    Program("a main in C, reference BLAS and LAPACK", REFERENCE, LAPACK, main="main.c"),
    Program("a main in C++ with `-fPIC`, reference BLAS and LAPACK", REFERENCE, LAPACK, (), "main.cpp", ("-fPIC",)),
    Program("a main in C++", main="main.cpp"),
    Program("a main in C++, reference BLAS and LAPACK", REFERENCE, LAPACK, main="main.cpp"),
    Program("a main in C++, OpenBLAS", OPENBLAS, LAPACK, main="main.cpp"),
    Program("a program that has started Python itself", main="main_python.c"),
    Program("the same, reference BLAS and LAPACK", REFERENCE, LAPACK, main="main_python.c"),
    Program("jemalloc, preloaded", preloaded=JEMALLOC),
    Program("tcmalloc, preloaded", preloaded=TCMALLOC),
    Program("mimalloc, preloaded", preloaded=MIMALLOC),
    Program("jemalloc, linked", (JEMALLOC,)),
    Program("jemalloc, preloaded, and reference BLAS and LAPACK", REFERENCE, LAPACK, preloaded=JEMALLOC),
    Program("tcmalloc, preloaded, and OpenBLAS", OPENBLAS, LAPACK, preloaded=TCMALLOC),
    Program("jemalloc, linked, and OpenBLAS", (JEMALLOC, *OPENBLAS), LAPACK),
    Program("mimalloc, preloaded, and MKL", MKL, LAPACK, preloaded=MIMALLOC),
    Program("jemalloc, preloaded, and BLAS with integers of 8 bytes", LONG_REFERENCE, LONG, preloaded=JEMALLOC),
    Program("jemalloc, preloaded, and MKL (ILP64)", LONG_MKL, (*LONG, "LAPACK"), preloaded=JEMALLOC),
]
WITH_PACKAGES = [
    Program("no such library", scripts=("with_scipy", "with_onnxruntime", "with_h5py", "with_netcdf4")),
    Program("reference BLAS and LAPACK", REFERENCE, LAPACK, scripts=("with_scipy", "with_onnxruntime")),
    Program("OpenBLAS", OPENBLAS, LAPACK, scripts=("with_scipy", "with_onnxruntime")),
    Program("MKL (ILP64)", LONG_MKL, (*LONG, "LAPACK"), scripts=("with_scipy", "with_onnxruntime")),
    Program("HDF5", HDF5, ("HDF5",), scripts=("with_h5py", "with_netcdf4")),
    Program("NetCDF and HDF5", NETCDF, ("NETCDF", "HDF5"), scripts=("with_h5py", "with_netcdf4")),
    Program(
        "jemalloc, preloaded, and NetCDF and HDF5",
        NETCDF,
        ("NETCDF", "HDF5"),
        preloaded=JEMALLOC,
        scripts=("with_h5py", "with_netcdf4"),
    ),
    Program("the MPI of `mpi_f08`, two ranks", scripts=("with_mpi4py",)),
]


@cache
def found(compiler: str, file: str) -> Path | None:
    """Where a library is."""
    printed = subprocess.run([compiler, f"-print-file-name={file}"], capture_output=True, text=True, check=True).stdout
    for path in (Path(printed.strip()), Path(sys.prefix, "lib", file)):
        if path.is_absolute() and path.exists():
            return path.absolute()
    return None


def search_path() -> list[str]:
    """Folders in which libraries of libraries are looked for."""
    return [folder for folder in os.environ.get("LIBRARY_PATH", "").split(":") if folder]


def missing(program: Program, compiler: str) -> str:
    """What there is not of what a program needs; empty if nothing."""
    wanted = [file for file in (*program.libraries, program.preloaded) if re.match(r"[^-]", file)]
    return ", ".join(file for file in wanted if not found(compiler, file))
