# SPDX-License-Identifier: MIT
"""What is in a value: fields by name, items in their order, and a mark of what cannot be looked into.

Nothing here calls code of a user, but for pickles of what is made in C, which are compared and never read.
"""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import operator
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from enum import EnumMeta
from types import CodeType, FrameType, FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType
from typing import Any, NamedTuple

from ..system import private_names
from . import is_number, loaded, user_objects
from .held import CACHED, EMPTY, content, dict_of_class, fields_of, fields_of_modules, slots, slots_of
from .kinds import ATOMS, Kind, base_of, kind_of, of_module, qualities
from .walk import CLASS_ONLY

IN, DEFAULT = "in", "default of"
"""Of the fields of a function: variables of enclosing functions, and defaults, are pairs of one of these and a name."""
_VIEWS: tuple[type, ...] = (MappingProxyType, memoryview, type({}.keys()), type({}.values()), type({}.items()))
"""Of what something else holds."""
_WAITING = ("Event", "Semaphore", "BoundedSemaphore", "Barrier", "Condition")
_WRITERS = ("_csv.writer", "csv.DictWriter", "torch.SummaryWriter", "tensorboardX.SummaryWriter")


def is_variable(kind: type) -> bool:
    """True for the class of variables of a context."""
    return kind in of_module("contextvars", "ContextVar")


class Position(NamedTuple):
    """A mark: the place in a file that is read, None where it has none."""

    at: int | None


def has_fields_alone(kind: type) -> bool:
    """True for an own class of objects that are a ``__dict__`` and nothing else."""
    is_own = user_objects.is_own_module(kind.__module__) and not keeps_state(kind)
    return is_own and base_of(kind) is object and not any(slots(kind))


def keeps_state(kind: type) -> bool:
    """True for a class whose objects have a state: ``state_dict`` and ``load_state_dict``, or that of a generator."""
    if callable(getattr(kind, "state_dict", None)) and callable(getattr(kind, "load_state_dict", None)):
        return True
    without = of_module("random", "SystemRandom") + of_module("numpy.random", "BitGenerator")
    return qualities(kind).kind is Kind.GENERATOR and not issubclass(kind, without)


def memory_of(tensor: Any) -> int:
    """Where the memory of a tensor begins, 0 if it has none of its own."""
    torch = loaded("torch")
    try:
        is_plain = tensor.layout == torch.strided and not (tensor.is_nested or tensor.is_meta)
        if torch.nn.parameter.is_lazy(tensor) or not is_plain or not tensor.numel():
            return 0
        return tensor.untyped_storage().data_ptr()
    except Exception:  # tensors with behaviour of their own
        return 0


def fields_in(value: Any, kind: Kind) -> dict[Any, Any]:
    """What can be given another value, by name."""
    if kind is Kind.NAMESPACE:
        return {name: each for name, each in value.items() if not name.startswith("__")}
    if kind is Kind.FUNCTION:
        return _of_function(value) if isinstance(value, FunctionType) else dict(fields_of(value))
    if kind is Kind.CLASS:
        members = value.__members__ if isinstance(value, EnumMeta) else ()
        is_private = "_" if isinstance(value, EnumMeta) else "__(private"
        return {
            name: each
            for name, each in dict_of_class(value).items()
            if name not in (*CLASS_ONLY, "__slotnames__") and name not in members and not name.startswith(is_private)
        }
    if kind is Kind.MODULE:
        return _of_network(value)
    if kind is Kind.OPTIMIZER:
        hooks = set(map(id, private_names.hooks_of(value)))
        known = ("state", "param_groups")
        # of its own optimizers torch makes notes in others
        own = "_" if type(value).__module__.startswith("torch.") else "__"
        fields = {name: each for name, each in vars(value).items() if name not in known and not name.startswith(own)}
        return {name: each for name, each in fields.items() if id(each) not in hooks}
    if kind in (Kind.INSTALLED, Kind.CONSTANT):
        # of functions that a package has made of the user's, and of members of Enum
        held = fields_of(value) if kind is Kind.CONSTANT or isinstance(value, FunctionType) else {}
        return {name: each for name, each in held.items() if name == "_value_" or not name.startswith("_")}
    if is_variable(type(value)):
        try:
            return {"value": value.get()}  # that of the thread which calls, as for numbers of a thread
        except LookupError:
            return {}
    return {**slots_of(value), **(vars(value) if isinstance(value, threading.local) else fields_of(value))}


