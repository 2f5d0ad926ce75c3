# SPDX-License-Identifier: MIT
"""Tangents, adjoints and Jacobians of any function: of a script, of a saved model.

The core asks for the function "ftn_pytorch_adjoint:1:NAME", which takes one gradient of an output and then the inputs
of NAME. So a derivative passes the boundary as every other call does. Inputs are differentiated that are real or
complex arrays; all others stay what they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import FtnPytorchError
from ..script.call_text import kind
from ..script.results import unpack
from ..system import thread_recorder
from ..values import is_tensor

_PREFIX = "ftn_pytorch_"
_RECORDED = "ftn_pytorch.recording.function"


def parse(name: str) -> tuple[str, int, str] | None:
    """Kind ("tangent", "adjoint", "jacobian"), number of directions, name of the function; None for other names."""
    head, _, rest = name.partition(":")
    count, _, function = rest.partition(":")
    wanted = head.removeprefix(_PREFIX)
    if not head.startswith(_PREFIX) or wanted not in _KINDS or not count.isdigit():
        return None
    return wanted, int(count), function


def derivative(
    wanted: tuple[str, int, str], function: Callable, reverses: bool, check: Callable[[tuple, dict[str, Any]], None]
) -> Callable:
    """The function that computes a derivative. ``reverses``: arrays have their axes in reverse of Fortran.

    check: raises SIGNATURE for arguments that do not fit the function.
    """
    what, count, name = wanted
    differentiable = _Differentiable(_without_modes(function), name, reverses, check)
    return functools.partial(_taken, _KINDS[what], differentiable, count)


def _taken(kind: Callable, *args: Any, **named: Any) -> Any:
    # What a recorded part of the function returns has no graph.
    with thread_recorder.aside():
        return kind(*args, **named)


class _Differentiable:
    """A function, and what messages say of it."""

    def __init__(self, function: Callable, name: str, reverses: bool, check: Callable) -> None:
        self._function = function
        self._check = check
        self.name = name
        self._reverses = reverses

    def outputs(self, args: Sequence[Any], named: dict[str, Any]) -> tuple[list[str] | None, list[Any]]:
        """Real and complex arrays among the results, in their order, and their names if they have any."""
        try:
            result = self._function(*args, **named)
        except TypeError:
            self._check(tuple(args), named)
            raise
        names, values = unpack(result)
        found = [place for place, value in enumerate(values) if _is_differentiable(value)]
        return None if names is None else [names[place] for place in found], [values[place] for place in found]

    def paired(self, directions: tuple, arrays: list[Any], what: str, whose: str) -> list[Any]:
        """One direction for each array, like it; else ARGUMENT, SHAPE or DTYPE. Arrays of rank 0 may have numbers."""
        if len(directions) != len(arrays):
            raise FtnPytorchError(
                "ARGUMENT",
                f"{len(directions)} {what}s were given, but {self.name} has {len(arrays)} real or complex {whose}s",
            )
        pairs = []
        for number, (direction, array) in enumerate(zip(directions, arrays), 1):
            if array.dim() == 0 and isinstance(direction, (int, float, complex)):
                direction = array.new_tensor(direction)
            same_shape = is_tensor(direction) and direction.shape == array.shape
            if not same_shape or direction.dtype != array.dtype:
                raise FtnPytorchError(
                    "DTYPE" if same_shape else "SHAPE",
                    f"{what} {number} is {self._kind(direction)}, "
                    f"{whose} {number} of {self.name} is {self._kind(array)}",
                )
            pairs.append(direction)
        return pairs

    def refuse_constant(self) -> None:
        """ARGUMENT: torch has not followed the computation."""
        raise FtnPytorchError(
            "ARGUMENT",
            f"no result of {self.name} depends on its inputs as far as torch can follow: it may compute under "
            "torch.inference_mode() or torch.no_grad(), in NumPy, or on x.detach()",
        )

    def _kind(self, value: Any) -> str:
        return kind(value, self._reverses)


def _tangent(function: _Differentiable, count: int, *args: Any, **named: Any) -> Any:
    """Derivatives of the results in the direction of the first ``count`` arguments, with the names of the results."""
    import torch
    from torch.autograd import forward_ad

    directions, inputs = args[:count], args[count:]
    arrays = [value for value in (*inputs, *named.values()) if _is_differentiable(value)]
    remaining = iter(function.paired(directions, arrays, "tangent", "input"))

    def dual(value: Any) -> Any:
        if not _is_differentiable(value):
            return value
        # copies: a function that changes its input in place changes the tangent with it
        return forward_ad.make_dual(value.detach().clone(), next(remaining).detach().clone())

    # gradients backward are not wanted, and cost memory
    with torch.inference_mode(False), torch.no_grad(), forward_ad.dual_level():
        changed = [dual(value) for value in inputs]
        names, results = function.outputs(changed, {name: dual(value) for name, value in named.items()})
        tangents = [forward_ad.unpack_dual(value).tangent for value in results]
    if all(tangent is None for tangent in tangents):
        function.refuse_constant()
    found = [torch.zeros_like(result) if tangent is None else tangent for result, tangent in zip(results, tangents)]
    return tuple(found) if names is None else dict(zip(names, found))


def _adjoint(function: _Differentiable, count: int, *args: Any, **named: Any) -> Any:
    """Gradients of the inputs for the gradients of the results, which are the first ``count`` arguments."""
    directions, inputs = args[:count], args[count:]
    leaves, results = _followed(function, inputs, named)
    return _gradients(function, results, leaves, function.paired(directions, results, "gradient", "output"))


def _jacobian(function: _Differentiable, count: int, *args: Any, **named: Any) -> Any:
    """All derivatives of one real result with respect to one real input, the axes of the result first."""
    import torch

    leaves, results = _followed(function, args, named)
    if len(leaves) != 1 or len(results) != 1:
        raise FtnPytorchError(
            "ARGUMENT",
            f"{function.name} has {len(leaves)} real or complex inputs and {len(results)} such outputs; a Jacobian is "
            "that of one input and one output: use tangent or adjoint",
        )
    (leaf,), (result,) = leaves, results
    if leaf.is_complex() or result.is_complex():
        # torch's gradients are conjugate, and one number is not enough unless the function is holomorphic
        raise FtnPytorchError(
            "ARGUMENT", f"{function.name} is complex, a Jacobian is that of real arrays: use tangent or adjoint"
        )
    rows = torch.empty((result.numel(), *leaf.shape), dtype=leaf.dtype, device=leaf.device)
    unit = torch.zeros_like(result, memory_format=torch.contiguous_format)
    for number in range(result.numel()):
        unit.view(-1)[number] = 1
        (rows[number],) = _gradients(function, results, leaves, (unit,), retain_graph=True)
        unit.view(-1)[number] = 0
    return rows.reshape(*result.shape, *leaf.shape)


def _followed(function: _Differentiable, inputs: tuple, named: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Inputs that are differentiated, as leaves on the same memory, and the results that torch computed from them."""
    import torch

    leaves: list[Any] = []

    def leaf(value: Any) -> Any:
        if not _is_differentiable(value):
            return value
        leaves.append(value.detach().requires_grad_())
        return leaves[-1].clone()  # which may be changed in place, as no leaf may

    with torch.inference_mode(False), torch.enable_grad():
        args = [leaf(value) for value in inputs]
        _, results = function.outputs(args, {name: leaf(value) for name, value in named.items()})
    if not leaves or not any(result.requires_grad for result in results):
        function.refuse_constant()
    return leaves, results


