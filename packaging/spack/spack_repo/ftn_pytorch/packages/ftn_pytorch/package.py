# SPDX-License-Identifier: MIT
# ruff: noqa: F403, F405, I001
"""Recipe of a build from source, with all that a build has; the wheel is not used."""

import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class FtnPytorch(CMakePackage):
    """Call the functions of Python and PyTorch scripts from Fortran programs, and run saved models, on the arrays of
    the program and without copies."""

    # There is no public address: the archive lies in the folder where spack is run, or in a mirror.
    #   git archive --prefix=ftn_pytorch-0.2.0/ -o ftn_pytorch-0.2.0.tar.gz v0.2.0
    manual_download = True
    url = f"file://{os.getcwd()}/ftn_pytorch-0.2.0.tar.gz"

    license("MIT")

    # No sum, so spack asks whether to go on; `spack checksum ftn-pytorch` prints the line to put here.
    version("0.2.0")

    variant("torch", default=True, description="PyTorch for the scripts; without it they have NumPy")
    variant("direct", default=True, when="+torch", description="Saved models and recorded steps through libtorch")
    variant("ftorch", default=False, description="Modules with the interface of FTorch")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.20:", type="build")
    generator("ninja")

    # Programs open the shared libpython when they need it.
    extends("python")
    depends_on("python@3.10:+shared", type=("build", "link", "run"))
    depends_on("py-pybind11@2.11:", type="build")
    depends_on("py-fypp@3.2:", type="build")
    depends_on("py-numpy", type="run")
    depends_on("py-torch", type="run", when="+torch")
    depends_on("py-torch@2.11:", type=("build", "link", "run"), when="+direct")

    def cmake_args(self):
        return [
            self.define("Python_EXECUTABLE", self.spec["python"].command.path),
            self.define("FTN_PYTORCH_BUILD_TESTS", False),
            self.define("FTN_PYTORCH_BUILD_EXAMPLES", False),
            self.define("FTN_PYTORCH_BUILD_BENCHMARKS", False),
            self.define("FTN_PYTORCH_DIRECT", self.spec.satisfies("+direct")),
            self.define_from_variant("FTN_PYTORCH_FTORCH", "ftorch"),
        ]
