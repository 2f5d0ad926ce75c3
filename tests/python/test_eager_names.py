# SPDX-License-Identifier: MIT
"""What the plug-in calls by its name as an operator is that in Python, too."""

import inspect
import re
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

SOURCE = (Path(__file__).resolve().parents[2] / "src" / "plugin" / "eager" / "functions.cpp").read_text()
OPERATORS = {
    name.removeprefix("aten::").partition(".")[0]
    for name in torch._C._dispatch_get_all_op_names()
    if name.startswith("aten::")
}


def listed(name):
    """The names in an array of the source."""
    (body,) = re.findall(rf"{name}\[\] = \{{(.*?)\}};", SOURCE, re.DOTALL)
    return set(re.findall(r'"(\w+)"', body))


def test_functions_that_torch_has_in_python_are_left_to_it():
    places = (torch, torch.Tensor)
    in_python = {
        name
        for name in OPERATORS
        for place in places
        if not name.startswith("_") and isinstance(inspect.getattr_static(place, name, None), types.FunctionType)
    }
    assert len(in_python) > 15 and in_python - {"backward"} <= listed("in_python")


@pytest.mark.parametrize("folder", ["linalg", "special", "fft"])
def test_functions_of_folders_are_those_of_c(folder):
    place = getattr(torch, folder)
    known = [name for name in dir(place) if f"{folder}_{name}" in OPERATORS]
    assert len(known) > 20 and all(isinstance(getattr(place, name), types.BuiltinFunctionType) for name in known)


@pytest.mark.parametrize("name", sorted(listed("of_networks") | listed("of_one_tensor")))
def test_functions_of_networks_are_operators(name):
    assert name in OPERATORS


@pytest.mark.parametrize("name", sorted(listed("of_networks")))
def test_functions_of_networks_are_those_of_c(name):
    assert isinstance(getattr(torch.nn.functional, name), types.BuiltinFunctionType)
