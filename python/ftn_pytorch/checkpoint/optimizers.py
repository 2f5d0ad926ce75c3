# SPDX-License-Identifier: MIT
"""Optimizers of torch: what of one cannot be written, and whether its next step takes a state."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import summary
from ..values import is_tensor, loaded
from ..values.encoding import Unstorable


def require_groups(optimizer: Any, path: str) -> None:
    """Unstorable if there is the state of a parameter that none of the groups has, which torch gives no name."""
    if not _has_state_of_torch(optimizer):
        return
    there = {id(each) for group in optimizer.param_groups for each in group["params"]}
    for each in optimizer.state:
        if is_tensor(each) and id(each) not in there:
            raise Unstorable(
                f"{path} has the state of a parameter of shape {tuple(each.shape)} that none of its groups has any "
                "more (del optimizer.state[parameter] removes it)"
            )


def require_step(optimizer: Any, state: Mapping[str, Any], path: str) -> None:
    """Unstorable if a restart would refuse the state of this optimizer."""
    if _has_state_of_torch(optimizer):
        for misfit in misfits_of(optimizer, state["param_groups"], state, path):
            raise Unstorable(misfit)


def _has_state_of_torch(optimizer: Any) -> bool:
    return bool(type(optimizer).state_dict is loaded("torch").optim.Optimizer.state_dict)


def misfits_of(live: Any, groups: Any, state: Mapping[str, Any], path: str) -> Iterator[str]:
    """Why a state is not one of this optimizer, which has these groups then. Those that torch does not bring know
    themselves what they take."""
    every = (live.param_groups, groups, state["param_groups"])
    now, here, there = ([len(each["params"]) for each in one] for one in every)
    if here != there:
        yield f"{path} has groups of {there} parameters in the file and of {here} here"
    elif now == there and type(live).__module__.startswith("torch.optim"):
        pairs = list(zip(live.param_groups, state["param_groups"]))
        twins = [_different(ours["params"], theirs["params"], state["state"]) for ours, theirs in pairs]
        try:
            first = _after_a_step(type(live), zip(live.param_groups, twins), {}, {})
        except Exception:
            return  # it needs more than gradients
        try:
            _after_a_step(type(live), zip(state["param_groups"], twins), state["state"], first)
        except Exception as failure:
            yield f"{path} could make no step with this state: {summary(failure)}"


def _different(parameters: Iterable[Any], numbers: Iterable[Any], states: Mapping[Any, Any]) -> dict[Any, Any]:
    """Of parameters by their numbers those that differ from others in shape, or in the shapes of their states."""
    found = {}
    for number, each in zip(numbers, parameters):
        shapes = [(name, getattr(one, "shape", type(one))) for name, one in states.get(number, {}).items()]
        found[each.shape, each.dtype, tuple(shapes)] = (number, each)
    return dict(found.values())


def _after_a_step(
    kind: Any, groups: Iterable[tuple[Mapping[str, Any], dict]], states: Mapping[Any, Any], like: Mapping[Any, Any]
) -> dict[Any, Any]:
    """States by the numbers of parameters, of tensors without numbers: a step of these costs and changes nothing."""
    torch = loaded("torch")
    made, held = [], {}
    for options, parameters in groups:
        twins = {each: torch.nn.Parameter(torch.empty_like(it, device="meta")) for each, it in parameters.items()}
        for twin in twins.values():
            twin.grad = torch.empty_like(twin)
        # These are for devices that have numbers.
        plain = {name: False for name in ("fused", "foreach", "capturable") if name in options}
        made.append({**options, **plain, "params": list(twins.values())})
        held.update(twins)
    found: Any = defaultdict(dict)
    for number, twin in held.items():
        for name, each in states.get(number, {}).items():
            found[twin][name] = _twin(each, like[number].get(name))
    optimizer = kind([dict(group) for group in made])
    optimizer.__setstate__({"state": found, "param_groups": made})  # as load_state_dict does
    with torch.no_grad():
        inspect.unwrap(kind.step)(optimizer)  # without hooks
    return {number: dict(optimizer.state[twin]) for number, twin in held.items()}


def _twin(value: Any, like: Any) -> Any:
    """What counts is a number, as it is in a state that a step has made."""
    if not is_tensor(value):
        return value
    torch = loaded("torch")
    if not is_tensor(like) or like.is_meta:
        return torch.empty_like(value, device="meta")
    if not torch.can_cast(value.dtype, like.dtype):
        raise TypeError(f"a number of type {value.dtype} in place of {like.dtype}")
    return value.clone()
