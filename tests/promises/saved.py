# SPDX-License-Identifier: MIT
"""Promise: what is recorded is saved, and gives the same from the file, in Python and in a process without it.

The calls and the state afterwards are those of the script with its recorded functions.
"""

from __future__ import annotations

import atexit
import copy
import functools
import glob
import warnings
from pathlib import Path
from typing import Any

import torch
from build_tree import build_folder

import ftn_pytorch

from .plain import Numbers, calls_of, files_of, kept_settings, make_module, new_name, seed
from .program_without_python import Failed, Program, lacks
from .scripts import Script
from .through_a_file import Run, Watcher, is_same, plain
from .verdicts import REFUSED, SAME, WRONG, Verdict

_GRADIENT = " (its gradient)"


class Different(Exception):
    """What a file gives is not what the script gave."""


def saved(script: Script, _: Numbers, device: str = "cpu") -> Verdict:
    """Each function is saved as soon as it is ready, and four times at most.

    device: of all that is made. Files of a GPU are called from Python only: a program without it passes host arrays.
    """
    with kept_settings(), files_of(script) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watcher = Watcher(Path(folder, "files"))
        with watcher:
            if device != "cpu":
                torch.set_default_device(device)
            try:
                _call(script, folder, device)
            finally:
                torch.set_default_device(None)
        try:
            again_from_files(watcher, Path(folder), device)
        except (Different, Failed) as failure:
            return Verdict(WRONG, str(failure))
        obstacles = [each.obstacle for each in watcher.made if each.obstacle]
        if watcher.refused or (obstacles and not watcher.runs):
            return Verdict(REFUSED, (watcher.refused or obstacles)[0])
        return Verdict(SAME)


def _call(script: Script, folder: str, device: str) -> None:
    """With files of its modules, as a user has them: what code of a script does is looked up in these."""
    recorded = ftn_pytorch.recorded
    make = functools.partial(make_module, folder=folder, recorded=recorded)
    seed()
    module = vars(make(new_name(), script.text, make_module=make))
    if "recorded" not in script.text:
        module["step"] = recorded(module["step"])
    for _ in calls_of(module, script, "early", device=device):
        pass


def again_from_files(watcher: Watcher, folder: Path, device: str = "cpu") -> None:
    """Make the calls that were watched once more. Different where something else comes out."""
    _hold(not any(Path(each).exists() for each in watcher.unwritten), "a refused file was written")
    # a function that is not recorded cannot be saved
    is_tried = watcher.runs or watcher.refused or not any(each.was_ready for each in watcher.made)
    _hold(is_tried, "nothing was saved")
    for run in watcher.runs:
        in_python(run, device)
        if device == "cpu":
            without_python(run, program(), folder)


@functools.cache
def program() -> Program:
    """A process without Python that lasts for all scripts."""
    made = Program(build_folder())
    atexit.register(made.end)
    return made


def in_python(run: Run, device: str = "cpu") -> None:
    """Through the package. Files hold the state of the generator of the host; that of a GPU is the process's."""
    saved = ftn_pytorch.load_recording(run.file, device)
    for place, call in enumerate(run.calls):
        if call.restore:
            saved.restore(call.restore)
        if call.on_device.numel() and (call.restore or not place):
            torch.cuda.set_rng_state(call.on_device)
        for name, value in call.numbers.items():
            saved.set_number(name, value)
        args, named = copy.deepcopy((call.args, call.named))
        compare(call, plain(saved.call("step", *args, **named)), args, named)
    saved.save(f"{run.file}.ckpt")
    compare_state(run, f"{run.file}.ckpt")


def without_python(run: Run, program: Program, folder: Path) -> None:
    """Until a call has an argument that Fortran does not have."""
    saved = torch.load(run.file, weights_only=True)["recording"]["functions"]["step"]
    written = {place for tape in saved for place in tape["written_inputs"]}
    program.tell("load", run.file)
    for call in run.calls:
        if any(lacks(each) for each in (call.args, call.named)):
            return
        if call.restore:
            program.tell("restore", call.restore)
        for name, value in call.numbers.items():
            program.tell("set", name, repr(value))
        args, named = copy.deepcopy((call.args, call.named))
        wanted = [] if call.result is None else call.result if isinstance(call.result, list) else [call.result]
        if any(isinstance(each, list) or each is None for each in wanted):
            try:
                program.call("step", args, named, wanted, written, folder)
            except Failed as failure:
                _hold("results may not be nested" in str(failure) or "is None" in str(failure), str(failure))
                return
            raise Different("results that are nested, or None, are given")
        result = program.call("step", args, named, wanted, written, folder)
        compare(call, result if isinstance(call.result, list) else result[0] if result else None, args, named)
    program.tell("checkpoint", f"{run.file}.folder")
    compare_state(run, glob.glob(f"{run.file}.folder/*.ckpt")[0])


def compare(call: Any, result: Any, args: tuple, named: dict[str, Any]) -> None:
    _hold(is_same(call.result, result), f"result: {call.result} and {result}")
    _hold(is_same(list(call.after), [args, named]), f"arguments: {call.after} and {(args, named)}")


def compare_state(run: Run, path: str) -> None:
    there = torch.load(path, weights_only=True, map_location="cpu")
    arrays = there["arrays"]
    gone = [name for name in run.arrays if name not in arrays]
    more = [name for name in arrays if name.endswith(_GRADIENT) and name not in run.arrays]
    _hold(not gone and not more, f"state: {gone} are gone, {more} are new")
    for name, array in run.arrays.items():
        _hold(is_same(array.cpu(), arrays[name]), f"state.{name}: {array} and {arrays[name]}")
    _hold(torch.equal(there["generator"], run.generator), "random numbers")
    _hold(there["numbers"] == run.numbers, f"numbers: {run.numbers} and {there['numbers']}")


def _hold(is_so: Any, text: str) -> None:
    if not is_so:
        raise Different(text)
