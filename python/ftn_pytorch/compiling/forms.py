# SPDX-License-Identifier: MIT
"""Other forms of operators: steps of optimizers, which torch has as one kernel for all parameters, as operators that a
compiler can fuse; and what takes a number that a compiler cannot know as a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_FUSED = ("aten::_fused_adam_", "aten::_fused_adamw_", "aten::_fused_sgd_")


@dataclass
class Computed:
    """A number among the arguments of an operator, another one in each call."""

    tensor: Any
    """Without axes, in float64."""


def adam(
    parameters: list[Any],
    gradients: list[Any],
    means: list[Any],
    squares: list[Any],
    steps: list[Any],
    *,
    rate: Any,
    betas: tuple[Any, Any],
    decay: Any,
    epsilon: Any,
    is_decoupled: bool,
    maximize: bool,
) -> None:
    """Kingma and Ba (2015, arXiv:1412.6980), algorithm 1. is_decoupled: the decay of Loshchilov and Hutter (2019,
    arXiv:1711.05101). steps: counts, with the one of this step in them."""
    for parameter, gradient, mean, square, step in zip(parameters, gradients, means, squares, steps):
        if maximize:
            gradient = -gradient
        if is_decoupled:
            parameter.mul_(1 - rate * decay)
        else:
            gradient = gradient + parameter * decay
        mean.add_((gradient - mean) * (1 - betas[0]))
        square.mul_(betas[1]).add_(gradient * gradient * (1 - betas[1]))
        count = step.double()
        size = rate / (1 - betas[0] ** count)
        root = (1 - betas[1] ** count).sqrt()
        parameter.sub_(mean * size / (square.sqrt() / root + epsilon))


def sgd(
    parameters: list[Any],
    gradients: list[Any],
    buffers: list[Any],
    *,
    rate: Any,
    momentum: Any,
    decay: Any,
    dampening: Any,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Gradient descent as torch.optim.SGD documents it. buffers: of the momentum, empty without."""
    for place, (parameter, gradient) in enumerate(zip(parameters, gradients)):
        if maximize:
            gradient = -gradient
        gradient = gradient + parameter * decay
        if buffers:
            buffer = buffers[place]
            buffer.mul_(momentum).add_(gradient * (1 - dampening))
            gradient = gradient + buffer * momentum if nesterov else buffer
        parameter.sub_(gradient * rate)


def form_of(name: str, overload: str, given: dict[str, Any]) -> Callable[[], Any] | None:
    """What does the same as an operator with these arguments; None where the operator itself is to be called."""
    is_lerp = name in ("aten::lerp", "aten::lerp_") and overload == "Scalar" and isinstance(given["weight"], Computed)
    given = {key: value.tensor if isinstance(value, Computed) else value for key, value in given.items()}
    if is_lerp:
        lerp = getattr(given["self"], name.removeprefix("aten::"))
        return lambda: lerp(given["end"], given["weight"].to(given["self"].dtype))
    if name not in _FUSED or given["grad_scale"] is not None or given["found_inf"] is not None:
        return None
    if name == "aten::_fused_sgd_" and not given["is_first_step"]:
        return lambda: sgd(
            given["self"],
            given["grads"],
            given["momentum_buffer_list"],
            rate=given["lr"],
            momentum=given["momentum"],
            decay=given["weight_decay"],
            dampening=given["dampening"],
            nesterov=given["nesterov"],
            maximize=given["maximize"],
        )
    if name == "aten::_fused_sgd_" or given["amsgrad"]:
        return None
    return lambda: adam(
        given["self"],
        given["grads"],
        given["exp_avgs"],
        given["exp_avg_sqs"],
        given["state_steps"],
        rate=given["lr"],
        betas=(given["beta1"], given["beta2"]),
        decay=given["weight_decay"],
        epsilon=given["eps"],
        is_decoupled=name == "aten::_fused_adamw_",
        maximize=given["maximize"],
    )
