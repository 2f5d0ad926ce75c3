#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# flang of LLVM, the newest on the path, with gcc for C and C++: make_llvm.sh [PREFIX [OPTION OF CMAKE...]]
newest() { compgen -c | grep -E '^(flang|flang-new)(-[0-9]+)?$' | sort -t - -k 1,1 -V | tail -n 1; }
export CC=${CC:-gcc} CXX=${CXX:-g++} FC=${FC:-$(newest)}
exec "$(dirname "$0")/build.sh" llvm "$@"
