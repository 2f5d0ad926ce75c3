# SPDX-License-Identifier: MIT
"""Promises: a Fortran program calls a script with arrays, sections of arrays, or tensors in scopes, on one rank or two.

The programs are play.f90 and play_ranks.f90. The script has functions of driven.py beside its own.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import operator
import os
import pickle
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from build_tree import build_folder, cmake_cache
from mpi_environment import MPI_ENVIRONMENT

from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.script.results import to_host, unpack

from .driven import TAIL, Given, Work
from .plain import Numbers, Raised, as_it_is, files_of, kept_settings, opened, result_of, text_of_file, turns_of
from .scripts import OF_DEVICES, OF_FORTRAN, Script
from .state import state_of, tensors_of
from .verdicts import REFUSED, SAME, WRONG, Verdict

TESTS = Path(__file__).resolve().parents[1]
SECONDS = 600
PYTHON = 9
"""The status of what a script raises."""
_WARM = f"""
import sys
sys.path[:0] = {[str(TESTS), str(TESTS / "python")]!r}
import torch, torch._dynamo
import promises.driven
import gc
gc.collect()
gc.freeze()  # a collection would copy the memory of each process that is forked
"""


class Ended(Exception):
    """A program is not there any more, or does not answer."""


class Session:
    """A program that lasts for many scripts, on one rank or more. Each has a pipe for commands, and one for answers."""

    def __init__(self, command: list[str], ranks: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        (folder / "warm.py").write_text(_WARM)
        names = [(folder / f"commands{rank}", folder / f"answers{rank}") for rank in range(ranks)]
        for name in (each for pair in names for each in pair):
            os.mkfifo(name)
        # for both, so that none waits for the other end
        self._pipes = [tuple(os.open(name, os.O_RDWR) for name in pair) for pair in names]
        self._log = folder / "log"
        variables = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
        variables |= {**MPI_ENVIRONMENT, "OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=variables,
                start_new_session=True,
            )

    def ask(self, *words: str) -> list[str]:
        """The answers of the ranks, empty where all went well. Ended where one gives none in time."""
        for commands, _ in self._pipes:
            os.write(commands, (" ".join(f'"{each}"' for each in words) + "\n").encode())
        return [self._answer(answers) for _, answers in self._pipes]

    def _answer(self, pipe: int) -> str:
        found, latest = b"", time.monotonic() + SECONDS
        while not found.endswith(b"\n"):
            if self._process.poll() is not None or time.monotonic() > latest:
                self.end()
                raise Ended(f"the program ended with {self._process.returncode}: {self._log.read_text()[-500:]}")
            if select.select([pipe], [], [], 0.2)[0]:
                found += os.read(pipe, 4096)
        return found.decode().strip()

    def end(self) -> None:
        for pipe in (each for pair in self._pipes for each in pair):
            os.close(pipe)
        self._pipes = []
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()


@functools.cache
def _session(ranks: int) -> Session:
    folder = build_folder().resolve() / "tests" / "promises"
    command = [str(folder / "play")]
    if ranks > 1:
        cache = cmake_cache(build_folder())
        command = [cache["MPIEXEC_EXECUTABLE"], cache["MPIEXEC_NUMPROC_FLAG"], str(ranks), str(folder / "play_ranks")]
    made = Session(command, ranks)
    atexit.register(made.end)
    return made


def obstacle(promise: str) -> str:
    """Why this build, or this machine, cannot be asked."""
    program = "play_ranks" if promise in _PER else "play"
    if promise in OF_FORTRAN and not (build_folder() / "tests" / "promises" / program).exists():
        return f"the build has no {program}"
    return "needs cuda" if promise in OF_DEVICES and not torch.cuda.is_available() else ""


_PER = {"ranks": "rank", "node": "node"}


def driven(script: Script, plain: Numbers, *, form: str) -> Verdict:
    """With "arrays", "sections" or "tensors", in a process of its own."""
    return _driven(script, plain, 1, (form,), "cpu")


def on_device(script: Script, plain: Numbers) -> Verdict:
    """What the script makes is on a GPU, and arrays of the host are copied there."""
    return _driven(script, plain, 1, ("arrays",), "cuda")


def on_ranks(script: Script, plain: Numbers, *, promise: str) -> Verdict:
    """Two ranks call with numbers of their own. They have met other scripts: what differs is called once more."""
    found = _driven(script, plain, 2, (_PER[promise],), "cpu")
    if script.verdict_of(promise) in (found.kind, "unseen"):
        return found
    _session(2).end()
    _session.cache_clear()
    return _driven(script, plain, 2, (_PER[promise],), "cpu")


def _driven(script: Script, plain: Numbers, ranks: int, words: tuple[str, ...], device: str) -> Verdict:
    is_section = words[0] == "sections"
    expected = [_expected(script, plain.varied, rank, device, is_section) for rank in range(ranks)]
    with files_of(script) as folder:
        path = Path(folder, "model.py")
        path.write_text(_text(script, device))
        given = [[each for each, _ in calls] for calls, _ in expected]
        Path(folder, "work").write_bytes(pickle.dumps(Work(script, plain.varied, given)))
        try:
            failures = _session(ranks).ask(*words, str(path), device)
        except Ended as end:
            _session.cache_clear()
            return Verdict(WRONG, str(end))
        for rank, (failure, (calls, tensors)) in enumerate(zip(failures, expected)):
            if failure:
                return Verdict(REFUSED if failure.startswith("load: ") else WRONG, failure)
            seen, found = pickle.loads(Path(folder, f"seen{rank}").read_bytes())
            for call, ((wanted, arguments), came) in enumerate(zip(calls, seen)):
                if verdict := _difference(wanted, arguments, came):
                    return verdict._replace(text=f"rank {rank}, call {call}: {verdict.text}")
            for name, bits in tensors.items():
                if found.get(name) != bits:
                    return Verdict(WRONG, f"rank {rank}: {name} at the end")
    return Verdict(SAME)


def _text(script: Script, device: str) -> str:
    paths = f"import sys\nsys.path[:0] = {[str(TESTS), str(TESTS / 'python')]!r}\n"
    on = "" if device == "cpu" else f"import torch\ntorch.set_default_device({device!r})\n"
    return paths + on + text_of_file(script) + TAIL


@functools.lru_cache(2)  # the next promise asks for the same
def _expected(
    script: Script, varied: str, rank: int, device: str, sections: bool = False
) -> tuple[list[tuple[Given, list[Any]]], Any]:
    """Of plain Python: for each call what it gives and arguments afterwards, and tensors at the end.

    ``sections``: with arguments as they are in Fortran, since sums of what has gaps may have other last bits.
    """
    changed = [each.changed for each, _ in _expected(script, varied, rank, device)[0]] if sections else None
    found, result = [], None
    with kept_settings(), torch.device(device), opened(script, as_it_is) as (module, _, _):
        turns = turns_of(module, script, varied, rank=rank, device=device)
        with contextlib.suppress(StopIteration):
            while True:
                args = turns.send(result)
                if changed:
                    is_copied = [(len(found) + 1) % 3 == 0 and not each for each in changed[len(found)]]
                    args = tuple(each if copied else _section(each) for each, copied in zip(args, is_copied))
                before = [state_of(each) for each in args]
                result = result_of(module, args)
                after = [state_of(each) for each in args]
                found.append((_given(result, [*map(operator.ne, before, after)]), after))
        return found, tensors_of(module)


def _section(value: Any) -> Any:
    """A tensor in memory with gaps, like playing.f90 has it."""
    if not isinstance(value, torch.Tensor) or value.ndim == 0:
        return value
    whole = value.new_zeros([2 * each + 1 for each in value.shape])
    return whole[(slice(1, -1, 2),) * value.ndim].copy_(value)


def _given(result: Any, changed: list[bool]) -> Given:
    if isinstance(result, Raised):
        return Given([], result, [], changed)
    try:
        names, values = unpack(result)
    except FtnPytorchError:  # which the library must say, too, where something is asked for
        return Given([""], [torch.zeros(1, device="cpu")], [False], changed)
    made = [each if isinstance(each, (str, bool, int, float, complex)) else _held(each) for each in values]
    wider = [getattr(one, "dtype", None) is not getattr(each, "dtype", None) for one, each in zip(made, values)]
    return Given([*(names or [""] * len(made))], made, wider, changed)


def _held(value: Any) -> torch.Tensor:
    """A copy in a type that Fortran has."""
    host = to_host(value, True)
    # a script may have set another device for what is made
    found = (host if isinstance(host, torch.Tensor) else torch.as_tensor(host, device="cpu")).detach().clone()
    return found.short() if found.dtype == torch.uint8 else found


def _difference(wanted: Given, arguments: list[Any], came: Any) -> Verdict | None:
    if isinstance(wanted.values, Raised):
        is_told = came.status == PYTHON and wanted.values in came.said
        return None if is_told else Verdict(WRONG, f"{wanted.values} is {came.status}: {came.said}")
    if came.status:
        return Verdict(WRONG if came.status == PYTHON else REFUSED, f"{came.status}: {came.said}")
    if not came.is_kept:
        return Verdict(WRONG, "elements around a section are written")
    values = [state_of(each) for each in wanted.values]
    if values != came.values:
        return Verdict(WRONG, f"result: {values} and {came.values}"[:300])
    return None if arguments == came.arguments else Verdict(WRONG, f"arguments: {arguments} and {came.arguments}"[:300])
