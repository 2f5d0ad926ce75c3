# SPDX-License-Identifier: MIT
"""What a function does with tensors where the recorder sees no operator: numbers that Python reads out of their memory,
tensors that are made of numbers of Python, gradients that flow out of the function through its arguments."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..system import private_names
from ..values.kinds import Kind, kind_of
from .memory_spans import elements_of
from .operations import address_of, is_ordinary, tensors_among
from .recorder import OF_MEMORY, Recorder
from .traced_numbers import SLOT

_VERSION = private_names.version_getter()
_READS = tuple(getattr(torch.Tensor, name) for name in ("tolist", "numpy", "__array__", "__dlpack__", "__repr__"))
_TAKE_SHAPES = ("as", "to")
"""Ends of names of functions for which a tensor stands for its shape or type."""
_SET_GRADIENT = torch.Tensor.grad.__set__  # type: ignore[union-attr]
_TAKES = (torch.Tensor.item, torch.Tensor.__float__)
"""What gives a number of Python, a new object if it is a float."""
_MAKES = {
    torch.tensor: 0,
    torch.as_tensor: 0,
    torch.asarray: 0,
    torch.Tensor.new_tensor: 1,
    torch.Tensor.__setitem__: 2,
}
"""What makes tensors of numbers of Python, and the first argument that may be such."""


class Outside(TorchFunctionMode):
    """While it is entered, ``obstacle`` of the recorder tells the first such thing."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._gradients = [(each, each.grad, changes_of(each.grad)) for each in recorder.held_inputs if each.is_leaf]
        self._hooks: list[Any] = []

    def __enter__(self) -> Outside:
        nodes = [each.grad_fn for each in self._recorder.held_inputs if each.grad_fn is not None]
        self._hooks = [node.register_prehook(lambda _: self._refuse_gradients()) for node in nodes]
        return super().__enter__()

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)
        for hook in self._hooks:
            hook.remove()
        for tensor, gradient, version in self._gradients:
            if tensor.grad is not gradient or changes_of(gradient) != version:
                self._refuse_gradients()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function == _VERSION:
            self._recorder.refuse("it asks how often a tensor was changed (_version)")
        # Of what was computed, too: pickle reads its bytes without an operator.
        if _name_of(function) == "untyped_storage":
            self._recorder.refuse(OF_MEMORY)
        if function in _READS:
            self._recorder.refuse(self._recorder.of_number(f"Tensor.{function.__name__}"))
        if function == _SET_GRADIENT and args[1] is None:
            self._recorder.cleared[id(args[0])] = len(self._recorder.operations)
        if function == torch.Tensor.item and self._recorder.trace is not None:
            known = len(self._recorder.reads)
            number = function(*args, **kwargs)
            is_count = len(self._recorder.reads) > known
            return self._recorder.trace.number(number, ((SLOT, max(self._recorder.reads)),)) if is_count else number
        if function in _TAKES:
            return self._taken(function, args[0], inspect.currentframe())
        if function not in _MAKES:
            return self._called(function, args, kwargs)
        before = set(self._recorder.outside)
        made = function(*args, **kwargs)
        if all(_is_plain(each) for each in (*args[_MAKES[function] :], *kwargs.values())):
            # The numbers are constants, or belong to what is watched.
            for slot in self._recorder.outside.keys() - before:
                self._recorder.note_constant(slot)
        return made

    def _called(self, function: Any, args: Any, kwargs: Any) -> Any:
        """C++ takes integers out of host memory without an operator, such as lengths: they decide which ones follow."""
        recorder = self._recorder
        known, turn = len(recorder.operations), recorder.turn
        result = function(*args, **kwargs)
        is_asked = args and isinstance(args[0], torch.Tensor) and self._is_given(args[0])
        if is_asked and recorder.turn == turn and not (recorder.is_paused or recorder.obstacle):
            self._compare(function, args, kwargs, result)
        if len(recorder.operations) > known and not _name_of(function).endswith(_TAKE_SHAPES):
            for each in tensors_among((*args, *kwargs.values())):
                is_read = each.is_cpu and not each.is_floating_point() and each.numel() > 0
                if is_read and recorder.given.get(address_of(each), 0) <= turn:
                    recorder.refuse(recorder.of_number(_name_of(function)))
        return result

    def _compare(self, function: Any, args: Any, kwargs: Any, answer: Any) -> None:
        """No operator tells what an argument is asked for. Others that a recording would take give the same answer."""
        if (tensors := list(tensors_among([answer]))) and None not in map(self._recorder.known, tensors):
            return
        asked = _name_of(function).removeprefix(".")
        why = f"it asks an argument for {asked}, which may be another one in the next call"
        with self._recorder.paused(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                for other in _others_like(args[0]):
                    found = function(other, *args[1:], **kwargs)
                    if found is not answer and not (type(found) is type(answer) and bool(found == answer)):
                        self._recorder.refuse(why)
            except Exception:
                self._recorder.refuse(why)

    def _taken(self, function: Any, tensor: Any, frame: Any) -> Any:
        called, known = self._recorder.called, len(self._recorder.taken)
        number = function(tensor)
        is_of_code = function != torch.Tensor.item or getattr(called, "__self__", None) is tensor
        if len(self._recorder.taken) == known + 1 and type(number) is float and is_of_code:
            self._recorder.note_number(number, frame.f_back, function)
        return number

    def _is_given(self, tensor: Any) -> bool:
        """Whether a tensor is an argument, or shares memory with one."""
        memory = address_of(tensor)
        return any(tensor is each or (memory and memory == address_of(each)) for each in self._recorder.held_inputs)

    def _refuse_gradients(self) -> None:
        self._recorder.refuse(
            "gradients flow into an argument, or into what it was computed from; detach it, or take them with "
            "torch.autograd.grad and return them"
        )


def _others_like(tensor: Any) -> list[Any]:
    """Tensors that are the same in all that a recording compares, and others in the rest: one of its own, and a part of
    one that autograd has computed."""
    if not is_ordinary(tensor):
        return []
    looks = tensor.shape, tensor.stride()
    with torch.inference_mode(tensor.is_inference()), torch.enable_grad():
        alone = torch.empty_strided(*looks, dtype=tensor.dtype, device=tensor.device)
        room = torch.empty(1 + elements_of(tensor), dtype=tensor.dtype, device=tensor.device)
        if tensor.requires_grad:  # transforms of torch.func let nobody set that, not even to what it is
            alone.requires_grad_()
            room.requires_grad_()
        part = room.as_strided(*looks, 1)
        part.grad = torch.empty_like(alone)
        if tensor.requires_grad:
            part.retain_grad()
        return [alone, part]


def _name_of(function: Any) -> str:
    """Of a function, ".grad" for what gets this attribute."""
    name = getattr(function, "__name__", "")
    return f".{function.__self__.__name__}" if name == "__get__" else name


def _is_plain(value: Any) -> bool:
    """True for numbers and containers of them, and for what says how a tensor is made."""
    if type(value) in (list, tuple):
        return all(_is_plain(each) for each in value)
    return kind_of(value) is Kind.CONSTANT


def changes_of(tensor: Any) -> int:
    """How often autograd has counted a change; -1 where it does not count."""
    return -1 if tensor is None or tensor.is_inference() else private_names.version_of(tensor)
