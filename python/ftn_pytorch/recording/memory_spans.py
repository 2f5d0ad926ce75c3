# SPDX-License-Identifier: MIT
"""Where tensors lie in memory: what overlaps what, and memory for one that is like another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import torch


def span_of(tensor: Any) -> tuple[int, int]:
    """Address of the first byte of a tensor, and that behind its last one."""
    begin = tensor.data_ptr()
    return begin, begin + elements_of(tensor) * tensor.element_size()


def like(tensor: Any, aligned: int) -> Any:
    """A tensor with the strides of another one, and with an address that is as far from a multiple of ``aligned``:
    kernels are chosen by both. That of a tensor in host memory has its pages locked, and any address."""
    shift = 0 if tensor.is_cpu else tensor.data_ptr() % aligned // tensor.element_size()
    is_host = tensor.is_cpu and torch.cuda.is_available()
    room = torch.empty(shift + elements_of(tensor), dtype=tensor.dtype, device=tensor.device, pin_memory=is_host)
    return room.as_strided(tensor.shape, tensor.stride(), shift)


def has_gaps(tensor: Any) -> bool:
    """True for a section with other elements of its array between its own."""
    return elements_of(tensor) > tensor.numel()


def elements_of(tensor: Any) -> int:
    """Elements from the first one to the last one."""
    return 0 if tensor.numel() == 0 else 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))


def are_apart(tensor: Any) -> bool:
    """Whether each element has memory of its own."""
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1 and stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


class Spans:
    """Memory of many tensors."""

    def __init__(self, tensors: Iterable[Any]) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        for begin, end in sorted(map(span_of, tensors)):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            elif begin < end:
                self._begins.append(begin)
                self._ends.append(end)

    def meet(self, begin: int, end: int) -> bool:
        """True where they have a byte of this memory."""
        place = bisect_right(self._ends, begin)
        return begin < end and place < len(self._ends) and self._begins[place] < end


class Overlaps:
    """Whether an array that a recording is given lies in memory that the call writes through something else: compiled
    code, and graphs with buffers, would write it at another time."""

    def __init__(self, tape: Any) -> None:
        self._written = Spans(tensor for (tensor,) in tape.written)
        self._used = Spans(tensor for _, tensor in tape.constants)
        self._written_inputs = tape.written_inputs

    def are_in(self, inputs: list[Any]) -> bool:
        spans = [span_of(tensor) for tensor in inputs]
        if any(self._written.meet(*span) for span in spans):
            return True
        for place in self._written_inputs:
            begin, end = spans[place]
            others = spans[:place] + spans[place + 1 :]
            if self._used.meet(begin, end) or any(one < end and begin < other for one, other in others):
                return True
        return False
