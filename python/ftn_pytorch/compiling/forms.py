# SPDX-License-Identifier: MIT
"""Other forms of operators: steps of optimizers, which torch has as one kernel for all parameters, as operators that a
compiler can fuse; and what takes a number that a compiler cannot know as a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Computed:
    """A number among the arguments of an operator, another one in each call."""

    tensor: Any
    """Without axes, in float64."""


def adam(given: dict[str, Any], is_decoupled: bool) -> None:
    """Kingma and Ba (2015, arXiv:1412.6980), algorithm 1. is_decoupled: the decay of Loshchilov and Hutter (2019,
    arXiv:1711.05101). The counts have the one of this step in them."""
    rate, decay, one, two = (given[name] for name in ("lr", "weight_decay", "beta1", "beta2"))
    tensors = (given[name] for name in ("self", "grads", "exp_avgs", "exp_avg_sqs", "state_steps"))
    for parameter, gradient, mean, square, step in zip(*tensors):
        if given["maximize"]:
            gradient = -gradient
        if is_decoupled:
            parameter.mul_(1 - rate * decay)
        else:
            gradient = gradient + parameter * decay
        mean.add_((gradient - mean) * (1 - one))
        square.mul_(two).add_(gradient * gradient * (1 - two))
        count = step.double()
        size = rate / (1 - one**count)
        root = (1 - two**count).sqrt()
        parameter.sub_(mean * size / (square.sqrt() / root + given["eps"]))


def sgd(given: dict[str, Any]) -> None:
    """Gradient descent as torch.optim.SGD documents it."""
    momentum, buffers = given["momentum"], given["momentum_buffer_list"]
    for place, (parameter, gradient) in enumerate(zip(given["self"], given["grads"])):
        if given["maximize"]:
            gradient = -gradient
        gradient = gradient + parameter * given["weight_decay"]
        if buffers:
            buffer = buffers[place]
            buffer.mul_(momentum).add_(gradient * (1 - given["dampening"]))
            gradient = gradient + buffer * momentum if given["nesterov"] else buffer
        parameter.sub_(gradient * given["lr"])


def form_of(name: str, overload: str, given: dict[str, Any]) -> Callable[[], Any] | None:
    """What does the same as an operator with these arguments; None where the operator itself is to be called."""
    is_lerp = name in ("aten::lerp", "aten::lerp_") and overload == "Scalar" and isinstance(given["weight"], Computed)
    is_fused = given.get("grad_scale", 1) is None and given["found_inf"] is None
    given = {key: value.tensor if isinstance(value, Computed) else value for key, value in given.items()}
    if is_lerp:
        lerp = getattr(given["self"], name.removeprefix("aten::"))
        return lambda: lerp(given["end"], given["weight"].to(given["self"].dtype))
    if is_fused and name in ("aten::_fused_adam_", "aten::_fused_adamw_") and not given["amsgrad"]:
        return lambda: adam(given, name == "aten::_fused_adamw_")
    if is_fused and name == "aten::_fused_sgd_" and not given["is_first_step"]:
        return lambda: sgd(given)
    return None
