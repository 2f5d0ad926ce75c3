# SPDX-License-Identifier: MIT
"""docs/load-options.md lists the options of `load` as they are in Fortran, in the core and in Python."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

from pages import ROOT

from ftn_pytorch.runners.base import Options

ROW = re.compile(r"^\| `(\w+)`( \*)? \| (.+?) \| (.+?) \|", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "load-options.md").read_text())
TEXT_OF = {True: "`.true.`", False: "`.false.`"}


def arguments_of(procedure: str) -> set[str]:
    """Dummies of `load` in the generated module, without those that are no options."""
    folder = ROOT / "fortran"
    command = [sys.executable, "-m", "fypp", f"-I{folder}", folder / "fpt_module.fypp"]
    source = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    listed = re.search(rf"subroutine {procedure}\(self, file_name, (.*?)\)\n", source, re.DOTALL)
    assert listed, procedure
    return set(re.findall(r"\w+", listed[1].replace("&", " "))) - {"stat", "errmsg"}


def test_those_of_fortran() -> None:
    names = [name for name, *_ in ROWS]
    assert len(names) == len(set(names))
    assert set(names) == arguments_of("module_load")
    assert {name for name, mark, *_ in ROWS if not mark} == arguments_of("pymodule_load")


def test_those_of_the_core_and_of_python() -> None:
    core = (ROOT / "src" / "calls" / "options.cpp").read_text().partition("core_options[] = {")[2].partition("};")[0]
    core_names = set(re.findall(r'^    \{"(\w+)"', core, re.MULTILINE))
    python_names = {field.name for field in dataclasses.fields(Options)}
    assert len(core_names) > 8 and len(python_names) > 12
    # config is no option there: what it holds goes to the script
    assert core_names | python_names | {"config"} == {name for name, *_ in ROWS}


def test_defaults() -> None:
    shown = {name: default for name, _, _, default in ROWS}
    for field in dataclasses.fields(Options):
        if isinstance(field.default, bool):
            assert shown[field.name] == TEXT_OF[field.default]
        elif isinstance(field.default, str) and field.default:
            assert shown[field.name] == f'`"{field.default}"`'
        elif isinstance(field.default, float):
            assert float(shown[field.name]) == field.default
