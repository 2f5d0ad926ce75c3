# SPDX-License-Identifier: MIT
"""The state of an optimizer as an extra file of a TorchScript archive.

The direct path reads and writes the same file (src/plugin/training/optimizer_state.hpp, where it is described): what
torch.save writes of the ``state_dict`` of an optimizer, with its class and the names of its parameters.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FtnPytorchError, summary
from ...values import dtype_name
from ..objects.optimizers import OptimizerRunner

FILE = "ftn_pytorch_optimizer"
"""Name of the extra file."""

CLASSES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
"""Optimizers by their name here, as torch.optim calls them."""

_SETTINGS = {"SGD": {"momentum", "nesterov", "dampening"}, "Adam": {"betas", "eps", "amsgrad"}}
_SETTINGS["AdamW"] = _SETTINGS["Adam"]
_MOMENTS: dict[str, tuple[str, ...]] = {
    "SGD": ("momentum_buffer",),
    "Adam": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),
}
_MOMENTS["AdamW"] = _MOMENTS["Adam"]

_MARK = b"ftn_pytorch optimizer "
_FIRST_LINE = "ftn_pytorch optimizer 1"


def settings_of(kind: str) -> set[str]:
    """Names of the settings that an optimizer has, for torch.optim."""
    return {"lr", "weight_decay"} | _SETTINGS[kind]


def dumps(optimizer: Any, parameters: Mapping[str, Any]) -> bytes:
    """The state of a ``torch.optim`` optimizer of some of these parameters."""
    import torch

    kind, whole = type(optimizer).__name__, optimizer.state_dict()
    names = {id(each): name for name, each in parameters.items()}
    states = {
        number: {name: value for name, value in each.items() if value is not None}
        for number, each in whole["state"].items()
    }
    content = {
        "class": kind,
        "names": [names[id(each)] for each in optimizer.param_groups[0]["params"]],
        "state": states,
        "param_groups": [{name: whole["param_groups"][0][name] for name in (*sorted(settings_of(kind)), "params")}],
    }
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def started_anew(optimizer: OptimizerRunner, parameters: Mapping[str, Any]) -> OptimizerRunner:
    """One with the settings that this one was made with, for other parameters."""
    kind = type(optimizer.held).__name__
    settings = {name: optimizer.held.defaults[name] for name in settings_of(kind)}
    return OptimizerRunner(kind, *parameters.values(), **settings)


def loads(data: bytes, parameters: Mapping[str, Any], path: str) -> OptimizerRunner:
    """The optimizer of an extra file, for parameters by their names; FORMAT if it is damaged, or of another model."""
    import torch

    try:
        if data.startswith(_MARK):
            content = _value_of_text(data, parameters)
        else:
            content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        return _made(content, parameters)
    except Exception as failure:
        why = failure.text if isinstance(failure, FtnPytorchError) else summary(failure)
        raise FtnPytorchError(
            "FORMAT", f"{path} holds the state of an optimizer that cannot be read: {why}"
        ) from failure


def _made(content: Mapping[str, Any], parameters: Mapping[str, Any]) -> OptimizerRunner:
    import torch

    kind, group = content["class"], content["param_groups"][0]
    if kind not in _MOMENTS:
        raise ValueError(f"there is no optimizer {kind!r}")
    missing = settings_of(kind) - set(group)
    if missing:
        raise ValueError(f"settings are missing: {', '.join(sorted(missing))}")
    settings = {name: group[name] for name in settings_of(kind)}
    made = OptimizerRunner(kind, *parameters.values(), **settings)
    states = {}
    for number, name in enumerate(content["names"]):
        parameter = _parameter(name, parameters)
        if number not in content["state"]:
            continue
        state = dict(content["state"][number])
        moments = {each: state[each] for each in _MOMENTS[kind] if each in state}
        for each, value in moments.items():
            _require_like(parameter, value.dtype == parameter.dtype, value.shape, f"{each} of {name}")
            state[each] = torch.empty_like(parameter).copy_(value).detach()
        steps = float(state.get("step", 1.0 if moments else 0.0))
        if not 0 <= steps < float("inf"):
            raise ValueError(f"{name} has made {steps:g} steps")
        if steps > 0 and not _left_behind(kind, settings) <= set(moments):
            raise ValueError(f"{name} has made steps that left nothing behind")
        if steps > 0:
            states[list(parameters).index(name)] = state
    made.held.load_state_dict({"state": states, "param_groups": made.held.state_dict()["param_groups"]})
    return made


def _parameter(name: str, parameters: Mapping[str, Any]) -> Any:
    if name not in parameters:
        raise ValueError(f"the model has no parameter {name} to be trained")
    return parameters[name]


def _require_like(parameter: Any, has_its_type: bool, shape: Sequence[int], what: str) -> None:
    if not has_its_type or tuple(shape) != tuple(parameter.shape):
        raise ValueError(f"{what} is not of the type and shape of the parameter")


def _left_behind(kind: str, settings: Mapping[str, Any]) -> set[str]:
    """What a step leaves behind."""
    if kind == "SGD":
        return set(_MOMENTS[kind]) if settings["momentum"] else set()
    return set(_MOMENTS[kind][: 3 if settings["amsgrad"] else 2])


def _value_of_text(data: bytes, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same of the text that 0.2.0 wrote: lines, then the bytes of the tensors (plugin/training/text_state.cpp)."""
    import torch

    head, end, body = data.partition(b"\nend\n")
    if not head.startswith(f"{_FIRST_LINE}\n".encode()):
        raise ValueError(f"it does not begin with {_FIRST_LINE!r} (written by a later version?)")
    if not end:
        raise ValueError("it ends early")
    kind = ""
    names: list[str] = []
    states: dict[int, dict[str, Any]] = {}
    settings: dict[str, Any] = {"dampening": 0.0}
    for first, *rest in map(str.split, head.decode().split("\n")[1:]):
        moments = dict(zip(("first", "second", "largest"), _MOMENTS.get(kind, _MOMENTS["Adam"] if kind else ())))
        if first == "kind":
            kind = CLASSES.get(rest[0], rest[0])
        elif first == "parameter":
            name = rest[0]
            _parameter(name, parameters)
            states[len(names)] = {"step": torch.tensor(float(int(rest[1])), device="cpu")} if kind != "SGD" else {}
            names.append(name)
        elif names and first in moments:
            parameter = parameters[names[-1]]
            sizes = tuple(map(int, rest[1].split(","))) if len(rest) > 1 else ()
            _require_like(parameter, rest[0] == dtype_name(parameter), sizes, f"{first} of {names[-1]}")
            size = parameter.numel() * parameter.element_size()
            if len(body) < size:
                raise ValueError("its numbers are incomplete")
            values = torch.frombuffer(bytearray(body[:size]), dtype=parameter.dtype) if size else parameter.detach()
            states[len(names) - 1][moments[first]] = values.reshape(sizes)
            body = body[size:]
        elif first in _TEXT_SETTINGS and not names:
            # 0.2.0 wrote the decimal separator of the program's locale.
            settings[first] = float.fromhex(rest[0].replace(",", "."))
        else:
            raise ValueError(f"a line begins with {first!r}")
    if not kind:
        raise ValueError("settings are missing: kind")
    missing = _TEXT_SETTINGS - set(settings)
    if missing:
        raise ValueError(f"settings are missing: {', '.join(sorted(missing))}")
    group = {**settings, "betas": (settings["beta1"], settings["beta2"])}
    group |= {name: bool(settings[name]) for name in ("nesterov", "amsgrad")}
    return {"class": kind, "names": names, "state": states, "param_groups": [group]}


_TEXT_SETTINGS = {"lr", "momentum", "weight_decay", "dampening", "nesterov", "beta1", "beta2", "eps", "amsgrad"}