def _of_function(value: FunctionType) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
        if name != "__class__" and (held := content(cell)) is not EMPTY:
            found[IN, name] = held
    names = value.__code__.co_varnames[: value.__code__.co_argcount]
    defaults = value.__defaults__ or ()
    found.update({(DEFAULT, name): each for name, each in zip(names[len(names) - len(defaults) :], defaults)})
    found.update({(DEFAULT, name): each for name, each in (value.__kwdefaults__ or {}).items()})
    found.update({name: each for name, each in vars(value).items() if not name.startswith("__")})
    return found


def _of_network(value: Any) -> dict[Any, Any]:
    if is_of_torchscript(value):
        return _of_torchscript(value)
    _, buffers, _ = private_names.tables_of(value)
    passing = private_names.passing_buffers(value)
    known = fields_of_modules() | {"training"}
    fields = {name: each for name, each in vars(value).items() if name not in known}
    return {**fields, **{name: buffers[name] for name in passing}}


_seen: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def is_of_torchscript(module: Any) -> bool:
    return isinstance(module, loaded("torch").jit.ScriptModule)


def _of_torchscript(value: Any) -> dict[str, Any]:
    """What its methods may replace. Each look gives another object for a number or a list: the one of before stays as
    long as it is the same.
    """
    parameters, buffers, layers = private_names.tables_of(value)
    known = {"training", *fields_of_modules(), *parameters.keys(), *buffers.keys(), *layers.keys()}
    every = {name: getattr(value, name) for name in private_names.script_attributes(value) if name not in known}
    is_told = (loaded("torch").Tensor, list, tuple, dict, *ATOMS)  # others are objects of C
    found = {name: each for name, each in every.items() if isinstance(each, is_told)}
    seen = _seen.setdefault(value, {})
    for name, each in found.items():
        text = repr(each)
        if "tensor(" in text or text != repr(seen.get(name, EMPTY)):
            seen[name] = each
    return {name: seen[name] for name in found}


def items_in(value: Any) -> list[Any] | None:
    """The items of a container, of whatever class derived from one; None for what is none."""
    if isinstance(value, OrderedDict):  # which has an order of its own
        keys = list(OrderedDict.keys(value))
        return [*keys, *(dict.__getitem__(value, key) for key in keys)]
    if isinstance(value, dict):
        return [*dict.keys(value), *dict.values(value)]
    if isinstance(value, list):
        return list.copy(value)
    if isinstance(value, deque):
        return list(deque.__iter__(value))
    return list(set.__iter__(value)) if isinstance(value, set) else None


def put(value: Any, kind: Kind, key: Any, new: Any) -> None:
    """Give a field another value, or take it away where that is EMPTY, without running code of a user."""
    if new is EMPTY and key not in fields_in(value, kind):
        return
    if isinstance(key, tuple):
        _put_in_function(value, key, new)
    elif (held := _dict_with(value, kind, key)) is not None:
        if new is EMPTY:
            del held[key]
        else:
            held[key] = new
    elif new is EMPTY:
        (type if kind is Kind.CLASS else object).__delattr__(value, key)
    elif kind is Kind.CLASS:
        type.__setattr__(value, key, new)
    elif is_variable(type(value)):
        value.set(new)
    elif kind is Kind.MODULE:
        setattr(value, key, new)
    else:
        user_objects.set_field(value, key, new)


