# SPDX-License-Identifier: MIT
"""What a trace of a network hides: where its Python looks at values of the inputs, one way of it is kept for all."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..system import private_names

_LOOKS = frozenset(
    ("__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__", "__array__", "item", "tolist")
    + ("numpy", "equal", "allclose", "is_nonzero")
)
"""Functions of tensors that give Python a value; torch warns of some of them, and of those of sizes, too."""


def traced(torch: Any, module: Any, examples: tuple) -> tuple[Any, str]:
    """The trace, and why it may be wrong for other values of the inputs, in the words of torch where it has some.

    Sizes of the inputs, and tensors that are not computed from them, have one value for the example and for a program.
    """
    with _warnings(torch) as told:
        made = torch.jit.trace(module, examples, strict=False)
    try:
        return made, _looks(torch, module, examples)
    except Exception:  # of a module that takes no other class of tensors: what torch says of sizes counts then, too
        return made, next((text for text in told if text.startswith("Converting a tensor to")), "")


def _looks(torch: Any, module: Any, examples: tuple) -> str:
    looks: list[str] = []
    sizes = (torch.Tensor.shape.__get__, torch.Tensor.size, torch.Tensor.numel, torch.Tensor.__len__)

    class Value(torch.Tensor):
        """An input, or what was computed from one."""

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in sizes:
                with private_names.unseen():
                    return func(*args, **(kwargs or {}))
            with _warnings(torch) as told:
                found = super().__torch_function__(func, types, args, kwargs or {})
            name = getattr(func, "__name__", "")
            if name in _LOOKS:
                looks.append(next(iter(told), f"{name} gives Python a value that is computed from the inputs"))
            return found

    inputs = tuple(each.as_subclass(Value) for each in examples)
    torch.jit.trace(module, inputs, strict=False, check_trace=False)
    return next(iter(looks), "")


@contextlib.contextmanager
def _warnings(torch: Any) -> Iterator[list[str]]:
    """What torch says of a trace in the body; no other warning is shown either."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    told += [str(each.message) for each in caught if issubclass(each.category, torch.jit.TracerWarning)]
