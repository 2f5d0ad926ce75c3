# SPDX-License-Identifier: MIT
"""Live objects: which values have a state, how it is read and written, whether it fits, and how that is undone.

An object has a state if its class has ``state_dict`` and ``load_state_dict`` (modules, optimizers, schedulers,
GradScaler, and whatever a script defines so), or if it is a random generator. Everything else is a plain value.
"""

from __future__ import annotations

import gc
import random
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import listed
from ..values import is_array, is_tensor, loaded, python_types, random_states, user_objects
from ..values.contents import keeps_state
from ..values.kinds import qualities
from ..values.walk import Kind, Walk


class Access(NamedTuple):
    """How the state of an object is read and written."""

    get: Callable[[], Any]
    put: Callable[[Any], Any]


def access_to(value: Any) -> Access | None:
    """None for a value without a state of its own."""
    kind = type(value)
    if not keeps_state(kind):
        return None
    if hasattr(kind, "load_state_dict"):
        return Access(value.state_dict, value.load_state_dict)
    if isinstance(value, random.Random):
        return Access(value.getstate, value.setstate)
    torch = loaded("torch")
    if torch is not None and isinstance(value, torch.Generator):
        return Access(
            lambda: random_states.to_bytes(value.get_state()),
            lambda state: value.set_state(random_states.to_tensor(state)),
        )
    if isinstance(value, loaded("numpy").random.RandomState):
        return Access(lambda: value.get_state(legacy=False), value.set_state)
    bits = value.bit_generator
    return Access(lambda: bits.state, lambda state: setattr(bits, "state", state))


def is_namespace(value: Any) -> bool:
    """True for SimpleNamespace and what argparse makes."""
    return type(value) in python_types.NAMESPACES.values()


def holds(value: Any, wanted: Callable[[Any], bool]) -> bool:
    """True if that is so for a value, or for something in its containers and objects of a user's own classes.
    Objects with a state stay closed.
    """
    walk = Walk([("", value)], enters=lambda each, kind: _is_open(each, kind) and not keeps_state(type(each)))
    return any(wanted(edge.value) for edge in walk)


def _is_open(value: Any, kind: Kind) -> bool:
    return kind is Kind.CONTAINER or is_namespace(value) or user_objects.is_plain(type(value))


def is_trainable(value: Any) -> bool:
    """True for a tensor that an optimizer can change."""
    return is_tensor(value) and value.requires_grad and value.is_leaf


def label_of(value: Any) -> str:
    """Name of a type. Not of its module where that is the script, which may run under another name next time."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return f"{package}.{kind.__qualname__}" if package in ("torch", "numpy") else kind.__qualname__


def is_module(value: Any) -> bool:
    return qualities(type(value)).kind is Kind.MODULE


def lost_of_network(module: Any, path: str) -> dict[str, str]:
    """What nobody can ask for: dropout of an LSTM or GRU on a GPU draws from a random state of cuDNN."""
    kind = loaded("torch").nn.RNNBase
    recurrent = [(name, each) for name, each in module.named_modules() if isinstance(each, kind) and each.dropout]
    on_gpu = [name for name, each in recurrent if any(parameter.is_cuda for parameter in each.parameters())]
    return {f"{path}.{name}".rstrip("."): "a network with a random state of cuDNN for its dropout" for name in on_gpu}


def is_optimizer(value: Any) -> bool:
    return qualities(type(value)).kind is Kind.OPTIMIZER


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


def load_network(
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


def undo_of_network(module: Any) -> Callable[[], None]:
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


def repeated(tensor: Any) -> list[int]:
    """Axes along which all elements are the same memory, as ``expand`` makes them."""
    strides = tensor.stride() if tensor.layout == loaded("torch").strided else ()
    return [axis for axis, stride in enumerate(strides) if stride == 0 and tensor.shape[axis] > 1]


def is_repeated(new: Any, live: Any) -> bool:
    """True if what is one element in the memory of a tensor is so in its new numbers."""
    firsts = [new.narrow(axis, 0, 1) for axis in repeated(live)]
    return all(bool(((new == first) | (new != new)).all()) for first in firsts)


def copy_tensor(live: Any, new: Any) -> None:
    with loaded("torch").no_grad():
        for axis in repeated(live):
            live, new = live.narrow(axis, 0, 1), new.narrow(axis, 0, 1)
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


def is_field(layer: Any, name: str) -> bool:
    """True for the name of a field that is the user's, or a number of a layer such as ``Dropout.p``."""
    torch = loaded("torch")
    is_layer = isinstance(layer, torch.nn.Module)
    known = {*vars(torch.nn.Module()), "training"} if is_layer else {"state", "param_groups"}
    # A field must not hide a method.
    return name not in known and not name.startswith("__") and not callable(getattr(type(layer), name, None))


def is_as_new(values: Any) -> bool:
    """True if a set that is made of these items has their order, and as much room for others."""
    new = type(values)(list(values))
    return list(new) == list(values) and sys.getsizeof(new) == sys.getsizeof(values)


def type_of(value: Any) -> str:
    return f"of type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def described(tensor: Any) -> str:
    """Shape of a tensor, and its name in the largest module that has it."""
    kind = loaded("torch").nn.Module
    # Not isinstance, which asks objects for their class: some warn when they are asked.
    modules = [each for each in gc.get_objects() if issubclass(type(each), kind)]
    names = [
        (len(name), name, type(module).__name__)
        for module in modules
        for name, each in module.named_parameters()
        if each is tensor
    ]
    text = f"a tensor of shape {tuple(tensor.shape)}"
    return f"{max(names)[1]} of a {max(names)[2]}, {text}" if names else text
