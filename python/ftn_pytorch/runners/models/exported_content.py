# SPDX-License-Identifier: MIT
"""What torch is given of a program of torch.export that is not trusted: data and operators, and no code.

Reading such a program runs more than its graph. torch unpickles what the tables of the archive say is a pickle, it
evaluates sizes and guards as Python, imports what a description of containers names, and makes Python source of names.
So torch is not given the file: it gets another archive, made of what was looked at here and written anew.
"""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from ...errors import FtnPytorchError, message
from ...system import private_names, process
from . import formats, trees

_MODEL = "models/model.json"
_WEIGHTS, _CONSTANTS = "data/weights/", "data/constants/"
# Before torch 2.9 parameters and constants were one pickle each.
_PICKLES = ("data/sample_inputs/model.pt", f"{_WEIGHTS}model.pt", f"{_CONSTANTS}model.pt")
_PLAIN = ("archive_format", "archive_version", "byteorder", "version", ".data/version")
_TENSOR = "tensor_"

# Nothing of these can call, import or end a text: names, types, equations of einsum, versions.
_WORDS = re.compile(r"[\w .,:>/@+-]*")
_NAME = re.compile(r"\w*")
_NUMBER_OR_NAME = re.compile(r"[\w.+-]*")
_NAME_KEYS = ("name", "as_name")
_TARGET_KEYS = ("target", "as_operator")
_TREE_KEYS = ("in_spec", "out_spec")

_SIZE_OPERATORS = re.compile(
    r"math\.[a-z]\w*|torch\._?sym_\w+"
    r"|_operator\.(eq|ne|le|ge|lt|gt|neg|pos|mul|add|sub|floordiv|mod|pow|truediv|and_|or_|lshift|rshift|getitem)"
)
# They open files that the program names.
_FILE_OPERATORS = re.compile(r"torch\.ops\.(aten\.(from_file|save)|debugprims)\b.*")

_SIZE_FUNCTIONS = ("floor", "ceiling", "sqrt")
_POWERS = ("Pow", "PowByNatural", "FloatPow", "LShift")
_SIZE_METHODS = ("size", "stride", "storage_offset")
_ARITHMETIC = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.keyword,
    ast.expr_context,
    ast.Name,
    ast.Subscript,
)


class _Refused(Exception):
    """What in the file could run code."""


def without_code(torch: Any, path: str) -> io.BytesIO:
    """An archive with the same program; FORMAT if there is anything in the file that could run code of its own."""
    archive = formats.Archive(path)
    content = io.BytesIO()
    try:
        with zipfile.ZipFile(content, "w") as target:
            for name, data in _entries(torch, archive):
                target.writestr(f"program/{name}", data)
    except _Refused as found:
        raise FtnPytorchError(
            "FORMAT",
            f"{path} could run code of its own when it is read: {found}. If you trust whoever wrote it, load it with "
            "weights_only=.false.",
        ) from found
    content.seek(0)
    return content


def _entries(torch: Any, archive: formats.Archive) -> Iterator[tuple[str, bytes]]:
    """What torch needs of the archive, by name."""
    if _MODEL not in archive.names:
        raise _Refused(f"it has no {_MODEL}, which programs have that torch 2.7 or later wrote")
    yield _MODEL, json.dumps(_checked(archive.read_json(_MODEL), _MODEL)).encode()
    for name in _PLAIN:
        if name in archive.names:
            yield name, archive.read(name)
    for name in _PICKLES:
        if name in archive.names:
            yield name, _unpickled(torch, archive, name)
    for folder, table in ((_WEIGHTS, "model_weights_config.json"), (_CONSTANTS, "model_constants_config.json")):
        if folder + table in archive.names:
            yield from _tensors(torch, archive, folder, folder + table)


def _tensors(torch: Any, archive: formats.Archive, folder: str, table: str) -> Iterator[tuple[str, bytes]]:
    """A table of tensors, and the entries that it names: bytes, or pickles where it says so."""
    content = _checked(archive.read_json(table), table)
    entries: dict[str, bool] = {}
    try:
        for fact in content["config"].values():
            name = fact["path_name"]
            entries[name] = entries.get(name, False) or bool(fact["use_pickle"])
    except (TypeError, KeyError, AttributeError) as failure:
        raise FtnPytorchError("FORMAT", f"{archive.path} is damaged: {table} in it is no table of tensors") from failure
    yield table, json.dumps(content).encode()
    for name, is_pickle in entries.items():
        if folder == _CONSTANTS and not name.startswith(_TENSOR):
            raise _Refused(f"{folder}{name} is an object, which only code can read")
        yield folder + name, _unpickled(torch, archive, folder + name) if is_pickle else archive.read(folder + name)


def _unpickled(torch: Any, archive: formats.Archive, name: str) -> bytes:
    """The values of a pickle, pickled by us."""
    data = archive.read(name)
    if not data:
        return data
    try:
        values = torch.load(io.BytesIO(data), weights_only=True)
    except Exception as failure:
        found = ", ".join(_foreign_names(archive.path, data)) or message(failure).partition("\n")[0]
        raise _Refused(f"{name} needs more than tensors ({found})") from failure
    copy = io.BytesIO()
    torch.save(values, copy)
    return copy.getvalue()


