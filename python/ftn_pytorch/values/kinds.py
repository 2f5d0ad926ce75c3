# SPDX-License-Identifier: MIT
"""What a value is to those who promise something about it. What is on no list is ``Kind.UNKNOWN``."""

from __future__ import annotations

import datetime
import enum
import functools
import operator
import re
import sys
import types
import typing
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

from . import loaded, user_objects


class Kind(enum.Enum):
    """Kinds of values."""

    CONSTANT = "a constant"
    """Never changes: numbers, texts, dtypes, devices, members of Enum, tuples and frozen sets of such."""
    TENSOR = "a tensor"
    ARRAY = "an array of NumPy"
    GENERATOR = "a random generator"
    CONTAINER = "a container"
    """dict, list, tuple, set, frozenset, deque and their like of Python itself."""
    OBJECT = "an object"
    """Of a class that is written in Python: its fields, and the items of its container, are all there is."""
    MODULE = "a torch.nn.Module"
    OPTIMIZER = "an optimizer"
    SCHEDULER = "a scheduler of learning rates"
    FUNCTION = "a function"
    """Functions and methods of the user, and what wraps something: partial, lru_cache, property, weak references."""
    CLASS = "a class"
    """Of the user."""
    NAMESPACE = "a module"
    """Of the user."""
    INSTALLED = "of an installed package"
    """Functions, classes and modules of Python itself and of packages."""
    HARMLESS = "harmless"
    """Loggers, locks, progress bars and figures: no number depends on them."""
    UNKNOWN = "not known"


_CONSTANTS = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(...),
    type(NotImplemented),
    range,
    slice,
    object,
    types.CodeType,
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    re.Pattern,
    typing.TypeVar,
)
ATOMS = frozenset(_CONSTANTS)
_CONTAINER_KINDS = frozenset((dict, OrderedDict, defaultdict, Counter, list, tuple, set, frozenset, deque))
_WRAPPERS = (
    types.MethodType,
    functools.partial,
    functools.partialmethod,
    functools.cached_property,
    property,
    staticmethod,
    classmethod,
    type(functools.lru_cache(lambda: None)),
    weakref.ReferenceType,
)
_OF_PYTHON = (
    types.BuiltinFunctionType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.GenericAlias,
    types.UnionType,
    operator.attrgetter,
    operator.itemgetter,
    operator.methodcaller,
    type(NamedTuple("Pair", [("one", int)]).one),  # type: ignore[attr-defined]
)
_OF_COMPILERS = (
    "cython_function_or_method",
    "CFunctionType",
    "_FuncPtr",
    "CField",
    "CPUDispatcher",
    "_ArrayFunctionDispatcher",
    "instancemethod",
)
_MISSING = object()
_PACKAGE = __name__.partition(".")[0] + "."
_FIGURES = ("matplotlib", "tqdm")


def of_module(module: str, *names: str) -> tuple[type, ...]:
    """Classes of a module that few scripts import. Without it there are no values of them."""
    found = sys.modules.get(module)
    return tuple(getattr(found, name) for name in names if hasattr(found, name))


def _is_constant(kind: type) -> bool:
    return kind in ATOMS or kind in of_module("decimal", "Decimal")


def kind_of(value: Any) -> Kind:
    """The kind of a value. Calls no code of its class."""
    kind = type(value)
    if kind in ATOMS:
        return Kind.CONSTANT
    if kind in _CONTAINER_KINDS:
        is_fixed = kind in (tuple, frozenset) and all(kind_of(each) is Kind.CONSTANT for each in value)
        return Kind.CONSTANT if is_fixed else Kind.CONTAINER
    return _of_code(value, kind) or qualities(kind).kind


def _kind_of_class(kind: type, base: type) -> Kind:
    found = _of_torch(kind) or _of_numpy(kind) or _of_python(kind)
    if found is not None:
        return found
    if base is object or (base in _CONTAINER_KINDS and base is not tuple):
        return Kind.OBJECT
    if base is tuple:
        return Kind.CONTAINER
    return Kind.CONSTANT if _is_constant(base) else Kind.UNKNOWN


def _of_code(value: Any, kind: type) -> Kind | None:
    if kind is types.FunctionType:
        is_own = user_objects.is_own_module(value.__globals__.get("__name__", ""))
        return Kind.FUNCTION if is_own else Kind.INSTALLED
    if issubclass(kind, type):
        return Kind.CLASS if user_objects.is_own_module(value.__module__) else Kind.INSTALLED
    if issubclass(kind, types.ModuleType):
        return Kind.NAMESPACE if user_objects.is_own_module(value.__name__) else Kind.INSTALLED
    if issubclass(kind, _WRAPPERS):
        return Kind.FUNCTION
    is_code = issubclass(kind, _OF_PYTHON) or kind.__module__ == "typing" or kind.__name__ in _OF_COMPILERS
    return Kind.INSTALLED if is_code else None


