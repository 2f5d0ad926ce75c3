#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Build with the compilers in CC, CXX and FC, install, and run the first program against the installed copy.
# make_gnu.sh and its like call this:
#
#   build.sh NAME [PREFIX [OPTION OF CMAKE...]]      PREFIX: out/NAME if it is not given
#
# The Python is FTN_PYTORCH_PYTHON, an active environment, or .venv, which is made if need be: see cmake/setup.sh.
set -euo pipefail
name=$1
prefix=$(realpath -m "${2:-$(dirname "$0")/../out/$name}")
options=("${@:3}")
cd "$(dirname "$0")/.."

for compiler in "$CC" "$CXX" "$FC"; do
  command -v "$compiler" >/dev/null || {
    echo "make_$name.sh: there is no $compiler. Load its module, or name another compiler in CC, CXX or FC." >&2
    exit 1
  }
done
cmake/setup.sh demo
# shellcheck source=/dev/null
. build/environment

build=build/release-$name
cmake --preset release -B "$build" -DPython_EXECUTABLE="$FTN_PYTORCH_PYTHON" \
  -DFTN_PYTORCH_BUILD_EXAMPLES=OFF -DFTN_PYTORCH_BUILD_BENCHMARKS=OFF "${options[@]}"
cmake --build "$build"
cmake --install "$build" --prefix "$prefix" >/dev/null

# With the flags of the user, as a project of the user.
cmake -S examples/first -B "$build/first" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
cmake --build "$build/first"
(cd examples/first && "../../$build/first/first")
echo "installed: $prefix, for find_package with -DCMAKE_PREFIX_PATH=$prefix"
