# SPDX-License-Identifier: MIT
"""Python as the engine of tensors: what the core asks of torch beside operators."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ..errors import FtnPytorchError, did_you_mean, summary
from ..system import private_names
from ..values import dtype_name, is_tensor
from ..values.dtypes import OF_CODE


def call_torch(name: str, args: tuple, named: dict[str, Any]) -> Any:
    """Call a function by its name below torch: "linalg.norm", or "Tensor.to", what the first argument has of that name.

    A text at ``dtype`` is the name of one. Of several results the first comes back.
    """
    import torch

    if "dtype" in named:
        named["dtype"] = torch_dtype(torch, named["dtype"])
    method = name.removeprefix("Tensor.")
    if method != name and "." not in method:
        result = getattr(args[0], method)(*args[1:], **named)
    else:
        result = attrgetter(name)(torch)(*args, **named)
    return result[0] if isinstance(result, tuple) and any(map(is_tensor, result)) else result


def describe_tensor(tensor: Any) -> tuple[str, tuple[int, ...], bool, bool, bool, bool]:
    """Type, shape, whether it requires gradients, has a graph, is a view, and is a tensor of torch, not of NumPy."""
    told = dtype_name(tensor), tuple(tensor.shape)
    if not is_tensor(tensor):
        return *told, False, False, False, False
    return *told, tensor.requires_grad, tensor.grad_fn is not None, private_names.is_view(tensor), True


def memory_of(tensor: Any) -> tuple[int, int]:
    """Address of the first byte behind a tensor, and the one after the last.

    The core makes a storage of each array of the program.
    """
    storage = tensor.untyped_storage()
    begin = storage.data_ptr()
    return begin, begin + storage.nbytes()


def written(tensor: Any) -> None:
    """The core has written into its memory: torch counts the change."""
    import torch

    if not tensor.is_inference():
        torch.autograd.graph.increment_version(tensor)


def torch_dtype(torch: Any, name: str) -> Any:
    """An element type of torch by its name, "float32"; ARGUMENT if there is none."""
    found = getattr(torch, name.removeprefix("torch."), None)
    if isinstance(found, torch.dtype):
        return found
    raise FtnPytorchError("ARGUMENT", f"torch has no element type {name!r}{did_you_mean(name, OF_CODE.values())}")


def enter_autocast(device: str, dtype: str) -> Any:
    """torch.autocast on this thread until its ``__exit__``; ARGUMENT for what torch does not know.

    ``device``: type of device, empty for "cpu". ``dtype``: empty for that of torch for the device.
    """
    import torch

    wanted = torch_dtype(torch, dtype) if dtype else None
    try:
        context = torch.autocast(device or "cpu", dtype=wanted)
    except (RuntimeError, ValueError) as failure:
        raise FtnPytorchError("ARGUMENT", f"autocast is not possible: {summary(failure)}") from failure
    context.__enter__()
    return context