def _foreign_names(path: str, data: bytes) -> list[str]:
    """For the message."""
    try:
        return formats.foreign_names(formats.Archive(path, data).read("data.pkl"))
    except FtnPytorchError:
        return formats.foreign_names(data)


def _checked(value: Any, place: str, key: str = "") -> Any:
    """The same JSON value, where texts that torch evaluates are written anew."""
    if isinstance(value, dict):
        if key == "metadata" and all(isinstance(text, str) for text in value.values()):
            # How the graph came about: for people, and in part evaluated.
            return {}
        if key == "arg" and value.keys() == {"as_string"}:
            # An argument of an operator: torch quotes it wherever it writes it.
            return value
        for name in value:
            if key == "range_constraints":
                # Compared with sizes as torch prints them, so it stays as it is.
                _arithmetic(name, place)
            else:
                _word(name, _WORDS, place)
        return {name: _checked(each, place, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_checked(each, place, key) for each in value]
    if not isinstance(value, str):
        return value
    if key in ("expr_str", "guards_code"):
        return _arithmetic(value, place)
    if key in _TREE_KEYS:
        return _tree(value, place)
    if key in _TARGET_KEYS:
        return _operator(value, place)
    return _word(value, _NAME if key in _NAME_KEYS else _WORDS, place)


def _word(text: str, allowed: re.Pattern, place: str) -> str:
    if not allowed.fullmatch(text):
        raise _Refused(f"{place} has the text {_short(text)} where a name belongs")
    return text


def _operator(name: str, place: str) -> str:
    if _FILE_OPERATORS.fullmatch(name):
        raise _Refused(f"{place} calls {name}, which opens files")
    if not _SIZE_OPERATORS.fullmatch(name) and not private_names.is_operator(name):
        raise _Refused(f"{place} calls {_short(name)}, which is no operator of torch (an extension is not imported?)")
    return name


def _arithmetic(text: str, place: str) -> str:
    """An expression of sizes: numbers, names, operators and the functions that torch writes for them."""
    try:
        tree = process.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
        raise _Refused(f"{place} has the expression {_short(text)}, which cannot be read") from failure
    for node in ast.walk(tree):
        if not _is_arithmetic(node) or not _is_small(node):
            raise _Refused(f"{place} has the expression {_short(text)}, which is more than arithmetic of sizes")
    return ast.unparse(tree)


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            return True
        # Classes of sympy and of torch stand for operators: Symbol, Mul, FloorDiv.
        return isinstance(function, ast.Name) and (function.id[0].isupper() or function.id in _SIZE_FUNCTIONS)
    if isinstance(node, ast.Attribute):
        is_math = isinstance(node.value, ast.Name) and node.value.id == "math" and not node.attr.startswith("_")
        return is_math or node.attr in _SIZE_METHODS
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) or bool(_NUMBER_OR_NAME.fullmatch(str(node.value)))
    return isinstance(node, _ARITHMETIC)


def _is_small(node: ast.AST) -> bool:
    """False for what could be a number without end: a power of a power, a long shift, a factorial."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift)):
        base, exponent = node.left, node.right
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _POWERS:
        if len(node.args) != 2 or node.keywords:
            return False
        base, exponent = node.args
    else:
        return not (isinstance(node, ast.Attribute) and node.attr in ("comb", "factorial", "perm"))
    if any(map(_is_power, ast.walk(base))):
        return False
    for each in ast.walk(exponent):
        if isinstance(each, ast.BinOp) or (isinstance(each, ast.Call) and not _is_plain(each.func)):
            return False
        if isinstance(each, ast.Constant) and isinstance(each.value, (int, float)) and abs(each.value) > 64:
            return False
    return True


def _is_power(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _POWERS
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift))


def _is_plain(function: ast.AST) -> bool:
    """Whether a call makes a number or a name of a size."""
    return isinstance(function, ast.Name) and function.id in ("Integer", "Rational", "Float", "Symbol")


def _tree(text: str, place: str) -> str:
    """A description of containers: those of Python, since others are imported. Records are dicts."""

    def check(tree: Any) -> Any:
        if tree["type"] not in trees.CONTAINERS:
            raise _Refused(f"{place} takes or returns a {_short(str(tree['type']))}, which is no plain container")
        context = json.loads(tree["context"] or "null")
        if not all(isinstance(each, (str, int, type(None))) for each in _leaves(context)):
            raise _Refused(f"{place} describes containers by {_short(tree['context'])}")
        children = [check(child) for child in tree["children_spec"]]
        known = None if tree["context"] is None else json.dumps(_checked(context, place))
        return {"type": tree["type"], "context": known, "children_spec": children}

    try:
        protocol, tree = json.loads(text)
        return json.dumps([protocol, check(trees.by_fields(tree))])
    except (ValueError, TypeError, KeyError, RecursionError) as failure:
        raise _Refused(f"{place} describes its containers by {_short(text)}") from failure


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _short(text: str) -> str:
    return repr(text if len(text) < 80 else f"{text[:77]}...")