def _dict_with(value: Any, kind: Kind, key: str) -> dict[str, Any] | None:
    """The dict in which a field is, or will be; None for fields of other kinds."""
    if kind is Kind.NAMESPACE:
        return value
    if kind is Kind.MODULE and is_of_torchscript(value):
        return None
    if kind is Kind.MODULE and key in (buffers := private_names.tables_of(value)[1]):
        return buffers
    if kind in (Kind.FUNCTION, Kind.INSTALLED, Kind.MODULE, Kind.OPTIMIZER) or isinstance(value, threading.local):
        return vars(value)
    fields = fields_of(value)
    return fields if key in fields else None


def _put_in_function(value: FunctionType, key: tuple[str, str], new: Any) -> None:
    where, name = key
    if where == IN:
        cell = value.__closure__[value.__code__.co_freevars.index(name)]  # type: ignore[index]
        if new is EMPTY:
            del cell.cell_contents
        else:
            cell.cell_contents = new
    elif new is EMPTY:
        return  # its place is among other defaults
    elif name in (value.__kwdefaults__ or {}):
        value.__kwdefaults__[name] = new  # type: ignore[index]
    else:
        names = value.__code__.co_varnames[: value.__code__.co_argcount]
        defaults = list(value.__defaults__ or ())
        defaults[names.index(name) - len(names)] = new
        value.__defaults__ = tuple(defaults)


def refill(value: Any, items: list[Any]) -> None:
    """Put back what ``items_in`` gave."""
    half = len(items) // 2
    user_objects.refill(value, dict(zip(items[:half], items[half:])) if isinstance(value, dict) else items)


def is_same(old: Iterable[Any] | None, new: Iterable[Any] | None) -> bool:
    """True if the same objects stand there in the same order."""
    if old is None or new is None:
        return old is new
    one, other = list(old), list(new)
    return len(one) == len(other) and all(map(operator.is_, one, other))


def is_aside(value: Any) -> bool:
    """True for loggers, locks, threads, figures and files that are written: no number depends on them.

    Events, semaphores and progress bars, and what a class of the user adds, say by their fields what has happened.
    """
    kind = type(value)
    if kind_of(value) is Kind.HARMLESS:
        is_waited_for = kind.__module__ == "threading" and kind.__name__ in _WAITING
        is_bar = kind.__module__.partition(".")[0] == "tqdm"
        return not (is_waited_for or is_bar or user_objects.is_own_module(kind.__module__))
    if isinstance(value, (threading.Thread, *of_module("concurrent.futures", "Executor"))):
        return True
    if isinstance(value, io.IOBase) and not isinstance(value, (io.BytesIO, io.StringIO)):
        return value.closed or value.writable()
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}" in _WRITERS


def mark_of(value: Any, kind: Kind) -> Any:
    """What is another one if a value has changed that cannot be looked into, None where nothing can tell."""
    try:
        return _mark_of(value, kind)
    except Exception:  # of a class whose objects cannot be asked, such as tensors with a __torch_function__
        return None


def spawned_by(generator: Any) -> int:
    """How many others a generator of NumPy has made, which its state does not tell."""
    seeds = getattr(getattr(generator, "bit_generator", None), "seed_seq", None)
    return getattr(seeds, "n_children_spawned", 0)


def _mark_of(value: Any, kind: Kind) -> Any:
    if kind is Kind.TENSOR:
        return _mark_of_tensor(value)
    if kind is Kind.ARRAY:
        return str(value.dtype), value.shape
    if kind is Kind.MODULE:
        parameters, buffers, _ = private_names.tables_of(value)
        passing = private_names.passing_buffers(value)
        kept = [(name, each) for name, each in (*parameters.items(), *buffers.items()) if name not in passing]
        if any(loaded("torch").nn.parameter.is_lazy(each) for _, each in kept):
            return None
        return tuple((name, None if each is None else (each.dtype, each.shape)) for name, each in kept)
    if kind is Kind.OPTIMIZER:
        return tuple(tuple(map(id, group["params"])) for group in value.param_groups)
    if kind is Kind.FUNCTION:
        return value.cache_info() if type(value) is CACHED else getattr(value, "__code__", ...)
    if kind is Kind.GENERATOR:
        return spawned_by(value)
    return _mark_of_unknown(value) if kind is Kind.UNKNOWN else ...


