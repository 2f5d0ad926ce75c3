# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch doctor --test``: what programs do, done with this installation.

Each test runs in a process of its own, so that a crash is a failed test. The library is called by its C interface; the
last test compiles and runs a Fortran program where there is a compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..diagnosis import doctor
from ..errors import summary
from ..system import installation

_PASSED, _FAILED, _NOT_TESTED = "passed", "failed", "not tested"
_MODULE = "ftn_pytorch.commands.self_test"
_ROOT = str(Path(__file__).parents[2])
_LIMIT_S = 600
_COMPILERS = ("gfortran", "ifx", "flang", "flang-new", "nvfortran")

_WITH_TORCH = """
import torch
{decorator_import}
weight = torch.zeros(3, 1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.5)

def ftn_pytorch_forward(x):
    return x @ weight.detach()

{decorator}
def ftn_pytorch_train(x, target):
    loss = ((x @ weight - target) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return False, loss
"""
_WITH_NUMPY = """
import numpy

weight = numpy.zeros((3, 1), "float32")

def ftn_pytorch_forward(x):
    return x @ weight

def ftn_pytorch_train(x, target):
    global weight
    error = x @ weight - target
    weight = weight - x.T @ error / len(x)
    return False, float((error**2).mean())
"""


class _NotTestedError(Exception):
    """Why a test cannot be made here."""


def run() -> int:
    """Make all tests, print a line for each, and at last PASSED or FAILED; the result is the exit code."""
    found = doctor.findings({})
    wrong = [finding for finding in found if finding.verdict == doctor.WRONG]
    lines = [(_FAILED, "doctor", finding.sentence()) for finding in wrong] or [(_PASSED, "doctor", "nothing is wrong")]
    _show(lines[0])
    for name in _TESTS:
        lines.append(_in_a_process(name))
        _show(lines[-1])
    failed = [name for verdict, name, _ in lines if verdict == _FAILED]
    left_out = [name for verdict, name, _ in lines if verdict == _NOT_TESTED]
    if failed:
        print(f"FAILED: {', '.join(dict.fromkeys(failed))}")
    else:
        print("PASSED" + f" (not tested: {', '.join(left_out)})" * bool(left_out))
    return 1 if failed else 0


def _show(line: tuple[str, str, str]) -> None:
    verdict, name, text = line
    print(f"{verdict:<11}{name}: {text}", flush=True)


def _in_a_process(name: str) -> tuple[str, str, str]:
    paths = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-m", _MODULE, name],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _FAILED, name, f"no end within {_LIMIT_S} seconds"
    last = (done.stdout.strip().splitlines() or [""])[-1]
    verdict, _, text = last.partition(": ")
    if done.returncode == 0 and verdict in (_PASSED, _NOT_TESTED):
        return verdict, name, text
    reason = text if verdict == _FAILED else (done.stderr.strip().splitlines() or ["no text"])[-1]
    return _FAILED, name, f"{reason} (exit code {done.returncode})"


# ---- the tests, each in its process: what was done, or an exception ------------------------------------------------


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _problem() -> tuple[Any, Any, Any]:
    """Inputs, targets, and outputs of a linear function of three arguments."""
    import numpy

    x = numpy.random.default_rng(1).random((64, 3)).astype("float32")
    return x, x @ numpy.array([[1], [-2], [1]], "float32"), numpy.zeros((64, 1), "float32")


def _losses(text: str, steps: int) -> tuple[list[float], Any]:
    """Train a script through the library, and let it predict: losses and the prediction."""
    from .c_interface import Library

    Path("weather.py").write_text(text)
    x, target, y = _problem()
    library = Library()
    module = library.load("weather.py", False, {}, {})
    step = module.train_call([("", x)], [("", target)])
    losses = [step()[1] for _ in range(steps)]
    module.forward_call([("", x)], [("", y)])()
    if library.warnings:
        raise AssertionError(library.warnings[0])
    return losses, y


