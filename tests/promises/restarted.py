# SPDX-License-Identifier: MIT
"""Promise: a script that is saved after some calls goes on in another process, whose hashes of texts are others."""

from __future__ import annotations

import os
import pickle
import random
import warnings
from pathlib import Path
from typing import Any

import warm

import ftn_pytorch.checkpoint.script  # noqa: F401  (so that the server has it)
import program
from ftn_pytorch import errors

from .plain import Numbers, Seen, calls_of, files_of, kept_settings, seed, text_of_file
from .scripts import Script
from .state import difference, state_of, tensors_of
from .verdicts import REFUSED, SAME, WRONG, Verdict

# Where a fresh process finds this, the package, and what plays the program
PATHS = os.pathsep.join([str(Path(__file__).resolve().parents[1]), program.PYTHONPATH])
_GIVEN = {"recorded", "make_module", "HEADER", "a_network_beside"}


def restarted(script: Script, plain: Numbers) -> Verdict:
    """The call before which the process ends is drawn by the name of the script."""
    expected = plain.seen  # a script that fails by itself shows nothing
    at = random.Random(script.name).randrange(1, script.calls)
    with files_of(script) as folder:
        Path(folder, "model.py").write_text(text_of_file(script))
        seen: list[Any] = []
        for hash_seed, first, last in ((1, 0, at), (2, at, script.calls)):
            part = _in_process(folder, (script, plain.varied, first, last), hash_seed)
            if isinstance(part, str):
                refused = part.startswith("save: ")
                return Verdict(REFUSED if refused else WRONG, part.removeprefix("save: "))
            seen += part
    for call, (one, other) in enumerate(zip(expected, seen)):
        if found := difference(one._replace(state=None), other):
            return Verdict(WRONG, f"call {call}, restarted at {at}: {found}")
    return Verdict(SAME)


def _in_process(folder: str, work: tuple, hash_seed: int) -> Any:
    """What is seen in calls of the script, or a text that says where it ended."""
    Path(folder, "work").write_bytes(pickle.dumps(work))
    code = f"from promises.restarted import calls; calls({folder!r})"
    variables = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": PATHS}
    done = warm.run(["-c", code], cwd=folder, env=variables, imports=("promises.restarted",))
    if done.returncode:
        return f"it ends with {done.returncode}: {done.stderr[-500:]}"
    return pickle.loads(Path(folder, "seen").read_bytes())


def calls(folder: str) -> None:
    """In a process of its own: load the script, or restore it, make calls, and save it."""
    script, varied, first, last = pickle.loads(Path(folder, "work").read_bytes())
    place, is_folder = os.path.join(folder, "state"), len(script.name) % 2
    seen: Any = []
    stage = "load"
    warnings.simplefilter("ignore")
    kept_settings().__enter__()
    try:
        if first:  # what the process was doing before
            seed()
            random.random()
        runner = program.load(os.path.join(folder, "model.py"))
        if first and "reload_before_restore" in script.text:
            program.reload(runner)
        module = vars(runner._module)
        if first:
            stage = "restore"
            step = program.restore(runner, place)
            assert step == (first if is_folder else -1), step
        stage = "calls"
        for args, result in calls_of(module, script, varied, first=first, last=last):
            own = {name: value for name, value in module.items() if name not in _GIVEN}
            seen.append(Seen(state_of(result), state_of(args), None, tensors_of(own)))
        if not first:
            stage = "save"
            if is_folder:
                program.checkpoint(runner, place, step=last)
            else:
                program.save(runner, place)
    except errors.FtnPytorchError as failure:
        seen = f"{stage}: {failure.status}: {failure}"
    except Exception as failure:
        seen = f"{stage} fails: {type(failure).__name__}: {failure}"
    Path(folder, "seen").write_bytes(pickle.dumps(seen))
