# SPDX-License-Identifier: MIT
"""Weights handed from networks that are trained in one thread to networks that predict in another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from ..errors import FtnPytorchError
from ..system import private_names
from ..values import dtype_name


class Weights:
    """Copies tensors that are trained to those that predict, never half of them.

    The trainer calls ``offer`` after each step, who predicts calls ``publish`` between predictions. Neither waits for
    the other, apart from the time of one copy. The copies in between take the memory of the networks once more.
    ``trained``, ``predicting``: called for the tensors, which may be others after a network was moved or changed.
    """

    def __init__(self, trained: Callable[[], list[torch.Tensor]], predicting: Callable[[], list[torch.Tensor]]) -> None:
        self._trained, self._predicting = trained, predicting
        self._ready: list[torch.Tensor] = []
        self._handover = threading.Lock()
        self._is_new = False

    def offer(self) -> None:
        """By the trainer: copy the weights, over those that nobody has taken: a later step may never come."""
        with self._handover:
            self._ready = _copied(self._ready, self._trained())
            self._is_new = True

    def publish(self) -> None:
        """By who predicts: take what was offered last.

        SHAPE, DTYPE if the network that is trained has other weights now than the one that predicts.
        """
        if not self._is_new:
            return
        with self._handover:
            self._is_new = False
            _fill(self._predicting(), self._ready)

    def state(self) -> dict[str, Any]:
        """What predicts, and what was offered and not taken."""
        with self._handover:
            return {"predicting": _copied([], self._predicting()), "ready": list(self._ready) if self._is_new else None}

    def check(self, state: Mapping[str, Any]) -> None:
        """FORMAT if the state is of other networks."""
        here, there = self._predicting(), state["predicting"]
        if _forms(here) != _forms(there):
            raise FtnPytorchError(
                "FORMAT", f"Background: the file has the weights {_text(there)}, the network {_text(here)}"
            )

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` has returned, after ``check``."""
        with self._handover:
            _fill(self._predicting(), state["predicting"])
            self._is_new = state["ready"] is not None
            if self._is_new:
                self._ready = _copied(self._ready, state["ready"])


def parts_of(networks: Iterable[Any]) -> list[torch.Tensor]:
    """Parameters and buffers of modules, and lone parameters, each one once."""
    found: dict[int, torch.Tensor] = {}
    for each in networks:
        for part in (*each.parameters(), *each.buffers()) if isinstance(each, torch.nn.Module) else (each,):
            found[id(part)] = part
    return list(found.values())


def tensors_of(networks: Iterable[Any]) -> list[torch.Tensor]:
    """The same without their graph."""
    return [each.detach() for each in parts_of(networks)]


def _forms(tensors: Sequence[torch.Tensor]) -> list[tuple[torch.dtype, torch.Size]]:
    return [(each.dtype, each.shape) for each in tensors]


def _text(tensors: Sequence[torch.Tensor]) -> str:
    return ", ".join(f"{dtype_name(each)} {list(each.shape)}" for each in tensors)


@torch.no_grad()
def _copied(to: list[torch.Tensor], of: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copies in memory that is there already, or else in new one."""
    if _forms(to) != _forms(of):
        return [each.detach().clone() for each in of]
    private_names.copy_all(to, of)
    return to


@torch.no_grad()
def _fill(to: list[torch.Tensor], of: list[torch.Tensor]) -> None:
    if _forms(to) != _forms(of):
        is_converted = [each.shape for each in to] == [each.shape for each in of]
        raise FtnPytorchError(
            "DTYPE" if is_converted else "SHAPE",
            f"Background: the weights {_text(of)} cannot become those of the network that predicts, {_text(to)}. Make "
            "the Background when the network has its types and shapes",
        )
    private_names.copy_all(to, of)