def _script() -> str:
    _, target, _ = _problem()
    text = _WITH_TORCH.format(decorator_import="", decorator="") if _torch() else _WITH_NUMPY
    losses, y = _losses(text, 200)
    error = float(abs(y - target).max())
    if not (losses[-1] < 1e-3 < losses[0] and error < 0.1):
        raise AssertionError(f"the loss went from {losses[0]:.3g} to {losses[-1]:.3g}, and the error is {error:.3g}")
    return f"200 steps of {'torch' if _torch() else 'NumPy'}, the loss fell from {losses[0]:.2g} to {losses[-1]:.1g}"


def _recorded_step() -> str:
    if not _torch():
        raise _NotTestedError("there is no torch")
    from ..system import extension

    if why := extension.obstacle():
        raise _NotTestedError(why)
    recorded = {"decorator_import": "from ftn_pytorch import recorded", "decorator": "@recorded"}
    plain, first = _losses(_WITH_TORCH.format(decorator_import="", decorator=""), 20)
    fast, second = _losses(_WITH_TORCH.format(**recorded), 20)
    if plain != fast or (first != second).any():
        raise AssertionError(f"the losses differ: {plain[-1]!r} and {fast[-1]!r}")
    return "20 steps give the losses of plain Python, bit for bit"


def _saved_model() -> str:
    torch = _torch()
    if torch is None:
        raise _NotTestedError("there is no torch")
    from .c_interface import Library

    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls TorchScript deprecated
        torch.jit.script(net).save("net.pt")
    x, _, y = _problem()
    module = Library().load("net.pt", True, {}, {})
    module.forward_call([("", x)], [("", y)])()
    with torch.no_grad():
        error = float((torch.from_numpy(y) - net(torch.from_numpy(x))).abs().max())
    if not error < 1e-5:
        raise AssertionError(f"the result differs by {error:.3g} from that of torch")
    way = "without Python" if module.backend == "direct" else "through Python, since the direct path is not there"
    return f"the result is that of torch; {way}"


def _fortran_program() -> str:
    prefix = installation.prefix()
    example = prefix / "share" / "ftn_pytorch" / "examples" / "first" if prefix else None
    if example is None or not example.is_dir():
        raise _NotTestedError("there is no installed copy of the library")
    compiler = os.environ.get("FC") or next(filter(shutil.which, _COMPILERS), "")
    needed = {
        "cmake": shutil.which("cmake"),
        "make (CMAKE_GENERATOR=Ninja needs none)": os.environ.get("CMAKE_GENERATOR") or shutil.which("make"),
        "a Fortran compiler": compiler,
    }
    missing = [name for name, there in needed.items() if not there]
    if missing:
        raise _NotTestedError(f"there is no {' and no '.join(missing)}")
    shutil.copytree(example, "first")
    environment = os.environ | {"FC": compiler, "ftn_pytorch_ROOT": str(prefix), "FTN_PYTORCH_PYTHON": sys.executable}
    output = ""
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"], ["build/first"]):
        done = subprocess.run(command, cwd="first", env=environment, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        if done.returncode:
            end = " | ".join([line.strip() for line in output.splitlines() if line.strip()][-5:])
            raise AssertionError(f"{' '.join(command)} ended with {done.returncode}: {end}")
    loss = float(output.split()[-1])
    if not 0 <= loss < 1e-6:
        raise AssertionError(f"it printed {output.strip()}")
    return f"compiled by {compiler}, it started {sys.executable} and trained to a loss of {loss:.1g}"


_TESTS: dict[str, Callable[[], str]] = {
    "script": _script,
    "recorded step": _recorded_step,
    "saved model": _saved_model,
    "Fortran program": _fortran_program,
}


def _main(name: str) -> int:
    try:
        verdict, text = _PASSED, _TESTS[name]()
    except _NotTestedError as reason:
        verdict, text = _NOT_TESTED, str(reason)
    except Exception as failure:
        verdict, text = _FAILED, summary(failure)
    print(f"{verdict}: {text}".replace("\n", " "))
    return 1 if verdict == _FAILED else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
