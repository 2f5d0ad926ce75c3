# SPDX-License-Identifier: MIT
"""What a compiler needs to know of a recording: its operators, and of its tensors shapes, strides and types."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from typing import Any

import torch

from .._version import __version__


@dataclass(frozen=True)
class Memory:
    """A tensor that a call is given: of the caller, or one that is there before."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any
    factors: tuple[int, ...] = ()
    """How many elements of each axis one more row of the batch adds; empty where there is no batch."""

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


Step = tuple[str, str, list[tuple], list[list[int]]]
"""One call of an operator: its name and overload, what it is given, and slots of its results, as docs/ftr-format.md has
them. A type or layout of torch is a name: pickle would look for it in whichever module has imported torch."""


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
    """How many torch has. Code for one stays with one, other code computes with those of the program that runs it."""
    batch: int = 0
    """Rows of the batch in ``memory``, where the code takes any; 0: where it takes these alone."""
    least: int = 1
    """The smallest batch."""

    def key(self) -> str:
        """Names what comes out of the compiler, on this kind of processor."""
        about = (__version__, torch.__version__, platform.machine(), torch.backends.cpu.get_cpu_capability())
        return hashlib.sha256(repr((about, self)).encode()).hexdigest()[:32]


def obstacle(name: str, overload: str) -> str:
    """Why an operator is not compiled; empty for one that is."""
    if name.partition("::")[0] in ("_c10d_functional", "ftn_pytorch"):
        return "is an operation of all ranks"
    return "draws random numbers" if torch.Tag.nondeterministic_seeded in operator(name, overload).tags else ""


def operator(name: str, overload: str) -> Any:
    """By the names of its schema."""
    namespace, plain = name.split("::")
    return getattr(getattr(getattr(torch.ops, namespace), plain), overload or "default")
