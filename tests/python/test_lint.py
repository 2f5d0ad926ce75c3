# SPDX-License-Identifier: MIT
"""What the command lint finds, and what it leaves alone."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from ftn_pytorch.__main__ import main
from ftn_pytorch.commands import lint

pytest.importorskip("tree_sitter_fortran")
ROOT = Path(__file__).resolve().parents[2]

STATE = """
module state
   type :: cell
      real :: t, u(3)
   end type cell
   type, extends(cell) :: wet
      real :: q
      class(cell), allocatable :: below(:)
      type(cell) :: layers(4)
   end type wet
   type :: nest
      type(wet), allocatable :: wets(:)
   end type nest
   real :: field(3, 3), dt
contains
   function flux(x) result(y)
      real, intent(in) :: x(:)
      real :: y(size(x))
      y = x
   end function flux
end module state
"""
PROGRAM = """
subroutine work(c, one, wets, x, t, i, idx, text, model, tensor)
   use ftn_pytorch
   use state
   implicit none
   class(cell), intent(inout), target :: c(:), one
   type(wet), intent(inout) :: wets(:)
   type(wet), allocatable :: grid(:)
   type(wet), pointer, dimension(:, :) :: view
   complex, allocatable :: z(:)
   type(nest) :: all
   real, intent(in) :: x(:, :)
   real(8), dimension(3) :: t
   integer, intent(in) :: i, idx(:)
   character(len=*), intent(in) :: text
   type(torch_pymodule) :: model
   type(torch_tensor) :: tensor
   type(torch_tensor_wrap) :: list
   associate (a => x(:, 1), k => c)
   select type (c)
   type is (wet)
      LINE_IN_TYPE_IS
   class is (wet)
      LINE_IN_CLASS_IS
   end select
   select type (d => c)
   type is (wet)
      LINE_IN_RENAMED
   end select
   LINE
   end associate
