# SPDX-License-Identifier: MIT
"""How a function wants its arguments, whether a call fits it, and whether declared shapes hold."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import FtnPytorchError, did_you_mean
from ..system import process

if TYPE_CHECKING:
    from .shapes import Shape

PREFIX = "ftn_pytorch_"
FORWARD = "ftn_pytorch_forward"
TRAIN = "ftn_pytorch_train"
SAVE = "ftn_pytorch_save"
RESTORE = "ftn_pytorch_restore"
OVERRIDE = "ftn_pytorch_convention"
SHAPES = "ftn_pytorch_shapes"
SETUP = "ftn_pytorch_setup"
STATE = "ftn_pytorch_state"
SHARED = "ftn_pytorch_shared"
TRANSIENT = "ftn_pytorch_transient"
FRAMEWORK = "ftn_pytorch_framework"
HOOKS = (FORWARD, TRAIN, SAVE, RESTORE, SETUP, STATE, TRANSIENT, SHARED, OVERRIDE, SHAPES, FRAMEWORK)
"""All names that the library looks for in a script."""

# From Python 3.14 on annotations are evaluated when they are asked for, which fails for names that only type checkers
# import.
_ANNOTATIONS: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    from annotationlib import Format

    _ANNOTATIONS["annotation_format"] = Format.FORWARDREF


class Convention(NamedTuple):
    """How the library calls a function, decided once per function."""

    one_list: bool
    """An argument list (``torch_tensor_wrap``) arrives as one Python list; else its items are separate arguments."""
    has_out: bool
    """There is a keyword parameter ``out`` that takes Fortran-backed arrays to write into."""
    neglects_out: bool = False
    """As far as its source tells, the function does not write into them: see ``_neglects``."""


def signature_of(function: Callable) -> inspect.Signature | None:
    """Signature as a caller sees it, None for builtins without one; that of ``forward`` for a torch.nn.Module."""
    nn = sys.modules.get("torch.nn")
    if nn is not None and isinstance(function, nn.Module):
        # __call__ of a module takes anything, as does forward of the one that torch.compile wraps around it.
        from ..system import private_names

        function = private_names.uncompiled(function).forward
    try:
        return inspect.signature(function, **_ANNOTATIONS)
    except (TypeError, ValueError):
        return None


def convention_of(function: Callable, positional: int, override: str | None) -> Convention:
    """Convention of a function that as a list would take ``positional`` arguments (train: the list and the target).

    ``override`` is "list", "args" or None for the rule: one list whenever the function can be called that way.
    """
    signature = signature_of(function)
    if override is not None:
        one_list = override == "list"
    else:
        one_list = signature is not None and _fits(signature, (None,) * positional, {})
    has_out = signature is not None and _has_out(signature)
    return Convention(one_list, has_out, has_out and _neglects(function, "out"))


def misspelt_hooks(names: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names of a script that begin as those of hooks do and are none, each with the hook that is probably meant.

    Whoever has that hook as well means something else. Calls of a missing forward or train say so themselves.
    """
    found = []
    silent = {hook.removeprefix(PREFIX): hook for hook in HOOKS if hook not in (FORWARD, TRAIN, *names)}
    for name in names:
        if name.startswith(PREFIX) and name not in HOOKS:
            import difflib

            close = difflib.get_close_matches(name.removeprefix(PREFIX), silent, n=1)
            found += [(name, silent[meant]) for meant in close]
    return found


def require_functions(names: Mapping[str, Any], where: str) -> None:
    """HOOK where a hook that would be called is something else; None is as good as none."""
    for name in (FORWARD, TRAIN, SAVE, RESTORE, SETUP):
        value = names.get(name)
        if value is not None and not callable(value):
            raise FtnPytorchError("HOOK", f"{where}: {name} is of type {type(value).__name__}, not a function")


def check_override(value: object, where: str) -> str | None:
    """The script's ``ftn_pytorch_convention``: "list", "args" or None; SCRIPT for anything else."""
    if value in ("list", "args", None):
        return value  # type: ignore[return-value]
    raise FtnPytorchError("SCRIPT", f'{where} sets {OVERRIDE} to {value!r}, it must be "list" or "args"')


def _fits(signature: inspect.Signature, args: tuple, kwargs: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _has_out(signature: inspect.Signature) -> bool:
    parameter = signature.parameters.get("out")
    return parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def _neglects(function: Callable, parameter: str) -> bool:
    """Whether a function never mentions a parameter, or gives its name another value (``out = 2 * x``).

    A value for the case that it is None (``if out is None: out = empty_like(x)``) is none for a call with outputs.
    False where there is no source to look at.
    """
    try:
        tree = process.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError):
        return False
    nodes = list(ast.walk(tree))
    harmless: list[ast.AST] = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    unused = f"{parameter} is None"
    for node in nodes:
        if isinstance(node, ast.If) and ast.unparse(node.test) == unused:
            harmless += [inner for statement in node.body for inner in ast.walk(statement)]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp):
            otherwise = node.value.orelse if ast.unparse(node.value.test) == unused else None
            harmless += node.targets if otherwise and ast.unparse(otherwise) == parameter else []
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == parameter]
    is_assigned = any(isinstance(use.ctx, ast.Store) and use not in harmless for use in uses)
    return is_assigned or not uses


