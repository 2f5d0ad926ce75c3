# SPDX-License-Identifier: MIT
"""What a function does with tensors where the recorder sees no operator: numbers that Python reads out of their memory,
gradients that flow out of the function through its arguments."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .. import private_names
from .tape import Recorder

_READS = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.__dlpack__)


class Outside(TorchFunctionMode):
    """While it is entered, ``obstacle`` of the recorder tells the first such thing."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._gradients = [(each, each.grad, _changes_of(each.grad)) for each in recorder.held_inputs if each.is_leaf]
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
            if tensor.grad is not gradient or _changes_of(gradient) != version:
                self._refuse_gradients()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _READS:
            self._recorder.refuse(self._recorder.of_number(f"Tensor.{function.__name__}"))
        return function(*args, **(kwargs or {}))

    def _refuse_gradients(self) -> None:
        self._recorder.refuse(
            "gradients flow into an argument, or into what it was computed from; detach it, or take them with "
            "torch.autograd.grad and return them"
        )


def _changes_of(tensor: Any) -> int:
    return -1 if tensor is None or tensor.is_inference() else private_names.version_of(tensor)