end subroutine work
"""


def found(tmp_path: Path, line: str, place: str = "LINE") -> list[lint.Finding]:
    """Findings in a procedure with one line of interest, which uses a module of another file."""
    (tmp_path / "state.f90").write_text(STATE)
    file = tmp_path / "work.f90"
    file.write_text("\n".join(line if each.strip() == place else "" if "LINE" in each else each
                              for each in PROGRAM.splitlines()))  # fmt: skip
    return list(lint.findings([tmp_path / "state.f90", file]))


@pytest.mark.parametrize(
    ("line", "wrong", "cure"),
    [
        ("a = torch_in(real(t, 4))", "the result of a function", "write torch_copy(real(t, 4))"),
        ('a = torch_in("w", 2*x)', "2*x, an expression", "write torch_copy(2*x)"),
        ("a = torch_in(name='w', x=-t)", "-t, an expression", "write torch_copy(-t)"),
        ("a = torch_in((x))", "an expression", "torch_copy((x))"),
        ("a = TORCH_IN(Transpose(x))", "the result of a function", "torch_copy(Transpose(x))"),
        ("a = torch_in([1.0, 2.0])", "an array constructor", "torch_copy([1.0, 2.0])"),
        ("a = torch_in(dt*field)", "an expression", "torch_copy(dt*field)"),
        ("a = torch_in(flux(t))", "the result of a function", "torch_copy(flux(t))"),
        ("a = torch_in(sum(x, dim=1))", "the result of a function", "torch_copy(sum(x, dim=1))"),
        ("a = torch_in(2*wets(1)%u)", "an expression", "torch_copy(2*wets(1)%u)"),
        ("a = torch_in(2*unknown)", "an expression", "torch_copy(2*unknown)"),
        ("call model%forward([torch_in(x), torch_in(max(t, &\n 0d0))], [torch_out(t)])", "max(t, 0d0)", "torch_copy"),
        ("a = torch_in(x(idx, 1))", "whose subscript idx is an array", "write torch_copy((x(idx, 1)))"),
        ("a = torch_copy(x(:, [1, 2]))", "whose subscript [1, 2] is", "torch_copy((x(:, [1, 2])))"),
        ("a = torch_out(t(idx))", "whose subscript idx is", "receive the result in an array of its own"),
        ("a = torch_in(c%t)", "a component of a class array", "torch_copy((c%t))"),
        ("a = torch_out(c(:)%t)", "a component of a class array", "receive the result in an array of its own"),
        ("a = torch_copy(k%t)", "a component of a class array", "`type is`"),
        ("a = torch_in(c%u(1))", "a component of a class array", "torch_copy((c%u(1)))"),
        ("a = torch_in(wets(1)%below%t)", "a component of a class array", "torch_copy"),
        ("a = torch_in(grid%t)", "gfortran 12 moves the address that grid has", "write torch_in(grid(:)%t)"),
        ("a = torch_out(view%q)", "the whole of view", "write torch_out(view(:)%q), with a colon for each dimension"),
        ("a = torch_in(z%im)", "the whole of z", "write torch_in(z(:)%im)"),
        ("a = torch_in(all%wets%t)", "the whole of all%wets", "write torch_in(all%wets(:)%t)"),
        ("call tensor%from_array(torch_in(grid%u(1)))", "the whole of grid", "torch_in(grid(:)%u(1))"),
        ("call tensor%from_array(t + 1)", "from_array gets t + 1", "write from_array(torch_copy(t + 1))"),
        ("call tensor%from_array(wets%t)", "gfortran passes a copy", "write from_array(torch_in(wets%t))"),
        ("call list%add_array(array=wets(:)%t, name='t')", "passes a copy", "add_array(torch_in(wets(:)%t))"),
    ],
)
def test_finds(line: str, wrong: str, cure: str, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, line)
    assert wrong in finding.wrong and cure in finding.cure
    number = 1 + (tmp_path / "work.f90").read_text().splitlines().index(line.splitlines()[0])
    assert str(finding).startswith(f"{tmp_path}/work.f90:{number}: ")


@pytest.mark.parametrize(
    "line",
    [
        "a = torch_in(x)",
        "a = torch_in(x(:, 1:i:2))",
        "a = torch_in(x(i, 1))",
        "a = torch_in(field(1, :))",
        "a = torch_in(wets%t)",
        "a = torch_in(grid(:)%t)",
        "a = torch_in(grid(2)%u)",
        "a = torch_in(view(:, 1)%q)",
        "a = torch_in(grid(2)%layers%t)",
        "a = torch_in(z)",
        "a = torch_in(wets(2)%layers%t)",
        "a = torch_in(one%u)",
        "a = torch_in(c(1)%u)",
        'a = torch_in("dt", 0.5*dt)',
        "a = torch_in(c_loc(x), shape(x), real_ // bits)",
        'a = torch_out("x", c_loc(x), [n], trim(names(i)))',
        "a = torch_in(-1)",
        "a = torch_in(real(dt, 4))",
        "a = torch_in(sum(x))",
        "a = torch_in(size(x, 1) + i)",
        "a = torch_in(2*x(1, i))",
        'a = torch_in("file_"//trim(name)//".nc")',
        "a = torch_in(2*wets(1)%t)",
        'a = torch_in("name", text(1:3)//"x")',
        "a = torch_in(elsewhere(i))",
        "a = torch_copy(2*x)",
        "a = torch_copy((c%t))",
        "a = torch_copy((x(idx, 1)))",
        "call tensor%from_array(x)",
        "call tensor%from_array(one%u(1:2))",
        "call tensor%from_array(torch_in(wets%t))",
        "call other(c%t, 2*x, x(idx, 1))",
        "! a = torch_in(2*x)",
    ],
)
def test_leaves_alone(line: str, tmp_path: Path) -> None:
    assert found(tmp_path, line) == []


def test_select_type(tmp_path: Path) -> None:
    assert found(tmp_path, "a = torch_in(c(:)%q)", "LINE_IN_TYPE_IS") == []
    assert found(tmp_path, "a = torch_in(d%t)", "LINE_IN_RENAMED") == []
    assert len(found(tmp_path, "a = torch_in(c%q)", "LINE_IN_CLASS_IS")) == 1


def test_other_forms_of_source(tmp_path: Path) -> None:
    """Fixed form, preprocessor lines, statements nobody knows, and files that end early."""
    file = tmp_path / "old.F"
    file.write_text(
        "C     old\n      program p\n      use ftn_pytorch\n      real x(3)\n      frobnicate all\n#ifdef A\n"
        "      a = torch_in(real(x,\n     &   4))\n#else\n      a = torch_in(2*x)\n#endif\n      end\n"
    )
    assert [finding.line for finding in lint.findings([file])] == [7, 10]
    whole = STATE + PROGRAM.replace("LINE", "call tensor%from_array(torch_in(c(idx)%t + flux(x(idx, 1))))")
    for end in range(0, len(whole), 7):
        file.write_text(whole[:end])
        list(lint.findings([file]))


def test_our_own_sources() -> None:
    files = [
        file for folder in ("benchmarks", "examples", "fortran", "tests") for file in (ROOT / folder).rglob("*.f90")
    ]
    assert list(lint.findings(files)) == []
    assert sum(file.read_text().count("torch_in(") for file in files) > 100


@pytest.mark.parametrize(("name", "content"), [("my closure.py", b"y = torch_in(2*x)\n"), ("net.pt", b"PK\3\4\0\0")])
def test_what_is_no_fortran_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes
) -> None:
    (tmp_path / "a.f90").write_text("a = torch_in(2*[1, 2])\nend\n")
    (tmp_path / name).write_bytes(content)
    assert main(["lint", str(tmp_path / "a.f90"), str(tmp_path / name)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"lint: FTN_PYTORCH_ERR_ARGUMENT: {tmp_path / name} is no Fortran" in told.err
    assert f"ftn_pytorch check {shlex.quote(str(tmp_path / name))}" in told.err


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.f90"
    file.write_text("a = torch_in(2*[1, 2])\nend\n")
    assert main(["lint", str(file)]) == 1
    assert capsys.readouterr().out.startswith(f"{file}:1: torch_in gets 2*[1, 2], an expression")
    file.write_text("end\n")
    assert main(["lint", str(file)]) == 0
    assert main(["lint", str(tmp_path / "none.f90")]) == 2
    assert "none.f90 cannot be read: No such file" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tree_sitter_fortran", None)
    assert main(["lint", str(file)]) == 2
    assert "pip install tree-sitter tree-sitter-fortran" in capsys.readouterr().err
