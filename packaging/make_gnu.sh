#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# GNU compilers: make_gnu.sh [PREFIX [OPTION OF CMAKE...]]
export CC=${CC:-gcc} CXX=${CXX:-g++} FC=${FC:-gfortran}
exec "$(dirname "$0")/build.sh" gnu "$@"
