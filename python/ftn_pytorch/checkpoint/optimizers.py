# SPDX-License-Identifier: MIT
"""Optimizers of torch: what of one cannot be written, whether its next step takes a state, and what one is made of."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

from ..system import private_names
from ..values import is_array, is_tensor, loaded, plain, user_objects
from ..values.code_names import names_in
from ..values.contents import fields_in
from ..values.encoding import Unstorable
from ..values.kinds import Kind, kind_of
from .stateful import copy_tensor, difference, is_module


def state_of(optimizer: Any, path: str) -> Any:
    """The state of an optimizer; Unstorable if torch gives it no name, or if a restart would refuse it."""
    if type(optimizer).state_dict is not loaded("torch").optim.Optimizer.state_dict:
        return optimizer.state_dict()
    there = {id(each) for group in optimizer.param_groups for each in group["params"]}
    for each in optimizer.state:
        if is_tensor(each) and id(each) not in there:
            raise Unstorable(
                f"{path} has the state of a parameter of shape {tuple(each.shape)} that none of its groups has any "
                "more (del optimizer.state[parameter] removes it)"
            )
    state = optimizer.state_dict()
    for misfit in misfits_of(optimizer, optimizer.param_groups, state, path):
        raise Unstorable(misfit)
    return state


def note_trained(encoder: Any) -> None:
    """Where the parameters of each optimizer are that a collector has met, beside its state, in which they are numbers:
    the name of a network and that in it, or the name of a tensor.
    """
    places: dict[int, tuple[str, str]] = {}
    for path, each in encoder._objects.items():
        if is_module(each):
            for name, parameter in each.named_parameters():
                places.setdefault(id(parameter), (path, name))
    for path, optimizer in encoder.optimizers().items():
        for group in optimizer.param_groups if path in encoder.trained else ():
            trained = [places.get(id(each)) or (_name_in(encoder, each), "") for each in group["params"]]
            encoder.trained[path].append(trained)


def _name_in(encoder: Any, tensor: Any) -> str:
    old, now = encoder._first.node_of(tensor), encoder._now.node_of(tensor)
    return encoder._first.name_of(old) if old is not None else "" if now is None else encoder._now.path(now)


def misplaced(groups: Any, trained: Any, owners: Mapping[str, Any], path: str) -> Iterator[str]:
    """Which parameters of these groups have other places than in a file: they would get the state of others.

    ``owners``: objects by name.
    """
    named: dict[str, dict[str, Any]] = {}
    for ours, places in zip(groups, trained):
        for number, (parameter, (owner, name)) in enumerate(zip(ours["params"], places)):
            if owner not in named:
                live: Any = owners.get(owner)
                named[owner] = dict(live.named_parameters()) if is_module(live) else {"": live}
            known = named[owner].get(name)
            if is_tensor(known) and known is not parameter:
                where = ".".join(filter(None, (owner, name)))
                yield f"{path} has another parameter in place {number}, which is that of {where} in the file"
                break


def is_of_torch(kind: Any) -> bool:
    """True for a class of optimizers or schedulers that torch brings: their fields are all that they are."""
    torch = loaded("torch")
    kinds = () if torch is None else (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)
    return isinstance(kind, type) and kind.__module__.startswith("torch.optim") and issubclass(kind, kinds)


def is_its_state(optimizer: Any) -> bool:
    """True for an optimizer that is its groups, its state, and what torch puts into the class."""
    if kind_of(optimizer) is not Kind.OPTIMIZER or not is_of_torch(type(optimizer)):
        return False
    own = [each for name, each in fields_in(optimizer, Kind.OPTIMIZER).items() if name != "defaults"]
    # A scheduler counts the steps of its optimizer, for a warning.
    return not any(private_names.hooks_of(optimizer)) and all(kind_of(each) is Kind.INSTALLED for each in own)


def misfits_of(live: Any, groups: Any, state: Mapping[str, Any], path: str) -> Iterator[str]:
    """Why a state is not one of this optimizer, which has these groups then. Those that torch does not bring know
    themselves what they take.
    """
    here, there = ([len(each["params"]) for each in one] for one in (groups, state["param_groups"]))
    if here != there:
        yield f"{path} has groups of {there} parameters in the file and of {here} here"
    elif is_of_torch(type(live)):
        own = _names_of_moments(type(live))
        for ours, theirs in zip(groups, state["param_groups"]):
            for name, default in live.defaults.items():
                if (theirs_is := _sort_of(theirs.get(name, default))) != _sort_of(ours.get(name, default)):
                    yield f"{path} could make no step with this state: {name} is {theirs_is}"
            states = [state["state"].get(number, {}) for number in theirs["params"]]
            for parameter, (name, each) in (
                (one, pair) for one, of in zip(ours["params"], states) for pair in of.items()
            ):
                is_of_class = name in own and is_tensor(each) and each.dim() > 0
                if is_of_class and each.shape != parameter.shape:
                    shapes = f"{tuple(each.shape)}, and the parameter {tuple(parameter.shape)}"
                    yield f"{path} could make no step with this state: {name} has shape {shapes}"


def _names_of_moments(kind: type) -> set[str]:
    """What the code of a class mentions, of which states have the shapes of parameters. Of one parameter Adafactor
    keeps sums of rows and columns, LBFGS what is of all of them.
    """
    functions = [each for base in kind.__mro__ for each in vars(base).values() if isinstance(each, FunctionType)]
    # torch.compile has put functions of its own around some
    codes = [inspect.unwrap(each).__code__ for each in functions]
    is_other = kind.__name__ in ("Adafactor", "LBFGS")
    return {name for each in codes for name in names_in(each)} if not is_other else set()


def _sort_of(value: Any) -> Any:
    """What an option can be in place of: numbers are also in tensors, and a switch may be left open."""
    if isinstance(value, tuple):
        return tuple(map(_sort_of, value))
    is_number = isinstance(plain(value), (int, float)) or is_tensor(value) or is_array(value)
    return "a number" if value is None or is_number else type(value).__name__


def regroup(optimizer: Any, groups: list[dict[str, Any]], parameters: list[list[Any]]) -> None:
    """Give it these groups, with these tensors; what else is in them is part of its state."""
    optimizer.param_groups[:] = groups
    for group, each in zip(groups, parameters):
        group["params"][:] = each


def load(optimizer: Any, put: Callable[[Any], Any], state: Any) -> None:
    """Its groups and rates stay the same objects: a scheduler may hold them."""
    groups, held, before = optimizer.param_groups, optimizer.state, list(optimizer.param_groups)
    put(state)
    made, made_state = optimizer.param_groups, optimizer.state
    if type(optimizer).load_state_dict is loaded("torch").optim.Optimizer.load_state_dict:
        for saved, group in zip(state["param_groups"], made):
            for number, parameter in zip(saved["params"], group["params"]):
                if number in state["state"]:
                    made_state[parameter] = _of_type(made_state[parameter], state["state"][number])
    if made is not groups and len(made) == len(before):
        for old, new in zip(before, made):
            _regroup(old, dict(new))
        groups[:] = before
        optimizer.param_groups = groups
    if made_state is not held:
        user_objects.refill(held, made_state)
        optimizer.state = held


def _of_type(made: Any, saved: Any) -> Any:
    """torch casts what it loads of a parameter to the type of this one, and loses texts: both are as saved again."""
    if is_tensor(made) and is_tensor(saved):
        return made if made.dtype == saved.dtype else saved.to(made.device)
    if isinstance(made, dict) and isinstance(saved, dict):
        return {name: _of_type(each, saved[name]) if name in saved else each for name, each in made.items()}
    if type(made) in (list, tuple) and len(made) == len(saved):
        return type(made)(map(_of_type, made, saved))
    return saved if isinstance(saved, str) else made


def _regroup(old: dict[str, Any], new: dict[str, Any]) -> None:
    for key, value in new.items():
        rate = old.get(key)
        if is_tensor(rate) and is_tensor(value) and rate is not value and not difference(value, rate):
            copy_tensor(rate, value)
            new[key] = rate
    old["params"][:] = new["params"]
    user_objects.refill(old, {**new, "params": old["params"]})


def undo_of(optimizer: Any) -> Callable[[], None]:
    groups, held = optimizer.param_groups, optimizer.state
    containers = [groups, held, *groups, *(group["params"] for group in groups)]
    before = [(each, copy.copy(each)) for each in containers]
    rates = [(each, each.clone()) for group in groups for each in group.values() if is_tensor(each)]

    def undo() -> None:
        for each, items in before:
            user_objects.refill(each, items)
        for live, old in rates:
            copy_tensor(live, old)
        optimizer.param_groups, optimizer.state = groups, held

    return undo
