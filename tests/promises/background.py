# SPDX-License-Identifier: MIT
"""Promise: a script that is loaded with ``background=True`` trains in a process beside as it would here."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import program
from ftn_pytorch.errors import FtnPytorchError

from .plain import Numbers, calls_of, files_of, kept_settings, new_name, text_of_file
from .scripts import Script
from .state import state_of, tensors_of
from .verdicts import REFUSED, SAME, WRONG, Verdict

# All that happens around a call is made beside, too. What it gives is told as a number: the loss of the call.
_TRAIN = """

def ftn_pytorch_train(call, _kept=[]):
    from promises.background import told
    return told(globals(), call, _kept)
"""


def background(script: Script, plain: Numbers) -> Verdict:
    """Results of all calls, and the weights that are published here at the end."""
    expected = plain.seen  # before a module beside the script is imported here
    with kept_settings(), files_of(script) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, f"{new_name()}.py")
        path.write_text(f"_script = {(script.calls, script.has_input, plain.varied)}\n{text_of_file(script)}{_TRAIN}")
        runner = None
        try:
            runner = program.load(str(path), background=True)
            train = program.function(runner, "ftn_pytorch_train")
            for call, seen in enumerate(expected):
                train(call)
                runner._background.flush()
                if runner._background.loss != digest(seen.result):
                    return Verdict(WRONG, f"call {call}: another result")
            here = tensors_of(vars(runner._module))
        except FtnPytorchError as failure:
            return Verdict(REFUSED, f"{failure.status}: {failure}")
        finally:
            if runner is not None:
                runner._background.stop()
    for name, (bits, _) in expected[-1].tensors.items():
        if "." in name and name not in here:
            return Verdict(WRONG, f"{name} is not here")
        if "." in name and here[name][0] != bits:
            return Verdict(WRONG, f"weights of {name}")
    return Verdict(SAME)


def told(module: dict[str, Any], call: int, kept: list[Any]) -> float:
    """In the process beside: make the next call of a script."""
    if not kept:
        kept_settings().__enter__()
        calls, has_input, varied = module["_script"]
        kept.append(calls_of(module, Script("", "", {}, calls, has_input), varied))
    _, result = next(kept[0])
    return digest(state_of(result))


def digest(value: Any) -> float:
    """A whole number that tells a state from others."""
    return float(int.from_bytes(hashlib.sha256(repr(value).encode()).digest()[:6], "little"))
