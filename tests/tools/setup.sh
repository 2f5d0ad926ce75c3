#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Make, or bring up to date, the environment of `make test-tools`: tests/tools/setup.sh FOLDER
#
# It sees the packages of the environment of the tests, such as torch, and adds those of requirements.txt.
# FOLDER/triton is another one, with a server. Its Python is that of the system: Triton 2.51 brings an interpreter of 3.11
# that cannot work with one built by pyenv. TRITON_PYTHON names another one.
set -euo pipefail
folder=$1
wanted=$(dirname "$0")/requirements.txt
[ -x "$folder/bin/python" ] || "$FTN_PYTORCH_PYTHON" -m venv "$folder"
"$FTN_PYTORCH_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$("$folder/bin/python" -c \
  'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth"
cmp -s "$wanted" "$folder/installed.txt" || {
  "$folder/bin/python" -m pip install -r "$wanted"
  cp "$wanted" "$folder/installed.txt"
}
command -v chromium >/dev/null || command -v google-chrome >/dev/null || {
  echo 'There is no chromium, in which pages are looked at: apt-get install chromium' >&2
  exit 1
}
server=$folder/triton
[ -x "$server/bin/python" ] || "${TRITON_PYTHON:-/usr/bin/python3}" -m venv "$server"
wanted=$(dirname "$0")/requirements-triton.txt
cmp -s "$wanted" "$server/installed.txt" || {
  "$server/bin/python" -m pip install -r "$wanted"
  cp "$wanted" "$server/installed.txt"
}
