# SPDX-License-Identifier: MIT
"""Numbers in the groups of an optimizer, such as learning rates: where each of them stands, and its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Source(NamedTuple):
    """A number of a group, maybe an item of a tuple."""

    group: dict[str, Any]
    key: str
    item: int

    def value(self) -> float:
        """As a number of Python, whatever has made it: one of NumPy is a float of another class."""
        return float(self.group[self.key] if self.item < 0 else self.group[self.key][self.item])

    def put(self, value: float) -> None:
        self.group[self.key] = self.replaced(value)

    def replaced(self, value: float) -> Any:
        """What ``put`` puts there."""
        if self.item < 0:
            return value
        items = list(self.group[self.key])
        items[self.item] = value
        return tuple(items)


def is_live(optimizer: Any) -> bool:
    """True for a class of torch with the step of torch, whose numbers are understood. Others may do anything with
    theirs: a rule that two points show need not hold for a third.
    """
    kind = type(optimizer)
    return all(getattr(each, "__module__", "").startswith("torch.optim") for each in (kind, kind.step))


def is_setting(value: Any) -> bool:
    """True for what a scheduler may change: numbers other than zero, alone or in tuples."""
    if isinstance(value, tuple):
        return bool(value) and all(is_setting(item) for item in value)
    return isinstance(value, float) and value != 0


def sources_of(optimizer: Any) -> list[Source]:
    """The numbers of an optimizer of torch; none for others."""
    found: list[Source] = []
    if not is_live(optimizer):
        return found
    for group in optimizer.param_groups:
        for key, value in group.items():
            if key != "params" and is_setting(value):
                items = range(len(value)) if isinstance(value, tuple) else [-1]
                found += [Source(group, key, item) for item in items]
    return found


def names_of(optimizers: Mapping[str, Any]) -> dict[str, Source]:
    """The numbers of optimizers, which are given by their paths: "opt.0.lr", "opt.1.betas.0"."""
    found: dict[str, Source] = {}
    for path, optimizer in optimizers.items():
        groups = [id(group) for group in optimizer.param_groups]
        for source in sources_of(optimizer):
            item = "" if source.item < 0 else f".{source.item}"
            found[f"{path.replace('/', '.')}.{groups.index(id(source.group))}.{source.key}{item}"] = source
    return found
