# SPDX-License-Identifier: MIT
"""Steps of a policy that learns from its own ones, and what they were worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError, require_count
from .transitions import Transitions, checked, form
from .unrecorded import unrecorded

_ADVICE = "call it outside of the recorded function and pass what finish returns"


@unrecorded(_ADVICE)
class Rollout:
    """``steps`` steps of several environments side by side, for PPO and its relatives.

    ``finish`` gives their advantages by generalised advantage estimation (Schulman et al. 2016): ``gamma`` is what a
    reward counts less than that of the step before, ``lam`` what an error of the values one step later counts less.
    """

    def __init__(self, steps: int, gamma: float = 0.99, lam: float = 0.95) -> None:
        require_count("Rollout: steps", steps)
        if not 0 <= gamma <= 1 or not 0 <= lam <= 1:
            raise FtnPytorchError("ARGUMENT", f"Rollout: gamma is {gamma} and lam {lam}, they must be in [0, 1]")
        self.steps, self.gamma, self.lam = steps, gamma, lam
        self._filled = 0
        self._columns: list[torch.Tensor] = []
        """(steps, environments, ...) each, as in ``Transitions``."""

    def __len__(self) -> int:
        """Steps that were added since the last ``finish``."""
        return self._filled

    @torch.no_grad()
    def add(
        self,
        observation: torch.Tensor,
        action: torch.Tensor,
        reward: torch.Tensor,
        next_observation: torch.Tensor,
        terminated: torch.Tensor,
        truncated: torch.Tensor | None = None,
    ) -> bool:
        """Copy one step of m environments: (m, ...), (m, ...), (m,), (m, ...), (m,), (m,). True if there are all steps.

        ``next_observation`` where an episode ends is its last one. ``terminated``: nothing comes after it;
        ``truncated``: it was cut off, at a time limit, and its last observation has a value.

        SHAPE if the arguments do not fit, or are other environments than before; ARGUMENT if there are all steps.
        """
        now = checked("Rollout", observation, action, reward, next_observation, terminated, truncated)
        if self._filled == self.steps:
            raise FtnPytorchError("ARGUMENT", f"Rollout: there are all {self.steps} steps: call finish before the next")
        if not self._columns:
            with torch.inference_mode(False):
                self._columns = [each.new_zeros((self.steps, *each.shape)) for each in now]
        here, there = form(each[0] for each in self._columns), form(now)
        if here != there:
            raise FtnPytorchError("SHAPE", f"Rollout: the steps were {here}, and are now {there}")
        for column, each in zip(self._columns, now):
            column[self._filled] = each
        self._filled += 1
        return self._filled == self.steps

    @torch.no_grad()
    def finish(self, critic: Callable[[torch.Tensor], torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """What the steps were worth, and begin anew. Returns copies: observation, action, advantage, target, (k, ...).

        k is steps times environments, environments next to each other. ``target`` is what the value of an observation
        is to learn: the advantage and the value that it had.

        critic: gives (k,) values for (k, ...) observations, of this policy; called for the observations and for the
        next ones. SHAPE if it gives others, ARGUMENT if nothing was added.
        """
        if not self._filled:
            raise FtnPytorchError("ARGUMENT", "Rollout: there are no steps to finish: add some first")
        all_steps = Transitions(*(column[: self._filled] for column in self._columns))
        values, following = (self._values(critic, each) for each in (all_steps.observation, all_steps.next_observation))
        goes_on = ~(all_steps.terminated | all_steps.truncated)
        errors = all_steps.reward.to(values.dtype) + self.gamma * following.where(~all_steps.terminated, 0.0) - values
        advantages, later = torch.empty_like(values), torch.zeros_like(values[0])
        for step in reversed(range(self._filled)):
            later = errors[step] + (self.gamma * self.lam * later).where(goes_on[step], 0.0)
            advantages[step] = later
        self._filled = 0
        found = (all_steps.observation, all_steps.action, advantages, advantages + values)
        return tuple(each.flatten(0, 1).clone() for each in found)

    def state_dict(self) -> dict[str, Any]:
        """The steps since the last ``finish``."""
        columns = [column[: self._filled] for column in self._columns]
        return {"steps": self.steps, "gamma": self.gamma, "lam": self.lam, "columns": columns}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """FORMAT, and nothing is changed, if it is of a Rollout of other steps or environments."""
        here = {"steps": self.steps, "gamma": self.gamma, "lam": self.lam}
        wrong = [name for name, value in here.items() if state[name] != value]
        if wrong:
            told = f"{wrong[0]} is {state[wrong[0]]} in the file and {here[wrong[0]]} here"
            raise FtnPytorchError("FORMAT", f"Rollout: {told}")
        forms = [[(shape[1:], dtype) for shape, dtype in form(each)] for each in (state["columns"], self._columns)]
        if all(forms) and forms[0] != forms[1]:
            raise FtnPytorchError("FORMAT", f"Rollout: the steps are {forms[0]} in the file and {forms[1]} here")
        if state["columns"] and not self._columns:
            self._columns = [each.new_zeros((self.steps, *each.shape[1:])) for each in state["columns"]]
        self._filled = len(state["columns"][0]) if state["columns"] else 0
        for column, saved in zip(self._columns, state["columns"]):
            column[: self._filled] = saved

    def _values(self, critic: Callable[[torch.Tensor], torch.Tensor], observations: torch.Tensor) -> torch.Tensor:
        steps = observations.shape[:2]
        values = critic(observations.flatten(0, 1))
        if values.shape != (steps.numel(),):
            raise FtnPytorchError(
                "SHAPE", f"Rollout: the critic gave values of shape {tuple(values.shape)}, and not ({steps.numel()},)"
            )
        return values.view(steps)
