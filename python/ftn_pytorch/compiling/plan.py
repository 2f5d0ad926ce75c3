# SPDX-License-Identifier: MIT
"""What a compiler needs to know of a recording: its operators, and of its tensors shapes, strides and types."""

from __future__ import annotations

import hashlib
import pickle
import platform
from dataclasses import dataclass
from typing import Any

import torch

SLOT, NUMBER, LIST, VALUE, NAME, CONSTANT = range(6)
"""Kinds of arguments, and of what a number is computed from. A name is that of a constant of torch: pickle would look
for such a constant in whichever module has imported torch."""


@dataclass(frozen=True)
class Memory:
    """A tensor that a call is given: of the caller, or one that is there before."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any

    def empty(self) -> Any:
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device="cpu")


def memory_of(tensor: Any) -> Memory:
    return Memory(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


@dataclass(frozen=True)
class View:
    """A tensor over memory that others have, too."""

    place: int
    """Of the memory among ``Plan.memory``."""
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Step:
    """One call of an operator."""

    name: str
    overload: str
    arguments: tuple[tuple[int, Any], ...]
    """In the order of the schema, all of them: kind, and a slot, a number, a tuple of arguments, a value, or a name. A
    number is what a stack computes: pairs of a kind and what it is, or of a function of ``operator`` and how many it
    takes."""
    results: tuple[tuple[int, ...], ...]
    """Slots of each result, several for a list of tensors; -1 for what is no new tensor."""


@dataclass(frozen=True)
class Plan:
    """A recording without its tensors, which can go to another process."""

    steps: tuple[Step, ...]
    memory: tuple[Memory, ...]
    """Of the tensors that each call is given."""
    slots: tuple[int, ...]
    """Where these are; -1 for memory of which there are views only."""
    views: tuple[tuple[int, View], ...]
    numbers: int
    """How many numbers a call is given, in one tensor of float64 behind the others."""
    results: tuple[int, ...]
    threads: int
    """With which the code computes."""

    def key(self) -> str:
        """Names what comes out of the compiler, on this kind of processor."""
        about = (torch.__version__, platform.machine(), torch.backends.cpu.get_cpu_capability())
        return hashlib.sha256(pickle.dumps((about, self))).hexdigest()[:32]
