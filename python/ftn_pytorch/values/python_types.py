# SPDX-License-Identifier: MIT
"""Values of Python's own classes beside numbers, texts and containers, as trees: dates, paths, members of Enum, ...

Classes of a user are found by their names and looked at, never called.
"""

from __future__ import annotations

import argparse
import array
import ast
import base64
import datetime
import decimal
import enum
import fractions
import io
import itertools
import pathlib
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from ..system import process

NAMESPACES = {"SimpleNamespace": SimpleNamespace, "Namespace": argparse.Namespace}
FACTORIES: Mapping[str, Any] = {
    kind.__name__: kind
    for kind in (bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple)
    + (Counter, OrderedDict, defaultdict, deque)
}
"""What ``defaultdict`` may be given for missing keys, by name."""
BUFFERS: Mapping[str, Any] = {kind.__name__: kind for kind in (array.array, bytearray, io.BytesIO, io.StringIO)}
"""What can be given other contents in place."""
_CALLED: Mapping[str, Any] = {
    **{kind.__name__: kind for kind in (datetime.timedelta, datetime.date, range, slice, array.array, bytearray)},
    "Pattern": re.compile,
}
"""What makes the values that are called with their parts."""
_PATHS = (pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath)


def parts_of(value: Any) -> tuple[str, Any] | None:
    """The tag of a value and what it is made of, in text and numbers; None for what is not known here."""
    kind = type(value)
    if kind is decimal.Decimal:
        return "Decimal", str(value)
    if kind is fractions.Fraction:
        return "Fraction", [value.numerator, value.denominator]
    if kind is datetime.timedelta:
        return "timedelta", [value.days, value.seconds, value.microseconds]
    if kind is datetime.date:
        return "date", [value.year, value.month, value.day]
    if kind in (datetime.time, datetime.datetime):
        return _moment(value)
    if kind in _PATHS:
        return kind.__name__, str(value)
    if kind in (range, slice):
        parts = [value.start, value.stop, value.step]
        return (kind.__name__, parts) if all(each is None or type(each) is int for each in parts) else None
    if kind is re.Pattern:
        return (kind.__name__, [value.pattern, value.flags]) if type(value.pattern) is str else None
    if kind is itertools.count:
        return _count(value)
    if isinstance(value, enum.Enum):
        return _member(value)
    if kind in BUFFERS.values():
        return kind.__name__, _contents(value)
    torch = sys.modules.get("torch")
    if torch is not None and kind in (torch.dtype, torch.device):
        return kind.__name__, str(value).removeprefix("torch.")
    return None


def _contents(value: Any) -> list[Any]:
    if isinstance(value, array.array):
        return [value.typecode, value.tolist()]
    if isinstance(value, bytearray):
        return [bytes(value)]  # a mark: as a value it has a tree of its own
    text = value.getvalue()
    return [base64.b64encode(text).decode() if isinstance(text, bytes) else text, value.tell()]


def refill(live: Any, value: Any) -> None:
    """Give a buffer the contents of another one."""
    if isinstance(live, (array.array, bytearray)):
        live[:] = value
        return
    live.seek(0)
    live.truncate()
    live.write(value.getvalue())
    live.seek(value.tell())


def _moment(value: Any) -> tuple[str, Any] | None:
    zone = value.tzinfo
    told: Any
    if zone is None:
        told = None
    elif type(zone) is datetime.timezone:
        offset = zone.utcoffset(None)
        told = [offset.days, offset.seconds, offset.microseconds]
    elif type(zone).__module__.startswith("zoneinfo") and getattr(zone, "key", None):
        told = zone.key
    else:
        return None
    time = [value.hour, value.minute, value.second, value.microsecond]
    if type(value) is datetime.time:
        return "time", [time, value.fold, told]
    return "datetime", [[value.year, value.month, value.day, *time], value.fold, told]


def _count(value: Any) -> tuple[str, Any] | None:
    # Its text is the only way to look at it that goes on working: copies and pickles of it are no more from 3.14 on.
    try:
        numbers = ast.literal_eval(process.parse(repr(value).removeprefix("count"), mode="eval"))
    except (ValueError, SyntaxError):
        return None
    numbers = list(numbers) if isinstance(numbers, tuple) else [numbers, 1]
    return ("count", numbers) if all(type(each) in (int, float) for each in numbers) else None


def _member(value: enum.Enum) -> tuple[str, Any] | None:
    members = type(value).__members__
    names = [name for name, each in members.items() if each is value][:1]
    if not names and isinstance(value, enum.Flag):
        bits = value._value_
        named = [(name, each._value_) for name, each in members.items() if isinstance(each._value_, int)]
        names = [name for name, each in named if each and each & bits == each]
        total = 0
        for name in names:
            total |= members[name]._value_
        if total != bits:
            return None
    return ("Enum", [f"{type(value).__module__}:{type(value).__qualname__}", names]) if names else None


def make(tag: str, parts: Any, find_type: Callable[[str], Any]) -> Any:
    """The value that these parts are of; ValueError, TypeError or LookupError for parts that make none."""
    if tag == "Decimal":
        return decimal.Decimal(_checked(parts, str))
    if tag == "Fraction":
        return fractions.Fraction(*(_checked(each, int) for each in parts))
    if tag in _CALLED:
        return _CALLED[tag](*parts)
    if tag in ("time", "datetime"):
        numbers, fold, zone = parts
        kind: Any = datetime.time if tag == "time" else datetime.datetime
        return kind(*numbers, tzinfo=_zone(zone), fold=fold)
    if tag == "count":
        start, step = (each if type(each) is float else _checked(each, int) for each in parts)
        return itertools.count(start, step)
    if tag == "Enum":
        return _made_member(parts, find_type)
    if tag in BUFFERS:
        data, place = parts
        buffer = io.BytesIO(base64.b64decode(data)) if tag == "BytesIO" else io.StringIO(data, newline="")
        buffer.seek(place)
        return buffer
    if tag in ("dtype", "device"):
        return _made_of_torch(tag, _checked(parts, str))
    for kind in _PATHS:
        if kind.__name__ == tag:
            return kind(_checked(parts, str))
    raise ValueError(f"there is no kind {tag!r} of values")


def _zone(told: Any) -> datetime.tzinfo | None:
    if told is None:
        return None
    if isinstance(told, str):
        import zoneinfo

        return zoneinfo.ZoneInfo(told)
    return datetime.timezone(datetime.timedelta(*told))


def _made_member(parts: Any, find_type: Callable[[str], Any]) -> Any:
    name, names = parts
    kind = find_type(_checked(name, str))
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        raise ValueError(f"it holds members of {name.replace(':', '.')}, which is no Enum here")
    missing = [each for each in names if each not in kind.__members__]
    if missing or not names:
        raise ValueError(f"{name.replace(':', '.')} has no member {', '.join(missing)} here")
    first: Any = kind.__members__[names[0]]
    for each in names[1:]:
        first = enum.Flag.__or__(first, kind.__members__[each])  # type: ignore[type-var]
    return first


def _made_of_torch(tag: str, text: str) -> Any:
    import torch

    found = torch.device(text) if tag == "device" else getattr(torch, text, None)
    if not isinstance(found, torch.device if tag == "device" else torch.dtype):
        raise ValueError(f"there is no {tag} {text}")
    return found


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value