def check_call(name: str, signature: inspect.Signature | None, args: tuple, kwargs: Mapping[str, Any]) -> None:
    """SIGNATURE if a function of that signature cannot be called with these arguments."""
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as failure:
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
        unknown = [key for key in kwargs if key not in signature.parameters and not takes_all]
        hint = f"; there is no {unknown[0]!r}{did_you_mean(unknown[0], signature.parameters)}" if unknown else ""
        raise FtnPytorchError(
            "SIGNATURE",
            f"the script defines {name}{plain(signature)} and is called with {_passed(args, kwargs)}: {failure}{hint}",
        ) from failure


def plain(signature: inspect.Signature) -> str:
    """The parameters without their types."""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def _passed(args: tuple, kwargs: Mapping[str, Any]) -> str:
    parts = [_kind(value) for value in args] + [f"{name}={_kind(value)}" for name, value in kwargs.items()]
    return f"({', '.join(parts)})" if parts else "no arguments"


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f"list of {len(value)}"
    shape = getattr(value, "shape", None)
    if shape is None:
        return type(value).__name__
    return f"{value.dtype} array of shape {tuple(shape)}"


def parse_shapes(value: Any, functions: Iterable[Callable], where: str) -> dict[str, Any]:
    """The script's ``ftn_pytorch_shapes``, checked; SCRIPT if it is malformed or names no parameter of any function.

    A parameter that receives a list has a list of shapes.
    """
    if not isinstance(value, Mapping):
        raise FtnPytorchError(
            "SCRIPT", f'{where} sets {SHAPES} to {value!r}, it must be a dict such as {{"x": ("n", 3)}}'
        )
    known: set[str] = set()
    anything = False
    for signature in filter(None, map(signature_of, functions)):
        known.update(signature.parameters)
        anything |= any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    for name, shape in value.items():
        if name not in known and not anything:
            text = f"{where}: {SHAPES} names {name!r}, no function has such a parameter"
            raise FtnPytorchError("SCRIPT", text + did_you_mean(str(name), known))
        for one in shape if isinstance(shape, list) else [shape]:
            if not isinstance(one, tuple) or not all(_is_size(size) for size in one):
                raise FtnPytorchError(
                    "SCRIPT",
                    f"{where}: {SHAPES}[{name!r}] is {shape!r}, it must be a tuple of integers, names and None, "
                    'such as ("ncol", 40)',
                )
    return dict(value)


def _is_size(size: object) -> bool:
    return size is None or isinstance(size, str) or (isinstance(size, int) and not isinstance(size, bool) and size >= 0)


def check_shapes(
    declared: Mapping[str, Any], signature: inspect.Signature | None, args: tuple, kwargs: Mapping[str, Any]
) -> None:
    """SHAPE if an argument does not have the shape declared for its parameter, in the axis order that Python sees."""
    sizes: dict[str, tuple[int, str]] = {}
    for name, value in by_name(signature, args, kwargs).items():
        if name not in declared:
            continue
        shape = declared[name]
        if isinstance(shape, tuple):
            _check_shape(name, value, shape, sizes)
        elif not isinstance(value, (list, tuple)) or len(value) != len(shape):
            found = f"{len(value)} arrays" if isinstance(value, (list, tuple)) else _kind(value)
            raise FtnPytorchError("SHAPE", f"{name} is declared as a list of {len(shape)} arrays and is {found}")
        else:
            for number, (item, one) in enumerate(zip(value, shape)):
                _check_shape(f"{name}[{number}]", item, one, sizes)


def by_name(signature: inspect.Signature | None, args: tuple, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a call by the names of the parameters; TypeError if the call does not fit the signature."""
    if signature is None:
        return dict(kwargs)
    values = dict(signature.bind(*args, **kwargs).arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            values.update(values.pop(parameter.name, {}))
    return values


def _check_shape(name: str, value: Any, shape: Shape, sizes: dict[str, tuple[int, str]]) -> None:
    if isinstance(value, (list, tuple)):
        raise FtnPytorchError("SHAPE", f"{name} is declared as one array of shape {shape} and is {_kind(value)}")
    from .shapes import mismatch

    found = tuple(getattr(value, "shape", ()))
    wrong = mismatch(found, shape, sizes, lambda axis: f"{name} axis {axis}")
    if wrong:
        raise FtnPytorchError(
            "SHAPE",
            f"{name} has shape {found}, {SHAPES} declares {shape}: {wrong}. Axes are counted from 0, as the "
            'script sees them: in reverse of the Fortran order, unless the script was loaded with layout="same".',
        )
