# SPDX-License-Identifier: MIT
"""Steps of schedulers in a recorded call: Python, which each run makes behind its operators."""

from __future__ import annotations

from typing import Any

import torch

from ..values.held import fields_of
from .bindings import Watch
from .optimizer_numbers import Trials
from .places import Stepped
from .recorder import Unrecordable

_ALL = [each for each in vars(torch.optim.lr_scheduler).values() if isinstance(each, type)]
_OF_LOSSES = torch.optim.lr_scheduler.ReduceLROnPlateau
STEPS = {each.step.__code__ for each in _ALL if issubclass(each, torch.optim.lr_scheduler.LRScheduler)}
_READS = frozenset(("last_epoch", "get_last_lr", "get_lr", "param_groups", "state_dict", "print_lr"))


def schedules_of(scheduled: list[tuple[Any, Any, int]], trials: Trials, watch: Watch) -> list[tuple[Stepped, None]]:
    """Those whose steps a run can make at its end. Their own fields may change, and need not be as they were.

    scheduled: schedulers, what their step is given, and how many operations there were before it.
    """
    found: list[tuple[Stepped, None]] = []
    for scheduler, argument, place in scheduled:
        name, optimizer = type(scheduler).__name__, scheduler.optimizer
        if type(scheduler) not in _ALL or isinstance(scheduler, _OF_LOSSES) or argument is not None:
            raise Unrecordable(f"it steps a {name}, which a recording does once: let it step outside")
        if any(each.optimizer is optimizer and each.end > place for each in trials.steps):
            raise Unrecordable(f"the step of its {name} is followed by one of the optimizer: let it step behind that")
        own = {name for name in fields_of(scheduler) if name.startswith("_")}
        if asked := sorted((_READS | own) & watch.names):
            raise Unrecordable(f"it steps a {name}, and may read what that changes ({asked[0]}): let it step outside")
        found.append((Stepped(scheduler, f"a {name}"), None))
    of_schedulers = [fields_of(part) for stepped, _ in found for part in stepped.parts()]
    inside = [each for fields in of_schedulers for each in fields.values() if type(each) in (list, dict)]
    known = set(map(id, (*of_schedulers, *inside)))
    watch.release(lambda each: None if id(each.holder) in known else each)
    return found
