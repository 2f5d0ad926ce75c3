#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests of recorded functions and of halos on a machine with GPUs and a C++ compiler, without CMake and Fortran:
#   tests/gpu/recorded.sh [arguments of pytest]
# PYTHON has torch and pytest. The extension is built for its torch, in build/recorded.
set -e
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
prefix=$PWD/build/recorded
mkdir -p "$prefix/lib"
: > "$prefix/lib/libftn_pytorch.so" # beside which the extension is looked for
sed -n '/^add_library(ftn_pytorch_recording/,/)/s|^ *\([a-z./]*\.cpp\).*|#include "recording/\1"|p' \
  src/recording/CMakeLists.txt > "$prefix/all.cpp"
"$python" - > "$prefix/flags" <<'END'
import os, sysconfig, torch
from torch.utils.cpp_extension import include_paths
lib = os.path.join(os.path.dirname(torch.__file__), "lib")
includes = [f'"-I{each}"' for each in (*include_paths(), sysconfig.get_paths()["include"])]
print(*includes, f'"-L{lib}" -Xlinker -rpath -Xlinker "{lib}"')
print(f"-o build/recorded/lib/_ftn_pytorch_recording.{sysconfig.get_config_var('SOABI')}.so")
END
${CXX:-g++} -std=c++20 -O2 -fPIC -shared -fvisibility=hidden -ffp-contract=off -Isrc \
  -include ftn_pytorch.h -DFPT_RECORDING_VERSION=FPT_VERSION "$prefix/all.cpp" \
  "@$prefix/flags" -ltorch_python -ltorch -ltorch_cpu -lc10
export FTN_PYTORCH_BUILD_DIR="$prefix" PYTHONPATH="$PWD/python:$PYTHONPATH"
exec "$python" -m pytest -q -p no:cacheprovider -rs tests/python/test_recorded*.py tests/python/test_halo_gpus.py "$@"