def _mark_of_tensor(value: Any) -> Any:
    """What cannot be put back in place, and where the memory is."""
    torch = loaded("torch")
    if torch.nn.parameter.is_lazy(value) or value.is_nested:
        return None
    is_strided = value.layout == torch.strided and not value.is_meta
    strides = tuple(value.stride()) if is_strided else None
    has_hooks = private_names.has_hooks(value)
    return str(value.dtype), tuple(value.shape), strides, value.grad_fn is None, has_hooks


def is_record(value: Any) -> bool:
    """True for an item of a structured array of NumPy, which can change."""
    return is_number(value) and value.dtype.names is not None


def is_count(value: Any) -> bool:
    """True for what can only be made anew."""
    return type(value) is itertools.count


def _mark_of_unknown(value: Any) -> Any:
    # Few scripts need these, and each rank would look for them at its start.
    import hashlib
    import pickle

    from . import python_types

    if type(value) in python_types.BUFFERS.values():
        return python_types.parts_of(value)
    if isinstance(value, (threading.local, *_VIEWS)) or is_variable(type(value)):
        return ...
    if isinstance(value, io.IOBase) and not isinstance(value, (io.BytesIO, io.StringIO)):
        try:
            return Position(value.tell())
        except (OSError, ValueError):
            return Position(None)
    if type(value) is itertools.count:
        return repr(value)
    if is_iterator(type(value)) or type(value) in of_module("queue", "SimpleQueue"):
        return _held_by(value)
    if type(value) in of_module("contextvars", "Context"):
        return tuple(map(_mark_of_part, value.items()))
    try:
        return hashlib.blake2b(pickle.dumps(value), digest_size=16).digest()
    except Exception:  # of whatever class
        return _members_of(value) or None


def is_iterator(kind: type) -> bool:
    """True for a class of C whose objects hold what they have still to give."""
    return hasattr(kind, "__next__") and not issubclass(kind, io.IOBase)


def shows_others(kind: type) -> bool:
    """True for a class of C whose objects lead to others, which can change."""
    return is_iterator(kind) or kind in _VIEWS


def parts_in_c(value: Any) -> list[Any]:
    """What an object of C holds, as it tells the collector of garbage."""
    if type(value) is memoryview:
        return [value.obj]
    return [each for each in gc.get_referents(value) if not isinstance(each, (FrameType, CodeType, type))]


class _Held:
    """What something held, by its identity, which is nobody else's as long as this is there."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.value is other.value

    __hash__ = object.__hash__


def _held_by(value: Any) -> tuple[Any, ...]:
    """How far an iterator is, or what stands in a queue: not what is in that, which others may change."""
    kind, parts = type(value), parts_in_c(value)
    if user_objects.is_made_in_c(kind) and kind.__reduce__ is not object.__reduce__:
        with contextlib.suppress(TypeError, AttributeError):
            told = value.__reduce__()
            return _mark_of_part(told[:1]), [_mark_of_part(each, parts) for each in told[1:]]
    frame = getattr(value, "gi_frame", None)
    return frame and frame.f_lasti, list(map(_mark_of_part, parts)), _members_of(value)


def _mark_of_part(value: Any, held: Sequence[Any] = ()) -> Any:
    """``held``: what stays itself."""
    kind = type(value)
    if kind in (tuple, list) and not any(value is each for each in held):
        return [_mark_of_part(each, held) for each in value]
    if kind in ATOMS:
        return value
    return _mark_of_unknown(value) if is_iterator(kind) and kind_of(value) is Kind.UNKNOWN else _Held(value)


def _members_of(value: Any) -> dict[str, Any]:
    """Numbers and texts among the attributes that a class of C shows, such as the line of a reader."""
    found = {}
    for each in type(value).__mro__:
        for name, member in vars(each).items():
            if isinstance(member, (MemberDescriptorType, GetSetDescriptorType)) and not name.startswith("__"):
                with contextlib.suppress(Exception):
                    found[name] = member.__get__(value)
    return {name: each for name, each in found.items() if type(each) in ATOMS}
