# SPDX-License-Identifier: MIT
"""Which operators of this torch are functions of Python, and by which names; written at build time for functions.cpp.

Only functions of C are: what torch has written in Python does something else than an operator of that name, or more.
"""

import inspect
import sys
import types
from collections.abc import Iterable
from pathlib import Path

import torch

WRAPPERS = {
    "celu": ["alpha"],
    "elu": ["alpha"],
    "hardsigmoid": [],
    "hardswish": [],
    "hardtanh": ["min_val", "max_val"],
    "leaky_relu": ["negative_slope"],
    "log_softmax": ["dim", "dtype"],
    "mish": [],
    "relu": [],
    "relu6": [],
    "selu": [],
    "silu": [],
    "softmax": ["dim", "dtype"],
}
"""Of torch.nn.functional, in Python: with one tensor, and these settings by name, they only call the operator."""


def is_operator(name: str) -> bool:
    return not name.startswith("_") and hasattr(torch.ops.aten, name)


def names_in(place: object, kind: type) -> dict[str, str]:
    """Operators among the functions of a kind, by their names there."""
    found = {name: inspect.getattr_static(place, name) for name in dir(place) if not name.startswith("_")}
    named = {name: value.__name__ for name, value in found.items() if isinstance(value, kind)}
    return {name: operator for name, operator in named.items() if is_operator(operator)}


def array(kind: str, name: str, rows: Iterable[str]) -> str:
    return f"constexpr {kind} {name}[] = {{\n  " + ",\n  ".join(sorted(rows)) + "};\n"


functions = [name for name, operator in names_in(torch, types.BuiltinFunctionType).items() if name == operator]
methods = [name for name, operator in names_in(torch.Tensor, types.MethodDescriptorType).items() if name == operator]
by_name_alone = [name for name in methods if not hasattr(torch, name)]
of_networks = names_in(torch.nn.functional, types.BuiltinFunctionType)

if __name__ == "__main__":
    plain = [f'{{"{name}", "{operator}", {{}}, false}}' for name, operator in of_networks.items()]
    wrapped = [
        f'{{"{each}", "{each}", ",{"".join(f"{name}," for name in settings)}", true}}'
        for each, settings in WRAPPERS.items()
    ]
    arrays = {"functions_of_torch": functions, "methods_of_tensors": methods, "methods_by_name_alone": by_name_alone}
    text = [
        *(array("std::string_view", name, [f'"{each}"' for each in rows]) for name, rows in arrays.items()),
        array("NetworkFunction", "functions_of_networks", [*plain, *wrapped]),
    ]
    Path(sys.argv[1]).write_text("\n".join(text))
