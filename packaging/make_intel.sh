#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ifx of Intel oneAPI, with gcc for C and C++: make_intel.sh [PREFIX [OPTION OF CMAKE...]]
export CC=${CC:-gcc} CXX=${CXX:-g++} FC=${FC:-ifx}
if ! command -v "$FC" >/dev/null && [ -f /opt/intel/oneapi/setvars.sh ]; then
  # shellcheck source=/dev/null
  . /opt/intel/oneapi/setvars.sh >/dev/null
fi
exec "$(dirname "$0")/build.sh" intel "$@"
