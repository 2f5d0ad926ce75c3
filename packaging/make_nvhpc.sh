#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# nvfortran of the NVIDIA HPC SDK, with gcc for C and C++, as torch is built: make_nvhpc.sh [PREFIX [OPTION OF CMAKE...]]
export CC=${CC:-gcc} CXX=${CXX:-g++} FC=${FC:-nvfortran}
# The newest below the usual folder, unless a module has put one on the path.
command -v "$FC" >/dev/null ||
  PATH=$(printf '%s\n' /opt/nvidia/hpc_sdk/Linux_"$(uname -m)"/*/compilers/bin | sort -V | tail -n 1):$PATH
exec "$(dirname "$0")/build.sh" nvhpc "$@"
