# SPDX-License-Identifier: MIT
"""Which operators of this torch are functions of Python, and by which names. Writes python_names.inc for functions.cpp:

    python src/plugin/eager/python_names.py src/plugin/eager/python_names.inc

Only functions of C are: what torch has written in Python does something else than an operator of that name, or more.
"""

import inspect
import sys
import textwrap
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
    lines = textwrap.fill(", ".join(sorted(rows)), 118, break_long_words=False, break_on_hyphens=False)
    return f"constexpr {kind} {name}[] = {{\n{textwrap.indent(lines, '  ')}}};\n"


functions = [name for name, operator in names_in(torch, types.BuiltinFunctionType).items() if name == operator]
methods = [name for name, operator in names_in(torch.Tensor, types.MethodDescriptorType).items() if name == operator]
by_name_alone = [name for name in methods if not hasattr(torch, name)]
of_networks = names_in(torch.nn.functional, types.BuiltinFunctionType)


def text() -> str:
    plain = [f'{{"{name}", "{operator}", {{}}, false}}' for name, operator in of_networks.items()]
    wrapped = [
        f'{{"{each}", "{each}", ",{"".join(f"{name}," for name in settings)}", true}}'
        for each, settings in WRAPPERS.items()
    ]
    arrays = {"functions_of_torch": functions, "methods_of_tensors": methods, "methods_by_name_alone": by_name_alone}
    parts = [
        "// SPDX-License-Identifier: MIT\n// Written by python_names.py with the torch of the tests.\n",
        *(array("std::string_view", name, [f'"{each}"' for each in rows]) for name, rows in arrays.items()),
        array("NetworkFunction", "functions_of_networks", [*plain, *wrapped]),
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text())
