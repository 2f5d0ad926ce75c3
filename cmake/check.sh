#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Static checks, for `make check` and for the hooks of .pre-commit-config.yaml. A finding names its file and line, and a
# check that fails names the command that mends it.
#
#   cmake/check.sh [python|types|format|tidy|fortran|layout]...      all of them if none is named
#
# FTN_PYTORCH_BUILD_DIR   configured build tree, default build/dev; tidy and fortran need it
set -uo pipefail
cd "$(dirname "$0")/.."
build=${FTN_PYTORCH_BUILD_DIR:-build/dev}
[ ! -f build/environment ] || . build/environment

# Files of the repository that match, those not yet added included
files() { git ls-files -co --exclude-standard --deduplicate -- "$@" | while read -r file; do [ ! -f "$file" ] || echo "$file"; done; }

needs_build() {
  [ -f "$build/$1" ] || {
    echo "$build/$1 is missing"
    return 1
  }
}

# Of what clang tools write, the line that names the place, once for all files that include it
places() {
  root=$PWD/ awk '/: (error|warning): / {
    if (index($0, ENVIRON["root"]) == 1) $0 = substr($0, length(ENVIRON["root"]) + 1)
    if (!seen[$0]++) print
  }'
}

mend_python='ruff check --fix .'
check_python() { ruff check --quiet --output-format concise .; }

mend_types='mypy, with what it says corrected'
check_types() { mypy --no-error-summary; }

sources=('*.c' '*.h' '*.cpp' '*.hpp')
mend_format='git ls-files '${sources[*]@Q}' | xargs clang-format -i'
check_format() { files "${sources[@]}" | xargs clang-format --dry-run -Werror 2>&1 | places; }

mend_tidy="clang-tidy -p $build --fix FILE, or by hand; after make check has configured $build"
check_tidy() {
  needs_build compile_commands.json &&
    files 'src/*.cpp' | grep -Ev '^src/(plugin|recording|ftr|shared)/' | xargs -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet 2>/dev/null | places
}

# Templates are read as what they become; those lines are as long as the language allows.
mend_fortran='fortitude check --fix FILE, or by hand; files of the build tree come from fortran/*.fypp'
check_fortran() {
  local failed=0
  files '*.f90' | xargs fortitude check --quiet --output-format concise || failed=1
  needs_build build.ninja && cmake --build "$build" --target ftn_pytorch_fortran_sources >/dev/null || return 1
  fortitude check --quiet --output-format concise --line-length 132 "$build/fortran" || failed=1
  return $failed
}

# Two tests look at libraries; they run with all the others, after the build. test_phrases.py looks at the English of pages and
# messages.
mend_layout='docs/architecture.md says what belongs where, and tests/docs/test_phrases.py has better words'
check_layout() { "${FTN_PYTORCH_PYTHON:-python3}" -m pytest -q --no-header -p no:cacheprovider -m 'not built' tests/layout tests/docs/test_phrases.py; }

for tool in ruff mypy clang-format clang-tidy fortitude; do
  command -v "$tool" >/dev/null || {
    echo "$tool is missing: make check installs it" >&2
    exit 1
  }
done
failed=()
[ $# -gt 0 ] || set -- python types format tidy fortran layout
for check in "$@"; do
  echo "-- check $check"
  "check_$check" || failed+=("$check")
done
for check in "${failed[@]}"; do
  mend=mend_$check
  printf 'check %s failed. Mend with:\n  %s\n' "$check" "${!mend}"
done >&2
[ ${#failed[@]} = 0 ]