def _gradients(
    function: _Differentiable,
    results: list[Any],
    leaves: list[Any],
    directions: Sequence[Any],
    retain_graph: bool = False,
) -> Any:
    """Gradients of the leaves; nothing else is given one. ARGUMENT where parameters alone have made the results."""
    import torch

    followed = [(result, direction) for result, direction in zip(results, directions) if result.requires_grad]
    gradients = torch.autograd.grad(
        [result for result, _ in followed],
        leaves,
        [direction for _, direction in followed],
        retain_graph=retain_graph,
        allow_unused=True,
    )
    if all(gradient is None for gradient in gradients):
        function.refuse_constant()
    return tuple(torch.zeros_like(leaf) if gradient is None else gradient for leaf, gradient in zip(leaves, gradients))


def _is_differentiable(value: Any) -> bool:
    return is_tensor(value) and (value.is_floating_point() or value.is_complex())


def _without_modes(function: Callable) -> Callable:
    """The function below @recorded, @torch.inference_mode() and their like: derivatives are what is asked for here."""
    import torch

    # every decorator that torch makes of a mode is the same code
    code = torch.no_grad()(lambda: None).__code__
    below: Any = function
    while getattr(below, "__code__", None) is code or type(getattr(below, "recording", None)).__module__ == _RECORDED:
        below = below.__wrapped__
    return below


_KINDS: dict[str, Callable] = {"tangent": _tangent, "adjoint": _adjoint, "jacobian": _jacobian}