def _of_torch(kind: type) -> Kind | None:
    torch = loaded("torch")
    if torch is None:
        return None
    table = {
        Kind.TENSOR: torch.Tensor,
        Kind.MODULE: torch.nn.Module,
        Kind.OPTIMIZER: torch.optim.Optimizer,
        Kind.SCHEDULER: torch.optim.lr_scheduler.LRScheduler,
        Kind.GENERATOR: torch.Generator,
        Kind.CONSTANT: (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.finfo)
        + (torch.iinfo, torch.qscheme),
    }
    for found, kinds in table.items():
        if issubclass(kind, kinds):
            return found
    in_torch = kind.__module__.startswith(("torch._ops", "torch._C._distributed", "torch._C._jit"))
    return Kind.INSTALLED if in_torch or kind is torch.jit.ScriptFunction else None


def _of_numpy(kind: type) -> Kind | None:
    numpy = loaded("numpy")
    if numpy is None:
        return None
    # a row of a structured array is a view of it
    if issubclass(kind, (numpy.generic, numpy.dtype)) and not issubclass(kind, numpy.void):
        return Kind.CONSTANT
    if issubclass(kind, (numpy.ndarray, numpy.void)):
        return Kind.ARRAY
    # NumPy imports this one when somebody asks for it.
    if issubclass(kind, of_module("numpy.random", "Generator", "RandomState", "BitGenerator")):
        return Kind.GENERATOR
    return Kind.INSTALLED if issubclass(kind, numpy.ufunc) else None


def _of_python(kind: type) -> Kind | None:
    if issubclass(
        kind,
        (enum.Enum, *of_module("pathlib", "PurePath"), *of_module("uuid", "UUID")),
    ):
        return Kind.CONSTANT
    if issubclass(kind, of_module("random", "Random")):
        return Kind.GENERATOR
    harmless = of_module("logging", "Logger", "LoggerAdapter", "Handler") + of_module("_thread", "LockType", "RLock")
    harmless += of_module("threading", "Condition", "Semaphore", "Event")
    is_figure = kind.__module__.partition(".")[0] in _FIGURES and not user_objects.is_own_module(kind.__module__)
    if issubclass(kind, harmless) or is_figure:
        return Kind.HARMLESS
    return Kind.INSTALLED if kind.__module__.startswith(_PACKAGE) and not is_of_kit(kind) else None


def is_of_decimals(value: Any) -> bool:
    """True for a number of ``decimal``, its class and its module."""
    return value is sys.modules.get("decimal", _MISSING) or any(
        value is each or type(value) is each for each in of_module("decimal", "Decimal")
    )


def is_of_kit(kind: type) -> bool:
    """True for a part of the kit, and for a saved recording, which has a state as these have."""
    return kind.__module__.startswith((f"{_PACKAGE}kit.", f"{_PACKAGE}saved.saved_recording"))


def is_simple(value: Any) -> bool:
    """True for a constant in which there is nothing to look for."""
    return _is_constant(type(value))


def base_of(kind: type) -> Any:
    """``object``, or the container of Python that the objects of a class are."""
    return qualities(kind).base


class Qualities(NamedTuple):
    """What a class is made of."""

    base: type
    """The class whose memory its objects have: ``object`` or a container where all of it is written in Python."""
    is_all_own: bool
    """No class of an installed package is among its bases."""
    kind: Kind
    """Of its objects, unless these are code."""
    asks_itself: bool
    """Its own code decides what is read of its objects (``__getattribute__``)."""


_known: weakref.WeakKeyDictionary[type, Qualities] = weakref.WeakKeyDictionary()


def qualities(kind: type) -> Qualities:
    """What a class is made of; found once for each class."""
    found = _known.get(kind)
    if found is None:
        found = _known[kind] = _qualities(kind)
    return found


def _qualities(kind: type) -> Qualities:
    is_namespace = issubclass(kind, (types.SimpleNamespace, *of_module("argparse", "Namespace")))
    base: Any = object if is_namespace else user_objects.base_of(kind)
    plain = ("object", "ABC", "Generic", "Protocol", "Enum", "IntEnum", "Flag", "NamedTuple")
    is_own = all(
        user_objects.is_own_module(each.__module__) or each in _CONTAINER_KINDS or each.__name__ in plain
        for each in kind.__mro__
    )
    own = [vars(each).get("__getattribute__") for each in kind.__mro__ if not user_objects.is_made_in_c(each)]
    # what looks on while a call is recorded is of this package
    asks_itself = any(each and not getattr(each, "__module__", "").startswith(_PACKAGE) for each in own)
    return Qualities(base, is_own, _kind_of_class(kind, base), asks_itself)
