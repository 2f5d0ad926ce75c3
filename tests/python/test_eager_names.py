# SPDX-License-Identifier: MIT
"""What the plug-in calls by its name as an operator is that in Python, too, and has the same arguments and defaults.

Python's parser of arguments reads signatures that are texts in its library: the test reads them, too.
"""

import functools
import inspect
import re
import runpy
import types
from collections import defaultdict
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

FOLDER = Path(__file__).resolve().parents[2] / "src" / "plugin" / "eager"
NAMES = runpy.run_path(str(FOLDER / "python_names.py"))
FOLDERS = ("linalg", "special", "fft")
CONSTANT = ("reduction", 1, 0)
"""at::Reduction::Mean, which the parser reads as 0; schema_call.cpp does, too."""
EQUAL = {
    ("pin_memory", None, False),
    ("non_blocking", False, None),
    ("dtype", 4, None),  # of whole numbers
    ("layout", None, "torch.strided"),
    ("dim", None, None),  # an operator without it is another one
    ("device", None, None),
}
"""Defaults that are written otherwise, and mean the same."""
SELF_IS_LATER = {
    "where(Tensor condition, Tensor other)",
    "where(Tensor condition, Scalar other)",
    "polygamma(int64_t n)",
}
"""Methods whose tensor is not the first argument of the operator: for Python, see schema_call.cpp."""
OTHER_NAMES = {
    "copy_(Tensor other, bool non_blocking=False)",
    "cuda(Device? device=None, bool non_blocking=False, *, MemoryFormat? memory_format=None)",
    "is_autocast_enabled(std::string_view device_type)",
    "to(Tensor tensor, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None)",
}
"""What no operator takes under these names."""


def is_operator(name):
    return hasattr(torch.ops.aten, name)


def operators():
    folders = {f"{folder}_{name}" for folder in FOLDERS for name in dir(getattr(torch, folder))}
    return {*NAMES["functions"], *NAMES["methods"], *NAMES["of_networks"].values(), *filter(is_operator, folders)}


def test_functions_that_torch_has_in_python_are_left_to_it():
    found = {*NAMES["functions"], *NAMES["methods"]}
    assert len(found) > 700 and found.isdisjoint({"einsum", "norm", "split", "stft", "unique_consecutive"})
    assert {"real", "data", "grad", "requires_grad"}.isdisjoint(NAMES["methods"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_of_folders_are_those_of_c(folder):
    place = getattr(torch, folder)
    known = [name for name in dir(place) if is_operator(f"{folder}_{name}")]
    assert len(known) > 20 and all(isinstance(getattr(place, name), types.BuiltinFunctionType) for name in known)


@pytest.mark.parametrize("name, settings", NAMES["WRAPPERS"].items())
def test_settings_of_wrappers_are_those_of_their_operators(name, settings):
    in_python = inspect.signature(getattr(torch.nn.functional, name)).parameters
    (schema, *_) = schemas()[name]
    declared = {each.name: each for each in schema.arguments[1:]}
    assert settings == [each for each in in_python if each in declared]
    for each in settings:
        assert not declared[each].has_default_value() or declared[each].default_value == in_python[each].default


def test_arguments_and_defaults_are_those_of_python():
    others, defaults, count, known = set(), defaultdict(set), 0, operators()
    for text in texts_of_the_parser():
        name, _, parameters = text.partition("(")
        if name not in known or name not in schemas():
            continue
        count += 1
        positional, named = read(parameters)
        places = [name for name, _ in positional]
        fitting = [each for each in schemas()[name] if names_of(each) in (places, ["input", *places])]
        if not fitting:
            others.add(text)
            continue
        found = min((differences(each, [*positional, *named]) for each in fitting), key=len)
        for each in found:
            defaults[each].add(name)
    assert count > 1300
    assert others == SELF_IS_LATER | OTHER_NAMES
    assert {"kl_div", "binary_cross_entropy_with_logits"} <= defaults.pop(CONSTANT)
    assert set(defaults) <= EQUAL


def texts_of_the_parser():
    library = Path(torch.__file__).with_name("lib") / "libtorch_python.so"
    found = re.findall(rb"\x00([a-z_0-9]+\((?:[A-Za-z][^\x00\n]*)?\))(?=\x00)", library.read_bytes())
    return sorted({text.decode() for text in found})


@functools.cache
def schemas():
    known = defaultdict(list)
    for each in torch._C._jit_get_all_schemas():
        if each.name.startswith("aten::") and not any(argument.is_out for argument in each.arguments):
            known[each.name.removeprefix("aten::")].append(each)
    return known


def public(name):
    return "input" if name == "self" else name


def names_of(schema):
    return [public(each.name) for each in schema.arguments if not each.kwarg_only]


def read(parameters):
    """Names and defaults, those by place and those by name alone."""
    parts = re.split(r"\*, ", parameters.removesuffix(")"))
    pattern = r"(\S+) (\w+)(?:=(\"[^\"]*\"|\{[^}]*\}|[^,]+))?(?:, |$)"
    found = [[(public(name), value(text, kind)) for kind, name, text in re.findall(pattern, part)] for part in parts]
    return found if len(found) == 2 else [*found, []]


def value(text, kind):
    """A default as the parser understands it; ... for none."""
    if not text:
        return ...
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if "Array" in kind:
        return {int(each) for each in re.findall(r"-?\d+", text)}
    if kind.startswith(("int64_t", "SymInt")):
        return int((re.match(r"-?\d+", text) or ["0"])[0])
    return float(text) if re.fullmatch(r"[-+.\de]+", text) else text.strip('"')


def differences(schema, parameters):
    declared = {public(each.name): each for each in schema.arguments}
    found = []
    for name, given in parameters:
        if given is ... or name not in declared:
            continue
        own = declared[name].default_value if declared[name].has_default_value() else None
        own = set(own) if isinstance(own, list) else own
        if own != given and not (own == set() and given is None):
            found.append((name, own, given))
        elif given is None and not declared[name].has_default_value():
            found.append((name, None, None))
    return found


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the names are those of torch 2.13")
def test_the_names_of_the_plugin_are_up_to_date():
    text = (FOLDER / "python_names.inc").read_text()
    assert text == NAMES["text"](), "run src/plugin/eager/python_names.py src/plugin/eager/python_names.inc"
