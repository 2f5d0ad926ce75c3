# SPDX-License-Identifier: MIT
"""Training that goes astray: back to the last good weights, an early end, inputs that were never learnt."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError
from ..ranks import own_rank, totals
from ..system import process
from . import over_ranks as ranks
from .learnt_range import CountedRange
from .normaliser import completed
from .unrecorded import Number, unrecorded

_ADVICE = "call it outside of the recorded function, and record the step that it decides on"


@unrecorded(_ADVICE, outside=None)
class Guard:
    """Watches the loss, the score and the inputs of what is trained.

    ``trained``: the network, its optimizer, and whatever else with ``state_dict`` is to go back together. Their state
    is copied now, and every ``every`` losses that ``allows`` has found good.

    ``factor``: a loss is bad if it exceeds the mean of the latest ones by so many times that mean, or is not finite.
    ``tolerated``: steps with a bad loss are left out, and it goes back if more than so many come one after the other.
    ``limit``: how often it may go back without a good loss in between before that is an error. ``patience``: how many
    scores in a row may bring nothing better (lower by more than ``min_delta``) before ``is_completed`` becomes true; by
    default it never does.

    ``over_ranks``: one decision on all ranks, of the mean of their losses and scores, and one range of the inputs of
    all. All ranks of the communicator call ``allows``, ``score`` and ``learn_range``.
    """

    loss = Number()
    """What ``allows`` has decided on last: the loss, or that of all ranks; not a number before."""
    returns, skipped = Number(), Number()
    """How often it has gone back, and how many steps it did not allow."""
    best = Number()
    """The lowest score."""

    def __init__(
        self,
        *trained: Any,
        every: int = 100,
        factor: float = 10.0,
        tolerated: int = 2,
        limit: int = 10,
        patience: float = math.inf,
        min_delta: float = 0.0,
        over_ranks: bool | None = None,
    ) -> None:
        self._trained = trained
        self._every, self._factor, self._tolerated, self._limit = every, factor, tolerated, limit
        self._patience, self._min_delta = patience, min_delta
        self._over_ranks, self.loss = over_ranks, math.nan
        self._range = CountedRange(over_ranks)
        self._mean, self._losses, self._since = 0.0, 0, 0
        self.returns, self.skipped, self._bad, self._in_a_row = 0, 0, 0, 0
        self.best, self._waited = math.inf, 0
        self._keep()

    def allows(self, loss: torch.Tensor | float, *, samples: int | None = None) -> bool:
        """Whether to go on with a loss: call it before ``backward``.

        False if the loss is bad: this step is to be left out. If losses stay bad, weights and optimizer become those of
        the last copy. PYTHON if that has not helped ``limit`` times.

        ``samples``: how many the loss is the mean of, for ranks with different numbers. A rank without samples may have
        any loss. If there are none at all, this step is left out, and nothing is decided.
        """
        alike = f"{self._losses} good losses, {self.skipped} skipped, {self.returns} returns"
        value = self._of_all_ranks(loss, samples, alike, "allows", "decides on its own loss")
        if value is None:
            return False
        self.loss = value
        if not math.isfinite(value) or (
            self._losses >= 10 and value > self._mean + self._factor * max(abs(self._mean), 1e-30)
        ):
            self.skipped += 1
            self._bad += 1
            if self._bad > self._tolerated:
                self._go_back(value)
            return False
        self._bad, self._in_a_row = 0, 0
        self._losses += 1
        self._since += 1
        # A loss above its mean by that much may be the beginning of divergence, which is no state to go back to.
        is_usual = value <= self._mean + abs(self._mean) or self._losses == 1
        self._mean += (value - self._mean) / min(self._losses, 100)
        if self._since >= self._every and is_usual:
            self._keep()
        return True

    def score(self, value: torch.Tensor | float, *, samples: int | None = None) -> bool:
        """Note a score, such as the loss of held-out samples, lower is better; returns ``is_completed``.

        ``samples``: see ``allows``. If there are none at all, nothing is noted.
        """
        alike = f"{self._waited} scores after the best one, {self.best!r}"
        found = self._of_all_ranks(value, samples, alike, "score", "decides on its own score")
        if found is None:
            return self.is_completed
        if found < self.best - self._min_delta:
            self.best, self._waited = found, 0
        else:
            self._waited += 1
        return self.is_completed

    @property
    def is_completed(self) -> bool:
        """What a training function returns as ``is_completed``."""
        return self._waited >= self._patience

    def learn_range(self, x: torch.Tensor) -> None:
        """Widen the range to inputs, (n, columns). SHAPE if they have other columns, ARGUMENT if not finite.

        Over ranks one rank with such a number is enough: then nothing is learnt on any rank.
        """
        self._range.learn(x)

    def outside(self, x: torch.Tensor) -> torch.Tensor:
        """(n,): True where a fallback should answer, as a value of that row is outside of the range that was learnt."""
        return self._range.outside(x)

    @property
    def counts(self) -> torch.Tensor | None:
        """How many values of each column were outside, (columns,); None before a range was learnt.

        On this rank: with ``over_ranks`` the state does not have them, since it is the same on all ranks.
        """
        return self._range.counts

    def state_dict(self) -> dict[str, Any]:
        """All but what it watches, which checkpoints keep by themselves."""
        names = ("_saved", "_mean", "_losses", "_since", "returns", "skipped", "_bad", "_in_a_row", "best", "_waited")
        return {**{name: getattr(self, name) for name in names}, "_range": self._range.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """FORMAT, and nothing is changed, if it is of a Guard of other objects."""
        given = [completed(each, saved) for each, saved in zip(self._trained, state["_saved"])]
        given += state["_saved"][len(given) :]
        shapes = [[_shapes(each) for each in saved] for saved in (self._saved, given)]
        if shapes[0] != shapes[1]:
            raise FtnPytorchError(
                "FORMAT",
                f"Guard: the file has the weights of {len(shapes[1])} objects that are not those of the "
                f"{len(shapes[0])} here: other names or shapes",
            )
        self._range.load_state_dict(state["_range"])
        for name, value in state.items():
            if name != "_range":
                setattr(self, name, given if name == "_saved" else value)

    def _of_all_ranks(
        self, given: torch.Tensor | float, samples: int | None, alike: str, method: str, what: str
    ) -> float | None:
        """A number, or the mean of those of all ranks; None if there are no samples."""
        if samples is not None and (isinstance(samples, bool) or samples < 0):
            raise FtnPytorchError("ARGUMENT", f"Guard: samples is {samples}, it must be 0 or more")
        value = float(given.item() if isinstance(given, torch.Tensor) else given)
        share = 1 if samples is None else samples
        if ranks.asked_for(self._over_ranks, "Guard", what):
            device = given.device if isinstance(given, torch.Tensor) else None
            mine = [value * share if share else 0.0, float(share)]
            sums = totals.total(
                torch.tensor(mine, dtype=torch.float64, device=device), alike, f"Guard.{method}"
            ).tolist()
            value, share = sums[0] / sums[1] if sums[1] else math.nan, int(sums[1])
        return value if share else None

    def _keep(self) -> None:
        self._saved = [copy.deepcopy(each.state_dict()) for each in self._trained]
        self._since = 0

    def _go_back(self, value: float) -> None:
        for each, saved in zip(self._trained, self._saved):
            # Optimizers go on with the very tensors that they are given.
            each.load_state_dict(copy.deepcopy(saved))
        self.returns += 1
        self._in_a_row += 1
        # The next copy is made of what proves good again.
        self._since, self._bad = 0, 0
        if self._in_a_row > self._limit:
            raise FtnPytorchError(
                "PYTHON",
                f"Guard: the loss became {value:.6g}, and none was good after going back to the last good weights "
                f"{self._limit} times. Lower the learning rate, limit the gradients, or look at the samples",
            )
        if self.returns == 1 and not (self._over_ranks and own_rank.rank_and_size()[0] > 0):
            usual = f"where {self._mean:.6g} is usual" if self._losses else "before any was good"
            process.warn(
                f"Guard: the loss became {value:.6g} {usual}. Weights and optimizer are those "
                "of the last good copy again. `returns` counts how often that happens; this warning comes once"
            )


def _shapes(state: Any) -> Any:
    """Names and shapes of a state of modules; of others, such as optimizers, what loads them decides."""
    if any(not isinstance(each, torch.Tensor) for each in state.values()):
        return sorted(map(str, state))
    return {name: tuple(each.shape) for name, each in state.items()}
