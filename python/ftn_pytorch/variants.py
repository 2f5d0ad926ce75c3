# SPDX-License-Identifier: MIT
"""For scripts: one network, run eagerly, as TorchScript or compiled, as the environment says."""

from __future__ import annotations

import os
import warnings
from typing import Any

from . import compiling
from .errors import FtnPytorchError, message

VARIABLE = "FTN_PYTORCH_VARIANT"
VARIANTS = ("eager", "torchscript", "compile")


def choose(network: Any, examples: tuple = (), variant: str | None = None) -> Any:
    """The network in a variant: "eager", "torchscript" or "compile"; by default that of ``FTN_PYTORCH_VARIANT``.

    TorchScript is made by torch.jit.script, or by torch.jit.trace with the ``examples`` if that fails, and is frozen.
    So it is for prediction; put the network into ``eval()`` first. Raises ARGUMENT for unknown variants, FORMAT where
    TorchScript cannot be made.
    """
    wanted = variant or os.environ.get(VARIABLE) or VARIANTS[0]
    if wanted not in VARIANTS:
        where = VARIABLE if variant is None else "variant"
        raise FtnPytorchError("ARGUMENT", f"{where} is {wanted!r}; there are {', '.join(VARIANTS)}")
    if wanted == "torchscript":
        return _torchscript(network, examples)
    if wanted == "compile":
        import torch

        compiling.prepare("inductor", None)
        compiling.compile_module(torch, network, "default", "inductor")
    return network


def _torchscript(network: Any, examples: tuple) -> Any:
    import torch

    with warnings.catch_warnings():
        # Of its deprecation; it was asked for.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            scripted = torch.jit.script(network)
        except Exception as failure:
            if not examples:
                raise FtnPytorchError(
                    "FORMAT", f"torch.jit.script cannot do this network, give examples to trace it: {message(failure)}"
                ) from failure
            scripted = torch.jit.trace(network, examples, strict=False)
        return scripted if scripted.training else torch.jit.freeze(scripted)
