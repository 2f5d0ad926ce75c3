# SPDX-License-Identifier: MIT
"""The state of an optimizer as an extra file of a TorchScript archive.

The direct path reads and writes the same file (src/direct/optimizer_state.hpp, where the format is described): a text
of lines, then the bytes of the tensors. Nothing in it is code, as it would be in a pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FtnPytorchError
from ...system.tensor_bytes import bytes_of
from ...values import dtype_name, fused_kernels

FILE = "ftn_pytorch_optimizer"
"""Name of the extra file."""

CLASSES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
"""Optimizers by their name here, as torch.optim calls them."""

_FIRST_LINE = "ftn_pytorch optimizer 1"
_REALS = ("lr", "momentum", "weight_decay", "beta1", "beta2", "eps")
_LOGICALS = ("nesterov", "amsgrad")
_LATER = ("dampening",)
"""Reals that are written where they are not zero: versions before them do not know them."""
_PARTS = {
    "sgd": {"first": "momentum_buffer"},
    "adam": {"first": "exp_avg", "second": "exp_avg_sq", "largest": "max_exp_avg_sq"},
}
_PARTS["adamw"] = _PARTS["adam"]


def dumps(kind: str, optimizer: Any, parameters: Mapping[str, Any]) -> bytes:
    """The state of a ``torch.optim`` optimizer over ``parameters``, name to tensor."""
    group = optimizer.param_groups[0]
    betas = group.get("betas", (0.0, 0.0))
    settings = {**group, "beta1": betas[0], "beta2": betas[1]}
    lines = [_FIRST_LINE, f"kind {kind}"]
    lines += [f"{name} {float(settings.get(name) or 0).hex()}" for name in _REALS]
    lines += [f"{name} {float(settings[name]).hex()}" for name in _LATER if settings.get(name)]
    lines += [f"{name} {int(bool(settings.get(name)))}" for name in _LOGICALS]
    body = []
    for name, parameter in parameters.items():
        state = optimizer.state.get(parameter, {})
        # SGD counts no steps: it has made one where there is a momentum.
        steps = int(state["step"]) if "step" in state else int(state.get("momentum_buffer") is not None)
        lines.append(f"parameter {name} {steps}")
        for part, key in _PARTS[kind].items():
            tensor = state.get(key)
            if tensor is not None:
                sizes = ",".join(map(str, tensor.shape))
                lines.append(f"{part} {dtype_name(tensor)} {sizes}")
                body.append(bytes_of(tensor).cpu().numpy().tobytes())
    return "\n".join([*lines, "end", ""]).encode() + b"".join(body)


def loads(data: bytes, parameters: Mapping[str, Any], path: str) -> tuple[str, dict[str, Any], dict[str, dict]]:
    """(name of the optimizer, its settings, state of each parameter by name) of an extra file; FORMAT if damaged."""
    try:
        return _parse(data, parameters)
    except (ArithmeticError, ValueError, KeyError, IndexError) as failure:
        raise refusal(path, failure) from failure


def refusal(path: str, why: object) -> FtnPytorchError:
    """The failure for a state that is damaged, or that no optimizer accepts."""
    return FtnPytorchError("FORMAT", f"{path} holds the state of an optimizer that cannot be read: {why}")


def _parse(data: bytes, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, dict]]:
    import torch

    head, end, body = data.partition(b"\nend\n")
    if not head.startswith(f"{_FIRST_LINE}\n".encode()):
        raise ValueError(f"it does not begin with {_FIRST_LINE!r} (written by a later version?)")
    if not end:
        raise ValueError("it ends early")
    lines = head.decode().split("\n")
    kind, name, at = "", "", 0
    settings: dict[str, Any] = {}
    states: dict[str, dict[str, Any]] = {}
    for first, *rest in map(str.split, lines[1:]):
        if first == "kind":
            kind = rest[0]
            if kind not in CLASSES:
                raise ValueError(f"there is no optimizer {kind!r}")
        elif first in _REALS + _LATER:
            # 0.2.0 wrote the decimal separator of the program's locale.
            settings[first] = float.fromhex(rest[0].replace(",", "."))
        elif first in _LOGICALS:
            settings[first] = bool(int(rest[0]))
        elif first == "parameter":
            name = rest[0]
            if name not in parameters:
                raise ValueError(f"the model has no parameter {name} to be trained")
            states[name] = {"steps": int(rest[1])}
        elif first not in _PARTS.get(kind, ()) or not name:
            raise ValueError(f"a line begins with {first!r}")
        else:
            parameter = parameters[name]
            sizes = tuple(map(int, rest[1].split(","))) if len(rest) > 1 else ()
            if rest[0] != dtype_name(parameter) or sizes != tuple(parameter.shape):
                raise ValueError(f"{first} of {name} is not of the type and shape of the parameter")
            tensor = torch.empty(sizes, dtype=parameter.dtype, device="cpu")
            size = tensor.numel() * tensor.element_size()
            if len(body) - at < size:
                raise ValueError("its numbers are incomplete")
            if size:
                values = torch.frombuffer(bytearray(body[at : at + size]), dtype=parameter.dtype)
                tensor.copy_(values.reshape(sizes))
            states[name][_PARTS[kind][first]] = torch.empty_like(parameter).copy_(tensor).detach()
            at += size
    if not kind:
        raise ValueError("settings are missing: kind")
    settings = {**dict.fromkeys(_LATER, 0.0), **settings}
    missing = settings_of(kind) - set(settings)
    if missing:
        raise ValueError(f"settings are missing: {', '.join(sorted(missing))}")
    for name, state in states.items():
        if state["steps"] < 0:
            raise ValueError(f"{name} has made {state['steps']} steps")
        if state["steps"] > 0 and not _needed(kind, settings) <= set(state):
            raise ValueError(f"{name} has made steps that left nothing behind")
    return kind, {key: settings[key] for key in settings_of(kind)}, states


def _needed(kind: str, settings: Mapping[str, Any]) -> set[str]:
    """What a step leaves behind, as torch.optim calls it."""
    parts = _PARTS[kind]
    if kind == "sgd":
        return {parts["first"]} if settings["momentum"] else set()
    return {parts["first"], parts["second"]} | ({parts["largest"]} if settings["amsgrad"] else set())


def settings_of(kind: str) -> set[str]:
    """Names of the settings that an optimizer has."""
    own = {"momentum", "nesterov", "dampening"} if kind == "sgd" else {"beta1", "beta2", "eps", "amsgrad"}
    return {"lr", "weight_decay"} | own


def make(kind: str, parameters: Mapping[str, Any], settings: Mapping[str, Any], states: Mapping[str, dict]) -> Any:
    """An optimizer of ``torch.optim``, with the fused kernel where torch has one; ``states`` of loads."""
    import torch

    settings = dict(settings)
    if kind != "sgd":
        settings["betas"] = (settings.pop("beta1", 0.9), settings.pop("beta2", 0.999))
    create = getattr(torch.optim, CLASSES[kind])
    tensors = list(parameters.values())
    try:
        optimizer = create(tensors, fused=fused_kernels.can_step(tensors), **settings)
    except RuntimeError:
        # No fused kernel for this device, or none at all in this torch.
        optimizer = create(tensors, **settings)
    for name, state in states.items():
        state = dict(state)
        steps = state.pop("steps")
        if steps == 0:
            continue
        if kind != "sgd":
            fused = optimizer.param_groups[0].get("fused")
            device = parameters[name].device if fused else "cpu"
            state["step"] = torch.tensor(float(steps), dtype=torch.float32, device=device)
        optimizer.state[parameters[name]] = state
    return optimizer
