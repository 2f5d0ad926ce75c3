# SPDX-License-Identifier: MIT
"""The walk over what code can reach, and the kinds of values that it meets."""

import argparse
import collections
import datetime
import decimal
import enum
import functools
import itertools
import logging
import random
import threading
import types
import weakref

import pytest

from ftn_pytorch.values import held
from ftn_pytorch.values.walk import By, Kind, Walk, kind_of

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

nn = torch.nn


class Color(enum.Enum):
    RED = 1


class Plain:
    __slots__ = ("one", "other")


class Mapping(dict):
    pass


class Angry:
    def _fail(self, *args):
        raise RuntimeError

    __len__ = __iter__ = __getattr__ = __eq__ = __hash__ = __bool__ = _fail

    @property
    def __class__(self):
        raise RuntimeError


Pair = collections.namedtuple("Pair", "one other")
NET = nn.Linear(2, 1)
OPTIMIZER = torch.optim.SGD(NET.parameters(), lr=0.1)

KINDS = [
    (3, Kind.CONSTANT),
    ("text", Kind.CONSTANT),
    ((1, (2, frozenset(("three",)))), Kind.CONSTANT),
    (Color.RED, Kind.CONSTANT),
    (decimal.Decimal(1), Kind.CONSTANT),
    (datetime.date(2026, 1, 1), Kind.CONSTANT),
    (torch.float32, Kind.CONSTANT),
    (torch.Size((1, 2)), Kind.CONSTANT),
    (numpy.float32(1), Kind.CONSTANT),
    (torch.zeros(1), Kind.TENSOR),
    (nn.Parameter(torch.zeros(1)), Kind.TENSOR),
    (numpy.zeros(1), Kind.ARRAY),
    (torch.Generator(), Kind.GENERATOR),
    (random.Random(1), Kind.GENERATOR),
    (numpy.random.default_rng(1), Kind.GENERATOR),
    ([1], Kind.CONTAINER),
    ((1, [2]), Kind.CONTAINER),
    (collections.OrderedDict(), Kind.CONTAINER),
    (Pair(1, [2]), Kind.CONTAINER),
    (Plain(), Kind.OBJECT),
    (Mapping(), Kind.OBJECT),
    (Angry(), Kind.OBJECT),
    (types.SimpleNamespace(), Kind.OBJECT),
    (argparse.Namespace(), Kind.OBJECT),
    (collections.UserDict(), Kind.OBJECT),
    (torch.distributions.Normal(0.0, 1.0), Kind.OBJECT),
    (NET, Kind.MODULE),
    (OPTIMIZER, Kind.OPTIMIZER),
    (torch.optim.lr_scheduler.ConstantLR(OPTIMIZER), Kind.SCHEDULER),
    (lambda: 1, Kind.FUNCTION),
    (functools.partial(len), Kind.FUNCTION),
    (functools.lru_cache(lambda: 1), Kind.FUNCTION),
    (weakref.ref(NET), Kind.FUNCTION),
    (Plain, Kind.CLASS),
    (types.ModuleType("module_of_user"), Kind.NAMESPACE),
    (torch, Kind.INSTALLED),
    (torch.sin, Kind.INSTALLED),
    (nn.functional.mse_loss, Kind.INSTALLED),
    (nn.Linear, Kind.INSTALLED),
    (torch.ops.aten.add, Kind.INSTALLED),
    (len, Kind.INSTALLED),
    (logging.getLogger("walk"), Kind.HARMLESS),
    (threading.Lock(), Kind.HARMLESS),
    (bytearray(1), Kind.UNKNOWN),
    (iter([]), Kind.UNKNOWN),
    (itertools.count(), Kind.UNKNOWN),
    (types.MappingProxyType({}), Kind.UNKNOWN),
    (threading.local(), Kind.UNKNOWN),
]


@pytest.mark.parametrize("place", range(len(KINDS)), ids=lambda place: type(KINDS[place][0]).__name__)
def test_kinds(place):
    value, kind = KINDS[place]
    assert kind_of(value) is kind


class Trainer:
    rate = 2.0

    def __init__(self):
        self.net, self.history = NET, [1.0]

    def step(self, x):
        return self.loss(self.net(x)) * self.rate

    def loss(self, y):
        return y.square().mean()

    def report(self):
        return self.history


def edges(value, **options):
    return {edge.path: edge for edge in Walk({"root": value}, **options)}


def test_all_that_an_object_holds():
    found = edges(Trainer())
    assert found["root.net.weight"].value is NET.weight and found["root.history[0]"].value == 1.0
    assert found["Trainer.rate"].by == By.FIELD and "Trainer.report" in found


def test_only_what_was_read_and_has_run():
    made = Trainer()
    walk = Walk({"root": made.step}, is_narrow=True)
    found = {edge.path for edge in walk}
    assert "root.self" in found and "Trainer.rate" in found
    assert not {"root.self.net", "root.self.history", "Trainer.report"} & found
    assert walk.read(made, "net") and not walk.read(made, "net") and not walk.read(made, "missing")
    assert walk.ran(Trainer.loss.__code__, globals()) and not walk.ran(compile("1", "other.py", "eval"), {})
    found = {edge.path: edge.value for edge in walk}
    assert found["root.self.net.weight"] is NET.weight and "Trainer.loss" in found
    assert "root.self.history" not in found and "Trainer.report" not in found
    assert walk.read(made, "__dict__") and "root.self.history" in {edge.path for edge in walk}
    assert not walk.read(Trainer(), "net")
    assert "root.self" not in edges(made.step, is_narrow=True, skipped=frozenset(("root.self",)))


def test_names_closures_defaults_and_attributes_of_functions():
    factor, offsets = 3.0, [1.0]

    def inner(x, scale=offsets, *, shift=2.0):
        return x * factor * scale[0] + shift + NET.bias

    inner.note = "text"
    found = edges(lambda x: inner(x))
    assert found["factor"].by == By.CELL and found["inner"].value is inner and found["NET"].by == By.GLOBAL
    assert found["a default of inner"].value is offsets and found["the default of shift in inner"].value == 2.0
    assert found["inner.note"].value == "text"


def test_a_decorator_hides_nothing():
    def decorator(function):
        return lambda *args: function(*args)  # without functools.wraps

    counts = [0]

    @decorator
    def step(x):
        counts[0] += 1
        return x

    assert edges(step)["counts"].value is counts


def test_what_is_looked_into_is_chosen():
    nested = {"nets": [NET, {"head": NET}]}
    found = edges(nested, enters=lambda value, kind: kind is Kind.CONTAINER, is_dotted=True)
    assert {"root.nets.0", "root.nets.1.head"} <= found.keys() and "root.nets.0.weight" not in found


def test_objects_that_hold_themselves():
    made = Trainer()
    made.history.append(made)
    assert edges(made)["root.history[1]"].value is made


def test_what_has_no_fields_is_not_taken_for_who_has_them():
    """Places are known by the identity of fields: that of none must not become that of a dict made afterwards."""

    class Slotted:
        __slots__ = ("count",)

    known = {id(held.fields_of(Slotted())) for _ in range(3)}
    made = [{} for _ in range(200)]
    assert known.isdisjoint(map(id, made)) and held.fields_of(Slotted()) == {}
