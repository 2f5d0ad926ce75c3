# SPDX-License-Identifier: MIT
"""Options that commands share: example inputs such as ``32x16``, ``scalar:bool``, ``x=32x16:int64``, and a config."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import FtnPytorchError
from ..values import dtypes

_DTYPES = tuple(name for name in dtypes.OF_CODE.values() if not name.startswith("complex"))
_TOO_MANY = 1 << 60
"""Their bytes are more than a number of 64 bits counts."""


@dataclass(frozen=True)
class InputSpec:
    """An example input: its shape in the axis order of Python, its type, and its name if it has one."""

    shape: tuple[int, ...]
    dtype: str
    name: str = ""

    @classmethod
    def parse(cls, text: str, dtype: str, option: str = "--input", name: str = "") -> InputSpec:
        """From "32x16", "32x16:int64" or "scalar:bool"; ARGUMENT otherwise."""
        sizes, _, chosen = text.partition(":")
        chosen = chosen or dtype
        if chosen not in _DTYPES:
            raise FtnPytorchError("ARGUMENT", f"{option} {text}: no type {chosen!r}; there are {', '.join(_DTYPES)}")
        if sizes == "scalar":
            return cls((), chosen, name)
        if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", sizes):
            raise FtnPytorchError(
                "ARGUMENT", f"{option} {text}: give a shape such as 32x16 or 32x16:int64, or scalar:float64"
            )
        shape = tuple(map(int, sizes.split("x")))
        if math.prod(shape) >= _TOO_MANY:
            raise FtnPytorchError("ARGUMENT", f"{option} {text}: no memory holds that many elements")
        return cls(shape, chosen, name)

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.shape)) or "scalar"
        return f"{self.name}={sizes}:{self.dtype}".removeprefix("=")

    def example(self, torch: Any, rows: int | None = None) -> Any:
        """Random values; integers are 0 or 1, so that they may be indices. ``rows`` replaces the first size."""
        shape = self.shape if rows is None or not self.shape else (rows, *self.shape[1:])
        dtype = getattr(torch, self.dtype)
        if dtype.is_floating_point:
            return torch.randn(shape, device="cpu").to(dtype)
        # Integers may be indices: into a batch of one row, the only one.
        return torch.randint(0, 1 if rows == 1 and dtype != torch.bool else 2, shape, device="cpu").to(dtype)

    def array(self, is_reversed: bool = False) -> Any:
        """The same as a NumPy array in C order, always the same numbers; ``is_reversed``: with the axes reversed."""
        import numpy

        shape = self.shape[::-1] if is_reversed else self.shape
        random = numpy.random.default_rng(0)
        if self.dtype == "bfloat16":
            raise FtnPytorchError("ARGUMENT", "an input of type bfloat16: Fortran has no such type")
        dtype = numpy.dtype(self.dtype)
        numbers = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 2, shape)
        return numpy.asarray(numbers, dtype)


def named_specs(texts: Sequence[str], option: str) -> list[InputSpec]:
    """From "x=32x16:float64" or "32x16"; all have a name or none, and no name comes twice. ARGUMENT otherwise."""
    specs = []
    for text in texts:
        name, equals, rest = text.rpartition("=")
        if equals and not name.isidentifier():
            raise FtnPytorchError("ARGUMENT", f"{option} {text}: {name!r} is no name of a parameter")
        specs.append(InputSpec.parse(rest, "float32", option, name))
    names = [spec.name for spec in specs if spec.name]
    if names and (len(names) < len(specs) or len(set(names)) < len(names)):
        raise FtnPytorchError("ARGUMENT", f"{option}: give each argument a name of its own, or none of them")
    return specs


def add_call(parser: argparse.ArgumentParser) -> None:
    """The options that say how a program loads a script and what it passes."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]SHAPE[:DTYPE]",
        help="an input in the axis order of Python, such as x=32x16:float64 for an array x(16,32) of Fortran; float32 "
        "if it names no type; once for each input, with all names or none; default: what ftn_pytorch_shapes of the "
        "script declares",
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="[NAME=]SHAPE[:DTYPE]",
        help="a target of ftn_pytorch_train; default: the shapes and types of what ftn_pytorch_forward returns",
    )
    add_config(parser)
    parser.add_argument(
        "--dtype", default="keep", choices=("keep", "float32", "float64"), help="as the option of load of that name"
    )


def add_config(parser: argparse.ArgumentParser) -> None:
    """The option for ``ftn_pytorch_setup`` of a script."""
    parser.add_argument(
        "--config", action="append", default=[], metavar="NAME=VALUE", help="a value for ftn_pytorch_setup"
    )


def config_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """What it was given, by name; ARGUMENT for what is no NAME=VALUE."""
    return dict(map(_setting, chosen.config))


def config_in(checkpoint: str) -> dict[str, Any]:
    """The configuration that a checkpoint was written with."""
    from ..checkpoint import Checkpoint

    try:
        return Checkpoint.read(checkpoint).get("config", {})
    except FtnPytorchError as failure:
        # A file that a hook of the script wrote tells no config; only the hook knows whether it is one.
        if failure.status != "FORMAT":
            raise
        return {}


def _setting(text: str) -> tuple[str, Any]:
    """A value of the configuration: an integer, a real number, true or false, a text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise FtnPytorchError("ARGUMENT", f"--config {text}: write NAME=VALUE")
    if value in ("true", "false"):
        return name, value == "true"
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
