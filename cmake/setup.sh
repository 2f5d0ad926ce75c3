#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Install what is missing, then write build/environment, which the Makefile reads before every other step.
#
#   cmake/setup.sh [--dry-run] demo|bench|test|hosts      --dry-run: only print what would be installed
#
# FC                   Fortran compiler, default gfortran
# FTN_PYTORCH_PYTHON   use this Python and install nothing into it; an active VIRTUAL_ENV is treated alike
# FTN_PYTORCH_TORCH    requirement of torch for .venv, such as torch==2.11.0
set -euo pipefail
cd "$(dirname "$0")/.."

dry_run=
if [ "${1-}" = --dry-run ]; then
  dry_run=1
  shift
fi
goal=${1-test}
# What the tests need, and what ComIn is built with
hosts=
if [ "$goal" = hosts ]; then
  hosts=1 goal=test
fi
export FC=${FC:-gfortran} PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'setup: %s\n' "$*"; }
stop() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}
run() { [ -n "$dry_run" ] || "$@"; }
have() { command -v "$1" >/dev/null; }

# ---- which Python ------------------------------------------------------------------------------------------------

# Print the real path of a Python that can be embedded, or why it cannot.
embeddable() {
  if ! have "$1"; then
    echo "there is no $1"
    return 1
  fi
  "$1" - 2>&1 <<'PYTHON'
import os, sys, sysconfig
path, var = sys.executable, sysconfig.get_config_var
library = os.path.join(var("LIBDIR") or "", var("LDLIBRARY") or "")
if sys.version_info < (3, 10):
    sys.exit(f"{path} is older than Python 3.10")
if var("Py_GIL_DISABLED"):
    sys.exit(f"{path} is a free-threaded Python, without the global interpreter lock")
if not var("Py_ENABLE_SHARED"):
    sys.exit(f"{path} was built without a shared libpython")
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")) or not os.path.exists(library):
    sys.exit(f"{path} lacks Python.h or {library}")
if sys.prefix == sys.base_prefix:
    try:
        import ensurepip, venv
    except ImportError:
        sys.exit(f"{path} lacks the modules venv and ensurepip")
print(path)
PYTHON
}

# The Python that .venv is made from.
base_python() {
  local candidate answer
  for candidate in python3 python /usr/bin/python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    if answer=$(embeddable "$candidate"); then
      echo "$answer"
      return
    fi
  done
  return 1
}

# The environment that the user brought along; fails where .venv is used.
own_environment() {
  if [ -n "${FTN_PYTORCH_PYTHON-}" ]; then
    echo "$FTN_PYTORCH_PYTHON"
  elif [ -n "${VIRTUAL_ENV-}" ] && ! [ "$VIRTUAL_ENV" -ef .venv ]; then
    echo "$VIRTUAL_ENV/bin/python"
  else
    return 1
  fi
}

# ---- compilers and tools, from the packages of the system --------------------------------------------------------

missing_packages() {
  have "${CXX:-g++}" || echo g++
  if ! have "$FC"; then
    case $FC in
      flang-new-* | flang-[0-9]*) echo "flang-${FC##*-}" ;;
      *) echo "$FC" ;;
    esac
  fi
  if ! own_environment >/dev/null && ! have .venv/bin/python && ! base_python >/dev/null; then
    printf '%s\n' python3-dev python3-venv
  fi
  [ "$goal" = test ] || return 0
  have pkg-config || echo pkg-config
  printf '#if !__has_include(<gtest/gtest.h>)\n#error\n#endif\n' | "${CXX:-g++}" -E -x c++ - >/dev/null 2>&1 ||
    echo libgtest-dev
  have valgrind || echo valgrind
  have strace || echo strace
  have mpirun || echo openmpi-bin
  have mpifort || echo libopenmpi-dev
  [ -n "$hosts" ] || return 0
  have ncgen || echo netcdf-bin
  have nf-config || echo libnetcdff-dev
}

# Run a command with the rights to install packages; fails where that is not allowed.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    return 1
  fi
}

install_packages() {
  if ! have apt-get || ! as_root true; then
    stop "These are missing: $*" "Install them and try again; on Debian and Ubuntu:" "  sudo apt-get install $*"
  fi
  say "apt-get install $*"
  run as_root apt-get -q update
  run as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends "$@"
}

# ---- Python packages ---------------------------------------------------------------------------------------------

wanted_packages() {
  local files=(cmake/requirements.txt)
  [ "$goal" = demo ] || files+=(cmake/requirements-test.txt)
  [ "$goal" != test ] || files+=(cmake/requirements-check.txt cmake/requirements-tools.txt)
  grep -hv '^#' "${files[@]}" | sed "s|^torch==.*|${FTN_PYTORCH_TORCH:-&}|"
}

# An environment of the user's own is checked and left as it is.
check_environment() {
  local missing
  python=$(embeddable "$1") || stop "$python" \
    "Python is embedded, so it must come with a shared library and headers: that of the distribution, of conda, or" \
    "PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install."
  missing=$(wanted_packages | "$python" -c '
import re, shutil, sys
from importlib import metadata
names = {distribution.metadata["Name"].lower() for distribution in metadata.distributions()}
for line in sys.stdin.read().splitlines():
    name = re.match(r"[\w.-]+", line)[0].lower()
    if name not in names and not shutil.which(name):
        print(repr(line))')
  [ -z "$missing" ] || stop "$python is used as it is, and lacks Python packages. Install them with" \
    "  $python -m pip install $(echo "$missing" | paste -sd ' ')"
}

make_environment() {
  local base stamp=.venv/installed-requirements.txt
  python=$PWD/.venv/bin/python
  if ! "$python" -c '' 2>/dev/null; then
    base=$(base_python) || [ -n "$dry_run" ] || stop "No Python on this machine can be embedded:" \
      "  $(embeddable python3)" "Install one that can, or name it in FTN_PYTORCH_PYTHON."
    say "making .venv from ${base:-python3}"
    run "$base" -m venv --clear .venv
  fi
  if ! wanted_packages | cmp -s - "$stamp"; then
    say "installing Python packages into .venv; torch is large, this takes some minutes the first time"
    wanted_packages | sed 's/^/setup:   /'
    [ -z "$dry_run" ] || return 0
    wanted_packages >"$stamp.new"
    "$python" -m pip install -r "$stamp.new" || stop "pip could not install the packages." \
      "Another torch can be chosen: FTN_PYTORCH_TORCH=torch==2.11.0 make $goal"
    mv "$stamp.new" "$stamp"
  fi
}

# ------------------------------------------------------------------------------------------------------------------

mapfile -t packages < <(missing_packages)
[ ${#packages[@]} = 0 ] || install_packages "${packages[@]}"
[ -n "$dry_run" ] || have "$FC" || stop "There is still no Fortran compiler called $FC."
if environment=$(own_environment); then
  check_environment "$environment"
else
  make_environment
fi
[ -z "$dry_run" ] || exit 0

mkdir -p build
folder=$(dirname "$python")
cat >build/environment <<SHELL
export FTN_PYTORCH_PYTHON=${python@Q}
export PATH=${folder@Q}:"\$PATH"
export CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) CTEST_PARALLEL_LEVEL=$(nproc)
SHELL
say "ready: $FC, $python"
