# SPDX-License-Identifier: MIT
"""Returns over several steps, for learning from a Replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError, require_count
from .transitions import checked, form
from .unrecorded import unrecorded

_ADVICE = "call it outside of the recorded function and pass what it returns"


@unrecorded(_ADVICE)
class NStep:
    """Adds up rewards of ``n`` steps: ``replay.add(*n_step.add(...))``.

    ``add`` is given each step of several environments side by side, and gives what is complete: from an observation to
    that ``n`` steps later, or to the end of the episode. What a value is to learn is ``reward + discount * value(next
    observation)`` then. ``gamma``: what the reward of a step counts less than that of the step before.
    """

    def __init__(self, n: int, gamma: float = 0.99) -> None:
        require_count("NStep: n", n)
        if not 0 <= gamma <= 1:
            raise FtnPytorchError("ARGUMENT", f"NStep: gamma is {gamma}, it must be in [0, 1]")
        self.n, self.gamma = n, gamma
        self._steps = 0
        # (n, environments, ...): observation and action, the rewards since, their weight, and what is not complete.
        self._columns: list[torch.Tensor] = []

    @torch.no_grad()
    def add(
        self,
        observation: torch.Tensor,
        action: torch.Tensor,
        reward: torch.Tensor,
        next_observation: torch.Tensor,
        terminated: torch.Tensor,
        truncated: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """One step of m environments: (m, ...), (m, ...), (m,), (m, ...), (m,), (m,).

        ``next_observation`` where an episode ends is its last one. ``terminated``: nothing comes after it;
        ``truncated``: it was cut off, at a time limit, and its last observation has a value.

        Returns copies: observation, action, reward, next observation, discount, each (k, ...), where k is 0 in the
        first calls, and more than m where episodes end. The discount is gamma to the number of steps, 0 after
        termination. SHAPE if the arguments do not fit, or are other environments than before.
        """
        now = checked("NStep", observation, action, reward, next_observation, terminated, truncated)
        if not self._columns:
            self._allocate(now.observation, now.action)
        observations, actions, returns, discounts, waits = self._columns
        if form((now.observation[None], now.action[None])) != form((observations[:1], actions[:1])):
            raise FtnPytorchError(
                "SHAPE",
                f"NStep: observations and actions were {form((observations[0], actions[0]))}, and are now "
                f"{form((now.observation, now.action))}",
            )
        slot, oldest = self._steps % self.n, (self._steps + 1) % self.n
        observations[slot], actions[slot] = now.observation, now.action
        returns[slot], discounts[slot], waits[slot] = 0.0, 1.0, True
        returns += discounts * now.reward
        discounts *= self.gamma
        leaves = waits & (now.terminated | now.truncated)
        leaves[oldest] |= waits[oldest]
        waits &= ~leaves
        self._steps += 1
        order = torch.arange(oldest, oldest + self.n, device=leaves.device) % self.n
        rows, places = leaves[order].nonzero(as_tuple=True)
        rows = order[rows]
        ends = now.terminated[places]
        return (
            observations[rows, places],
            actions[rows, places],
            returns[rows, places].to(now.reward.dtype),
            now.next_observation[places],
            discounts[rows, places].masked_fill(ends, 0.0).to(now.reward.dtype),
        )

    def state_dict(self) -> dict[str, Any]:
        """Steps that are not complete."""
        return {"n": self.n, "gamma": self.gamma, "steps": self._steps, "columns": list(self._columns)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """FORMAT, and nothing is changed, if it is of other steps or environments."""
        there, here = (state["n"], state["gamma"]), (self.n, self.gamma)
        if there != here:
            raise FtnPytorchError("FORMAT", f"NStep: n and gamma are {there} in the file and {here} here")
        forms = [form(each) for each in (state["columns"], self._columns)]
        if all(forms) and forms[0] != forms[1]:
            raise FtnPytorchError("FORMAT", f"NStep: the environments are {forms[0]} in the file and {forms[1]} here")
        device = self._columns[0].device if self._columns else None
        self._columns = [each.to(device, copy=True) for each in state["columns"]]
        self._steps = state["steps"]

    def _allocate(self, observation: torch.Tensor, action: torch.Tensor) -> None:
        with torch.inference_mode(False):
            zeros = torch.zeros(self.n, len(observation), dtype=torch.float64, device=observation.device)
            self._columns = [
                *(each.new_zeros((self.n, *each.shape)) for each in (observation, action)),
                zeros,
                zeros.clone(),
                zeros.bool(),
            ]
