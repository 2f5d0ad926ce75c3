#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Make the documentation site: docs/site/build.sh [PYTHON], which needs Python 3.10 or newer and nothing else of the system
#
# build/docs/site is the site, and build/docs/venv its tools. FORD needs an older Markdown than MkDocs: build/docs/ford.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-${FTN_PYTORCH_PYTHON:-python3}}

environment() { # folder, requirements
  [ -x "$1/bin/python" ] || "$python" -m venv "$1"
  cmp -s "$2" "$1/installed.txt" || {
    "$1/bin/python" -m pip install --quiet -r "$2"
    cp "$2" "$1/installed.txt"
  }
}
environment build/docs/venv tests/tools/requirements-site.txt
environment build/docs/ford tests/tools/requirements-ford.txt

echo '== Fortran names, read by FORD'
build/docs/ford/bin/python docs/site/fortran.py build/docs/sources build/docs/fortran
echo '== Pages'
NO_MKDOCS_2_WARNING=1 build/docs/venv/bin/mkdocs build --strict --site-dir build/docs/site
echo 'build/docs/site/index.html'
