#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Write a package for fpm, of the Fortran sources of an installed copy that pkg-config finds: fpm.sh FOLDER
#
# fpm cannot run the generator of the sources, and takes every file of a folder, of which one is another form of a module.
set -euo pipefail
folder=$1
ask() { pkg-config "$@" ftn_pytorch; }

mkdir -p "$folder/src" "$folder/include"
# shellcheck disable=SC2046 # names of files, apart by blanks
cp $(ask --variable=gfortran_sources) $(ask --variable=c_sources) "$folder/src"
cp "$(ask --variable=includedir)/ftn_pytorch.h" "$folder/include"
cat >"$folder/fpm.toml" <<TOML
name = "ftn_pytorch"
version = "$(ask --modversion)"
license = "MIT"

[build]
link = ["ftn_pytorch"]
TOML
cat <<SHELL
In fpm.toml of your program:
  [dependencies]
  ftn_pytorch = {path = "$folder"}
Then, with gfortran:
  fpm run --flag "$(ask --variable=gfortran_flags)" --link-flag "$(ask --libs)"
SHELL
