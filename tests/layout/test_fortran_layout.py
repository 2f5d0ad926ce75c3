# SPDX-License-Identifier: MIT
"""The Fortran modules mirror the header and keep the rules that hold optimizers off (docs/architecture.md)."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "fortran")]
import expand  # noqa: E402
import interface  # noqa: E402

HEADER = (ROOT / "src" / "ftn_pytorch.h").read_text()
FORTRAN = ROOT / "fortran"

# Order of use, lowest first. Each module uses those before it.
ORDER = [
    module
    for folder in (FORTRAN, FORTRAN / "ftorch")
    for module in re.search(r"set\(modules([^)]*)", (folder / "CMakeLists.txt").read_text())[1].split()
]
FILES = sorted(FORTRAN.rglob("*.f*"))
# Forms of one module, X and X_ranks, may have one template.
MODULES = sorted(
    {
        next(FORTRAN.rglob(f"{module}.f*"), None) or next(FORTRAN.rglob(f"{module.removesuffix('_ranks')}.f*"))
        for module in ORDER
    }
)


def code_of(path: Path) -> str:
    """Source in lower case without comments, with continued lines joined; with the arguments that are generated."""
    text = expand.expanded(path) if path.stem in ("fpt_c", "fpt_module") else path.read_text()
    text = re.sub(r"^#:.*$|!.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"&\s*\n\s*&?", "", text).lower()


def test_the_whole_header_is_read() -> None:
    """Each function that programs call, each number, and what the numbers mean."""
    of_programs = HEADER.partition("/* ---- for the Python package")[0]
    declared = re.findall(r"^FPT_(?:API|STATUS) [^(]*?(\w+)\(", of_programs, re.MULTILINE)
    assert len(declared) > 60
    assert [each.name for section in interface.sections.values() for each in section] == declared
    constants = [each for group in interface.groups for each in group.constants] + interface.statuses
    assert {each.name: str(each.value) for each in constants} == dict(re.findall(r"\b(FPT_\w+) = (\d+)", HEADER))
    assert interface.limits == {name: int(value) for name, value in re.findall(r"(FPT_MAX_\w+) (\d+)\n", HEADER)}
    assert [each.name for each in interface.statuses if not each.comment] == ["FPT_OK"]
    kinds = re.findall(r"'(FPT_\w+)'", (FORTRAN / "fpt_kinds.fypp").read_text())
    assert kinds and set(kinds) <= {each.name for each in constants}


@pytest.mark.parametrize("parameter", ["float x", "double **x", "fpt_arg x", "int64_t x[2][3]", "unsigned int x"])
def test_what_the_reader_of_the_header_does_not_know_is_an_error(parameter: str) -> None:
    with pytest.raises(ValueError, match=re.escape(parameter)):
        interface.dummy(parameter, False)


def test_no_function_of_deferred_length_is_called() -> None:
    """gfortran keeps the length of such a result in static memory of the caller, which all threads share."""
    code = {path: code_of(path) for path in FILES}
    function_of = re.compile(r"^ *function (\S+)\([^)]*\) result\((\w+)\)$(.*?)^ *end function", re.M | re.S)
    deferred = {
        function[1]
        for text in code.values()
        for function in function_of.finditer(text)
        if re.search(rf"character\(:\), allocatable :: {function[2]}$", function[3], re.M)
    }
    assert {"ftn_pytorch_version", "model_backend"} <= deferred
    called = re.compile(rf"^(?! *function ).*(?<!\w)(?!fpt_)[\w$]*?({'|'.join(deferred)})\(.*$", re.M)
    assert {path.name: called.findall(text) for path, text in code.items() if called.search(text)} == {}


def test_ftorch_hides_nothing_of_the_library() -> None:
    """Programs of FTorch see the names of FTorch, and what they may use besides lies behind components."""
    text = (FORTRAN / "ftorch" / "ftorch.f90").read_text()
    assert set(re.findall(r"use (\w+)", text.partition("module ftorch\n")[2])) == {
        "ftorch_devices", "ftorch_loss", "ftorch_model", "ftorch_optim", "ftorch_tensor", "ftorch_types"
    }  # fmt: skip


def test_every_function_of_tensors_is_documented() -> None:
    """docs/tensors.md lists what fpt_functions exports."""
    module = expand.expanded(FORTRAN / "fpt_functions.fypp")
    exported = {name for line in re.findall(r"^ *public :: (.*)$", module, re.MULTILINE) for name in line.split(", ")}
    text = (ROOT / "docs" / "tensors.md").read_text()
    rows = re.findall(r"^\| `\([^|]*\| (.*)$", text, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(torch_\w+)`", row)]
    assert len(exported) > 100 and sorted(listed) == sorted(exported)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_modules_hide_nothing(path: Path) -> None:
    code = code_of(path)
    assert re.search(r"^module (\w+)$", code, re.MULTILINE)[1] == path.stem.removesuffix("_ranks")
    assert re.search(r"^ *implicit none$", code, re.MULTILINE)
    assert re.search(r"^ *(private|public)$", code, re.MULTILINE), "default access is not stated"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_arrows_point_one_way(path: Path) -> None:
    used = re.findall(r"^ *use (f\w+|torch_ftn)", code_of(path), re.MULTILINE)
    assert set(used) <= set(ORDER[: ORDER.index(path.stem)])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_optimizer_is_held_off(path: Path) -> None:
    """Dummies whose memory may be used after the call that describes it have target and no intent(in)."""
    dummies: list[str] = []
    for line in code_of(path).splitlines():
        if header := re.search(r"(?:function|subroutine) [^ (]+\(([^)]*)\)", line):
            dummies = re.findall(r"\w+", header[1])
        if declaration := re.match(r" *type\((?:torch_arg|\*)\)(.*)::(.*)", line):
            attributes, names = declaration.groups()
            if set(re.findall(r"[a-z_]\w*", names)) & set(dummies):
                assert "target" in attributes and "intent(in)" not in attributes, line
