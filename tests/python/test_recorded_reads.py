# SPDX-License-Identifier: MIT
"""Reads of attributes while a call is recorded: who looks on leaves no trace."""

import threading
import types

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording.reads import Reads  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")
CALLS = 8


class Settings:
    __slots__ = ("gain", "late")

    def __init__(self):
        self.gain = 2.0


class Inner(Settings):
    registry = []

    def __init_subclass__(cls):
        Inner.registry.append(cls)


def test_reads_of_objects_and_modules_also_of_what_is_not_there():
    module, settings, inner, seen = types.ModuleType("settings"), Settings(), Inner(), []
    module.gain = 1.0
    before = [dict(vars(kind)) for kind in (Settings, Inner)]
    with Reads(lambda value, name: seen.append((value, name)) is None) as reads:
        for each in (settings, inner, module):
            reads.look_at(each)
        assert (type(settings), type(inner), isinstance(module, types.ModuleType)) == (Settings, Inner, True)
        assert f"{settings.gain}" == "2.0" and hasattr(settings, "late") is False
        assert inner.gain == 2.0 and getattr(module, "other", 3.0) == 3.0
        other = threading.Thread(target=lambda: settings.gain)
        other.start()
        other.join()
    asked = [(value, name) for value, name in seen if not name.startswith("__")]
    assert [name for value, name in asked if value is settings] == ["gain", "late"]
    assert {(id(inner), "gain"), (id(module), "other")} <= {(id(value), name) for value, name in asked}
    assert [dict(vars(kind)) for kind in (Settings, Inner)] == before and type(module) is types.ModuleType
    assert not Inner.registry
    seen.clear()
    assert settings.gain == 2.0 and not seen


def filled_later():
    def put(value):
        nonlocal gain
        gain = value

    def read(x):
        try:
            return x * gain
        except NameError:
            return x

    if False:
        gain = 1.0
    return read, put


def test_a_variable_that_is_filled_later():
    read, put = filled_later()
    apply = recorded(read)
    for _ in range(CALLS):
        assert torch.equal(apply(torch.ones(2)), torch.ones(2))
    assert apply.recording.is_ready
    put(3.0)
    assert torch.equal(apply(torch.ones(2)), torch.full((2,), 3.0))


def test_a_slot_that_is_set_later():
    settings = Settings()
    apply = recorded(lambda x: x * getattr(settings, "late", 1.0))
    for _ in range(CALLS):
        assert torch.equal(apply(torch.ones(2)), torch.ones(2))
    assert apply.recording.is_ready
    settings.late = 3.0
    assert torch.equal(apply(torch.ones(2)), torch.full((2,), 3.0))


def test_what_is_not_read_is_no_obstacle():
    class Model:
        def __init__(self):
            self.gain, self.table, self.items = 2.0, memoryview(b"abc"), iter(())

    model = Model()
    apply = recorded(lambda x: x * model.gain)
    for _ in range(CALLS):
        assert torch.equal(apply(torch.ones(2)), torch.full((2,), 2.0))
    assert apply.recording.is_ready and not apply.recording.obstacle
