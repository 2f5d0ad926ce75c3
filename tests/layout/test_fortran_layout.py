# SPDX-License-Identifier: MIT
"""The Fortran modules mirror the header and keep the rules that hold optimizers off (docs/architecture.md)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
    """Source in lower case without comments, with continued lines joined."""
    text = re.sub(r"^#:.*$|!.*$", "", path.read_text(), flags=re.MULTILINE)
    return re.sub(r"&\s*\n\s*&?", "", text).lower()


def test_one_interface_for_each_function_in_the_order_of_the_header() -> None:
    of_programs = HEADER.partition("/* ---- for the Python package")[0]
    functions = re.findall(r"^FPT_(?:API|(?=STATUS)) ?([^(]*?)(\w+)\(([^;]*)\);", of_programs, re.MULTILINE)
    code = code_of(FORTRAN / "fpt_c.f90")
    interfaces = re.findall(r"^ *(function|subroutine) (\w+)\(([^)]*)\) bind\(c\)", code, re.MULTILINE)
    assert [name for _, name, _ in interfaces] == [name for _, name, _ in functions]
    for (result, name, parameters), (kind, _, dummies) in zip(functions, interfaces):
        assert (kind == "subroutine") == (result.strip() == "void"), name
        parameters = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", parameters)  # a function pointer
        names = (
            []
            if parameters == "void"
            else [re.findall(r"\w+", each)[-1] for each in re.sub(r"\[\w*\]", "", parameters).split(",")]
        )
        assert [dummy.strip() for dummy in dummies.split(",") if dummy.strip()] == names, name


def test_constants_are_those_of_the_header() -> None:
    constants = dict(re.findall(r"^  (FPT_\w+) = (\d+)", HEADER, re.MULTILINE))
    constants |= dict(re.findall(r"(FPT_(?:IN|OUT|COPY|USE_\w+)) = (\d+)", HEADER))
    constants |= dict(re.findall(r"^#define (FPT_MAX_\w+) (\d+)", HEADER, re.MULTILINE))
    status = {name: value for name, value in constants.items() if name == "FPT_OK" or name.startswith("FPT_ERR_")}

    text = (FORTRAN / "fpt_status.f90").read_text()
    assert dict(re.findall(r"FTN_PYTORCH(_\w+) = (\d+)", text)) == {name[3:]: value for name, value in status.items()}

    text = (FORTRAN / "fpt_c.f90").read_text()
    codes = {name: value for name, value in re.findall(r"\b(FPT_\w+) = (\d+)", text) if name in constants}
    assert codes == {name: value for name, value in constants.items() if name not in status and name in codes}
    assert {"FPT_NONE", "FPT_LOGICAL64", "FPT_COPY", "FPT_USE_INFERENCE_MODE", "FPT_MAX_RANK"} <= set(codes)
    kinds = re.findall(r"'(FPT_\w+)'", (FORTRAN / "fpt_kinds.fypp").read_text())
    assert kinds and set(kinds) <= set(constants)


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
    module = subprocess.run(
        [sys.executable, "-m", "fypp", FORTRAN / "fpt_functions.fypp"], check=True, capture_output=True, text=True
    ).stdout
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
