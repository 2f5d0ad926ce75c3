# SPDX-License-Identifier: MIT
"""What docs/migrating.md says of programs of FTorch and call_py_fort, done: which forms compile, and equal results."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from pages import BLOCKS, ROOT, Block

FTORCH = """
program forms
   use, intrinsic :: iso_fortran_env, only : real32
   use ftorch
   implicit none
   type(torch_tensor) :: t
   real(real32){attributes} :: x(2, 3)
   x = 1
   call torch_tensor_from_array(t, {array}, torch_kCPU)
end program forms
"""

# One emulator in three programs: 40 levels in, 40 out, in columns
EMULATOR = """
import torch

class Emulator(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.net = torch.nn.Sequential(torch.nn.Linear(40, 64), torch.nn.Tanh(), torch.nn.Linear(64, 40)).double()

    def forward(self, wind, pressure):
        return self.net(wind) * pressure, self.net(pressure)
"""
SCRIPT = """
import torch
from emulator import Emulator

model = Emulator()

@torch.inference_mode()
def ftn_pytorch_forward(wind, pressure):
    return model(wind, pressure)
"""
DECLARED = """
   real(real64), target :: wind(512, 40), pressure(512, 40), u(512, 40), v(512, 40)
   integer :: i, j, unit
   do j = 1, 40
      do i = 1, 512
         wind(i, j) = sin(real(i*j, real64))
         pressure(i, j) = cos(real(i + 7*j, real64))
      end do
   end do
"""
WRITE = """
   open (newunit=unit, file="{0}", access="stream", form="unformatted", status="replace")
   write (unit) u, v
   close (unit)
end program
"""
USES = """program emulate
   use, intrinsic :: iso_fortran_env, only : real64
   use {module}
   implicit none
   type({type}) :: net
"""
WITH_FTORCH = f"""{USES.format(module="ftorch", type="torch_model")}
   type(torch_tensor) :: input(2), output(2)
{DECLARED}
   call torch_tensor_from_array(input(1), wind, torch_kCPU)
   call torch_tensor_from_array(input(2), pressure, torch_kCPU)
   call torch_tensor_from_array(output(1), u, torch_kCPU)
   call torch_tensor_from_array(output(2), v, torch_kCPU)
   call torch_model_load(net, "emulator.pt", torch_kCPU)
   call torch_model_forward(net, input, output)
   call torch_delete(input)
   call torch_delete(output)
   call torch_delete(net)
{WRITE}"""
WITH_MODULE = f"""{USES}
{DECLARED}
   call net%load("{{file}}", layout="same")
   call net%forward([torch_in(wind), torch_in(pressure)], [torch_out(u), torch_out(v)])
{WRITE}"""

STEP = """
def step(STATE):
    STATE["count"] = STATE.get("count", 0) + 1
    STATE["y"] = STATE["x"] + STATE["count"] * STATE["dt"]
"""
STATE = """
program calls
   use, intrinsic :: iso_fortran_env, only : real64
   use ftn_pytorch
   implicit none
   type(torch_pymodule) :: state
   real(real64) :: work(3), y(3)
   call state%load("state.py")
   work = 10
   call state%call("set_state", [torch_in("x", work)])
   work = -1
   call state%call("set_state", [torch_in("dt", 0.5d0)])
   call state%call("call_function", [torch_in("physics"), torch_in("step")])
   call state%call("call_function", [torch_in("physics"), torch_in("step")])
   call state%call("get_state", [torch_in("y")], [torch_out(y)])
   print "(3f6.2)", y
end program calls
"""

# Around the loop of the page
TORCHFORT = """
program graph
   use ftn_pytorch
   implicit none
   type(torch_module) :: net, loss_of
   type(torch_optimizer) :: optimizer
   type(torch_scheduler) :: scheduler
   type(torch_scope) :: scope
   type(torch_tensor) :: prediction, cost
   real :: u(3, 100), v(3, 100), du(3, 100), y(3, 100)
   integer :: i, step
   u = reshape([(sin(real(i)), i=1, 300)], shape(u))
   v = 2*u - cshift(u, 1, 1)
   du = 1 + abs(u)
{0}
   call net%forward([torch_in(u)], [torch_out(y)])
   print "(e15.7)", y
end program graph
"""


class Compiler:
    """The Fortran compiler of the build, with the modules of both interfaces."""

    def __init__(self, build_dir: Path, cache: dict[str, str], folder: Path) -> None:
        fortran = build_dir / "fortran"
        places = [fortran / "ftorch" / "ftn_pytorch_ftorch_modules", fortran / "ftn_pytorch_fortran_modules"]
        archives = [fortran / "ftorch" / "libftn_pytorch_ftorch.a", fortran / "libftn_pytorch_fortran.a"]
        library = build_dir / "lib"
        self._command = [cache["CMAKE_Fortran_COMPILER"], "-O2", *(f"-I{place}" for place in places)]
        self._libraries = [*map(str, archives), f"-L{library}", f"-Wl,-rpath,{library}", "-lftn_pytorch"]
        self._folder = folder

    def attempt(self, text: str) -> subprocess.CompletedProcess:
        (self._folder / "program.f90").write_text(text)
        command = [*self._command, "program.f90", "-o", "program", *self._libraries]
        return subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)

    def run(self, text: str, python: str = sys.executable) -> str:
        """What the program prints, when it is compiled and run."""
        made = self.attempt(text)
        assert made.returncode == 0, made.stderr
        command = ["env", f"FTN_PYTORCH_PYTHON={python}", "./program"]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def the_block_with(text: str) -> Block:
    (found,) = (block for block in BLOCKS if block.page == ROOT / "docs" / "migrating.md" and text in block.text)
    return found


@pytest.fixture
def compiler(build_dir: Path, cache: dict[str, str], tmp_path: Path) -> Compiler:
    return Compiler(build_dir, cache, tmp_path)


@pytest.mark.parametrize(
    ("attributes", "array"),
    [("", "x"), (", target", "2*x"), (", target", "real(x, real32)")],
    ids=["without target", "expression", "conversion"],
)
def test_arrays_that_fortran_does_not_keep_are_refused(attributes: str, array: str, compiler: Compiler) -> None:
    made = compiler.attempt(FTORCH.format(attributes=attributes, array=array))
    assert made.returncode != 0
    assert "specific subroutine for the generic" in made.stderr, made.stderr


@pytest.mark.parametrize("array", ["x", "x(:, 2:)", "x(1, :)"])
def test_arrays_that_it_keeps_are_taken(array: str, compiler: Compiler) -> None:
    made = compiler.attempt(FTORCH.format(attributes=", target", array=array))
    assert made.returncode == 0, made.stderr


def test_from_ftorch_to_a_script_in_two_steps_bit_for_bit(compiler: Compiler, tmp_path: Path) -> None:
    """The program with module ftorch, the one with torch_module, and the one with a script differ in nothing."""
    import torch

    (tmp_path / "emulator.py").write_text(EMULATOR)
    (tmp_path / "script.py").write_text(SCRIPT)
    names: dict = {}
    exec(EMULATOR, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls TorchScript deprecated
        torch.jit.trace(names["Emulator"](), (torch.ones(2, 40).double(),) * 2).save(tmp_path / "emulator.pt")
    compiler.run(WITH_FTORCH.format("ftorch"))
    for output, kind, file in (("module", "torch_module", "emulator.pt"), ("script", "torch_pymodule", "script.py")):
        compiler.run(WITH_MODULE.format(output, module="ftn_pytorch", type=kind, file=file))
    first, second, third = ((tmp_path / name).read_bytes() for name in ("ftorch", "module", "script"))
    assert len(first) == 2 * 512 * 40 * 8 and first.strip(b"\0")
    assert first == second
    assert first == third


def test_functions_of_call_py_fort_run_unchanged(compiler: Compiler, tmp_path: Path) -> None:
    """By the script of the page: set_state copies, and STATE stays between calls."""
    script = the_block_with("STATE = {}")
    (tmp_path / "state.py").write_text(script.text)
    (tmp_path / "physics.py").write_text(STEP)
    assert compiler.run(STATE) == " 11.00 11.00 11.00\n"


def test_torchfort_without_python(compiler: Compiler, build_dir: Path, tmp_path: Path) -> None:
    """The loop of the page trains with a TorchScript loss, an extra argument and a schedule, and without a Python."""
    import torch

    if not list(build_dir.glob("lib*/libftn_pytorch_torchscript.so")):
        pytest.skip("the direct path is not built")

    class Weighted(torch.nn.Module):
        def forward(self, prediction: torch.Tensor, label: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return (weight * (prediction - label) ** 2).mean()

    torch.manual_seed(1)
    net = torch.nn.Linear(3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(net).save(tmp_path / "net.pt")
        torch.jit.script(Weighted()).save(tmp_path / "loss.pt")
    said = compiler.run(TORCHFORT.format(the_block_with('CosineAnnealingLR"').text), python="/there/is/none")

    u = torch.sin(torch.arange(1, 301, dtype=torch.float32)).reshape(100, 3)
    v, weight = 2 * u - u.roll(-1, 1), 1 + u.abs()
    before = net(u)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    for _ in range(1000):
        optimizer.zero_grad()
        Weighted()(net(u), v, weight).backward()
        optimizer.step()
        schedule.step()
    result = torch.tensor([float(each) for each in said.split()]).reshape(100, 3)
    assert (result - net(u)).abs().max() < 1e-4 < 0.1 < (before - net(u)).abs().max()
