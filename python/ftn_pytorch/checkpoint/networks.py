# SPDX-License-Identifier: MIT
"""Networks: whether a state fits, how it is put back with modes and gradients, and how that is undone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ..values import is_array, is_tensor, loaded


def misfits_of(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str) -> list[str]:
    """Compared first: load_state_dict has copied what fits by the time that it finds what does not."""
    missing = [name for name in ours if name not in theirs]
    unexpected = [name for name in theirs if name not in ours]
    misfits = [f"{path}: the file lacks {listed(missing)}"] if missing else []
    if unexpected:
        misfits.append(f"{path}: this one has no place for {listed(unexpected)}")
    both = [name for name in ours if name in theirs]
    differences = ((name, difference(theirs[name], ours[name])) for name in both)
    return misfits + [f"{path}/{name} {difference}" for name, difference in differences if difference]


def load(
    module: Any,
    state: Mapping[str, Any],
    training: Mapping[str, bool],
    requires_grad: Mapping[str, bool],
    gradients: Mapping[str, Any] | None,
) -> None:
    module.load_state_dict(state)
    for name, each in module.named_modules():
        each.training = training.get(name, each.training)
    for name, each in module.named_parameters():
        each.requires_grad_(requires_grad.get(name, each.requires_grad))
        if gradients is not None:
            gradient = gradients.get(name)
            each.grad = gradient if gradient is None else gradient.to(each.device)


def undo_of(module: Any) -> Callable[[], None]:
    """By the tensors themselves: what refused a state may refuse the old one, too."""
    is_lazy = loaded("torch").nn.parameter.is_lazy
    tensors = [each for each in (*module.parameters(), *module.buffers()) if not is_lazy(each)]
    # On the host, since a device that the network fills has no room for another.
    before = [(each, each.detach().to("cpu", copy=True)) for each in tensors]
    training = [(each, each.training) for each in module.modules()]
    gradients = [(each, each.grad, each.requires_grad) for each in module.parameters()]

    def undo() -> None:
        for parameter, gradient, requires_grad in gradients:
            parameter.requires_grad_(requires_grad)
            parameter.grad = gradient
        for live, old in before:
            copy_tensor(live, old)
        for each, mode in training:
            each.training = mode

    return undo


def copy_tensor(live: Any, new: Any) -> None:
    with loaded("torch").no_grad():
        live.copy_(new)


def difference(theirs: Any, ours: Any) -> str:
    """How two values differ in what cannot be changed, empty if they do not."""
    if is_tensor(theirs) and is_tensor(ours):
        if loaded("torch").nn.parameter.is_lazy(ours):
            return ""
    elif not (is_array(theirs) and is_array(ours)):
        if isinstance(theirs, deque) and isinstance(ours, deque):
            return f"has maxlen {theirs.maxlen} in the file and {ours.maxlen} here"
        kinds = [type(value).__qualname__ for value in (theirs, ours)]
        return f"is of type {kinds[0]} in the file and {kinds[1]} here" if kinds[0] != kinds[1] else ""
    for what, there, here in (
        ("shape", tuple(theirs.shape), tuple(ours.shape)),
        ("type", theirs.dtype, ours.dtype),
    ):
        if there != here:
            return f"has {what} {there} in the file and {here} here"
    return ""


def listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def is_field(layer: Any, name: str) -> bool:
    """True for the name of a field that is the user's, or a number of a layer such as ``Dropout.p``."""
    torch = loaded("torch")
    is_layer = isinstance(layer, torch.nn.Module)
    known = {*vars(torch.nn.Module()), "training"} if is_layer else {"defaults", "state", "param_groups"}
    # A field must not hide a method.
    return name not in known and not name.startswith("__") and not callable(getattr(type(layer), name, None))
