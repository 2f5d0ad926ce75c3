# SPDX-License-Identifier: MIT
"""Modes of torch that a script leaves behind: its next call finds them again, and nobody else sees them.

``script/script_modes.cpp`` of the core calls these, and only where it has seen that a mode differs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from . import log

LEFT_ALONE, PUT_BACK, PUT_BACK_AND_KEPT = range(3)
"""What is done with the modes of the process, which other threads see, too."""
_OF_PROCESS = ("default_type", "deterministic")
_DEVICES = ("cpu", "cuda")

_own: dict[int, dict[str, Any]] = {}
"""Of each script that has some, by its number: what differs from the program."""
_of_thread = threading.local()


def _now() -> dict[str, Any]:
    import torch

    return {
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": {each: torch.get_autocast_dtype(each) for each in _DEVICES if torch.is_autocast_enabled(each)},
        "default_type": torch.get_default_dtype(),
        "deterministic": torch.get_deterministic_debug_mode(),
        "device": torch.get_default_device(),
    }


def _plain(gradients: bool) -> dict[str, Any]:
    """As torch has them at its start."""
    import torch

    plain = {"gradients": gradients, "inference": False, "autocast": {}, "default_type": torch.float32}
    return {**plain, "deterministic": 0, "device": torch.device("cpu")}


def _set_autocast(wanted: dict[str, Any]) -> None:
    import torch

    for device in _DEVICES:
        torch.set_autocast_enabled(device, device in wanted)
        if device in wanted:
            torch.set_autocast_dtype(device, wanted[device])


def _set(script: int, wanted: dict[str, Any]) -> None:
    import torch

    setters: dict[str, Callable[[Any], Any]] = {
        "device": lambda device: torch.set_default_device(None if device.type == "cpu" else device),
        "inference": lambda is_on: _set_inference(script, is_on),
        "gradients": torch.set_grad_enabled,  # after inference mode, which changes it
        "autocast": _set_autocast,
        "default_type": torch.set_default_dtype,
        "deterministic": torch.set_deterministic_debug_mode,
    }
    for name, setter in setters.items():
        if name in wanted:
            setter(wanted[name])


def _set_inference(script: int, is_on: bool) -> None:
    """torch has no function for it, only contexts: one that was entered here is left before another is entered."""
    import torch

    entered: dict[int, Any] = _of_thread.__dict__.setdefault("entered", {})
    if script in entered:
        entered.pop(script).__exit__(None, None, None)
    if torch.is_inference_mode_enabled() != is_on:
        entered[script] = torch.inference_mode(is_on)
        entered[script].__enter__()


def remember_modes(is_nested: bool) -> dict[str, Any] | None:
    """Keep what this thread has now; returned for a call within another one."""
    now = _now()
    if is_nested:
        return now
    _of_thread.before = now
    return None


def put_modes_back(script: int, name: str, before: dict[str, Any] | bool | None, of_process: int) -> bool:
    """What there was before a script, whose own is what is there now; true if it has some.

    ``before`` is None for what this thread remembers, and a truth where only gradients may differ from torch's start.
    """
    now = _now()
    before = _plain(before) if isinstance(before, bool) else before or _of_thread.before
    of_thread = {each: value for each, value in now.items() if each not in _OF_PROCESS and value != before[each]}
    own = {**of_thread, **{each: _own.get(script, {})[each] for each in _OF_PROCESS if each in _own.get(script, {})}}
    back = {each: before[each] for each in of_thread}
    if of_process != LEFT_ALONE:
        back.update((each, before[each]) for each in _OF_PROCESS)
    if of_process == PUT_BACK_AND_KEPT:
        own = {**of_thread, **{each: now[each] for each in _OF_PROCESS if now[each] != before[each]}}
    _set(script, back)
    if script == 0:
        return False
    if own and own != _own.get(script):
        log.info(f"{name} leaves modes of torch ({_text(own)}): its calls find them again, and nobody else sees them")
    _own[script] = own
    return bool(own)


def _text(modes: dict[str, Any]) -> str:
    return ", ".join(f"{each.replace('_', ' ')}: {value}" for each, value in modes.items())


def enter_modes(script: int) -> None:
    """Those of a script again, at the start of its call."""
    _set(script, _own.get(script, {}))


def forget_modes(script: int) -> None:
    _own.pop(script, None)
