#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Make wheels: cmake/wheel/build.sh FOLDER PYTHON [VERSION...]
#
# One for PYTHON, and one for each VERSION, such as 3.12, whose interpreter is found: in PATH, or where pyenv keeps it.
# FOLDER/pythons.txt says which interpreter has made which one. They fit this system and newer ones; wheels for all
# systems are made in a container, see .github/workflows/wheels.yml.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
pythons=("$2")
shift 2

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

for version in "$@"; do
  [ "$version" != "$(version_of "${pythons[0]}")" ] || continue
  for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version."*/bin/python; do
    if [ "$(version_of "$candidate")" = "$version" ]; then
      pythons+=("$candidate")
      break
    fi
  done
done
mkdir -p "$folder"
rm -f "$folder"/ftn_pytorch-*.whl "$folder/pythons.txt" # and nothing else: a variable names the folder
for python in "${pythons[@]}"; do
  echo "== Wheel for Python $(version_of "$python")"
  "${pythons[0]}" -m pip --python "$python" wheel --no-deps -w "$folder" .
  echo "$(version_of "$python") $python" >>"$folder/pythons.txt"
done
