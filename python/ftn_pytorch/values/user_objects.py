# SPDX-License-Identifier: MIT
"""Objects of a user's own classes as their fields, which is how values that no class of torch or Python has are kept.

Own is what comes neither with Python nor from an installed package: the script, and modules that it imports from
elsewhere. Of such a class whose memory is that of ``object``, ``dict``, ``list`` or ``set`` the fields (``__dict__``,
``__slots__``) and the contents are all there is. They are read, set and made without running code of the class, but for
``__del__`` of an object that nobody holds any more.
"""

from __future__ import annotations

import enum
import functools
import os
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

from . import loaded
from .held import fields_of, slots_of

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement
_CONTAINERS = (dict, OrderedDict, defaultdict, Counter, list, set)
# Of Python itself and of this package. sysconfig says it, too, for 40 operations on the file system.
_PLATFORM = os.path.join(sys.base_exec_prefix, sys.platlibdir, f"python{sys.version_info[0]}.{sys.version_info[1]}")
_INSTALLED = tuple(
    os.path.realpath(folder) + os.sep
    for folder in {os.path.dirname(os.__file__), _PLATFORM, os.path.dirname(os.path.dirname(__file__))}
)


def is_own_module(name: str) -> bool:
    """True for a script and for modules of the user."""
    if name == "__main__":
        return True
    module = sys.modules.get(name)
    if module is None:
        # The name of a script becomes free when it is loaded again; its classes live on.
        return True
    origin = getattr(module, "__file__", None)
    if origin is None:
        return getattr(module, "__spec__", None) is None and name not in sys.builtin_module_names
    return _is_own_file(origin)


@functools.cache
def is_of_package(name: str) -> bool:
    """True for a module of a package that a user has installed, other than torch, NumPy and this one."""
    origin = getattr(sys.modules.get(name), "__file__", None) or ""
    is_known = name.partition(".")[0] in ("torch", "numpy", __name__.partition(".")[0])
    return not is_known and bool({"site-packages", "dist-packages"} & set(origin.split(os.sep)))


@functools.cache
def _is_own_file(path: str) -> bool:
    real = os.path.realpath(path)
    # what lies elsewhere, by pip --target or a path file
    packages = (getattr(sys.modules.get(name), "__file__", None) for name in ("torch", "numpy"))
    if any(package and real.startswith(os.path.dirname(os.path.realpath(package)) + os.sep) for package in packages):
        return False
    return not real.startswith(_INSTALLED) and not {"site-packages", "dist-packages"} & set(real.split(os.sep))


def is_plain(kind: type) -> bool:
    """True for an own class of which fields and contents are all there is."""
    if issubclass(kind, (enum.Enum, type)) or kind in _CONTAINERS or not kind.__flags__ & _HEAP_TYPE:
        return False
    return is_own_module(kind.__module__) and base_of(kind) in (object, *_CONTAINERS)


def is_made_of_fields(kind: type) -> bool:
    """The same for a class of a package that leaves it to Python how its objects are pickled, and how they go. What is
    entered and left stands for something that goes on elsewhere.
    """
    base = base_of(kind)
    own = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
    is_own = any(getattr(kind, each, None) is not getattr(base, each, None) for each in (*own, "__del__", "__exit__"))
    return base in (object, *_CONTAINERS) and not is_own


def base_of(kind: Any) -> type:
    """The class whose memory an object has: the first one that no class statement made, or a known container."""
    while kind not in _CONTAINERS and not is_made_in_c(kind):
        kind = kind.__base__
    return kind


def is_made_in_c(kind: type) -> bool:
    """Python's class statement makes neither a ``__new__`` of C nor methods of C."""
    if not kind.__flags__ & _HEAP_TYPE:
        return True
    mine = (WrapperDescriptorType, MethodDescriptorType)
    return any(
        (name == "__new__" and isinstance(each, BuiltinFunctionType) and each.__self__ is kind)
        or (isinstance(each, mine) and each.__objclass__ is kind)
        for name, each in vars(kind).items()
    )


def name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def is_own_code(value: Any) -> bool:
    """True for a function or class that a user has written."""
    return isinstance(value, (FunctionType, type)) and is_own_module(value.__module__ or "")


def fields(value: Any) -> dict[str, Any]:
    """Attributes of an object by name, without those of its class."""
    return {**slots_of(value), **fields_of(value)}


def set_field(value: Any, name: str, new: Any) -> None:
    """Also in a frozen dataclass. No property of the class is asked."""
    for each in type(value).__mro__:
        member = vars(each).get(name)
        if isinstance(member, MemberDescriptorType):
            member.__set__(value, new)
            return
    try:
        object.__getattribute__(value, "__dict__")[name] = new
    except AttributeError:
        raise AttributeError(f"{type(value).__qualname__} has no field {name}") from None


def content(value: Any) -> Any:
    """Items of an object whose class is derived from a container, as a plain one; else None."""
    base = base_of(type(value))
    if base not in _CONTAINERS:
        return None
    if issubclass(base, dict):
        return dict(dict.items(value))
    return list(list.__iter__(value)) if base is list else set(set.__iter__(value))


def refill(value: Any, new: Any) -> None:
    """Replace the items of a container, of whatever class derived from one."""
    base: Any = base_of(type(value))
    base.clear(value)
    if issubclass(base, dict):
        for key, each in new.items():
            base.__setitem__(value, key, each)
    else:
        (base.extend if hasattr(base, "extend") else base.update)(value, new)


def without_code(kind: Any) -> type:
    """A class whose objects have the same fields and contents, and nothing else."""
    return type(kind.__name__, (base_of(kind),), {"__module__": kind.__module__, "__hash__": object.__hash__})


def make(kind: type, named: dict[str, Any], items: Any) -> Any:
    """A new object of a plain class."""
    base: Any = base_of(kind)
    made = base.__new__(kind)
    for name, each in named.items():
        set_field(made, name, each)
    if items is not None:
        refill(made, items)
    return made


def find_imported_type(name: str) -> Any:
    """A class or function of a module that has been imported already; no code of the module is run."""
    module, _, names = name.partition(":")
    return found_in(getattr(loaded(module), "__dict__", {}), names)


def found_in(namespace: Mapping[str, Any], names: str) -> Any:
    """What a qualified name stands for among these names, None for nothing."""
    first, *rest = names.split(".")
    found = namespace.get(first)
    for part in rest:
        found = vars(found).get(part) if isinstance(found, type) else None
    return found.__func__ if isinstance(found, staticmethod) else found
