# SPDX-License-Identifier: MIT
"""What a recorded function depends on is held no longer than the function."""

import gc
import importlib
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording.bindings import Watch  # noqa: E402
from ftn_pytorch.recording.recorder import Recorder  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

nn = torch.nn


pytestmark = pytest.mark.usefixtures("extension")


def test_a_recording_goes_with_what_it_watches():
    class Trainer:
        def __init__(self):
            self.net = nn.Linear(3, 1)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
            self.step = recorded(self.train)

        def train(self, x):
            self.optimizer.zero_grad()
            loss = self.net(x).sum()
            loss.backward()
            self.optimizer.step()
            return loss

    made = Trainer()
    for _ in range(8):
        made.step(torch.ones(2, 3))
    assert made.step.recording.is_ready
    net, step = weakref.ref(made.net), weakref.ref(made.step.recording)
    del made
    gc.collect()
    assert net() is None and step() is None


def test_a_function_that_is_refused_holds_nothing_of_its_recorder():
    """Neither in the call, nor after it, and without garbage collection."""
    alive, state = [], np.ones(3)

    def plain(x):
        alive.append(sum(type(each) in (Watch, Recorder) for each in gc.get_objects()))
        return x * len(state)

    step = recorded(plain, ignore=["alive"])
    gc.collect()
    gc.disable()
    try:
        before = sum(type(each) in (Watch, Recorder) for each in gc.get_objects())
        with pytest.warns(FtnPytorchWarning, match="array of NumPy"):
            for _ in range(6):
                step(torch.ones(3))
    finally:
        gc.enable()
    assert alive == [before] * 6


class Slotted:
    __slots__ = ("factor",)


def test_a_number_in_a_slot_that_comes_back_has_its_recording():
    """As one in a field: each value has a recording, and none is made again."""
    settings = Slotted()

    @recorded
    def scaled(x):
        return x * settings.factor

    for call in range(60):
        settings.factor = 1.0 + call // 6 % 2
        assert torch.equal(scaled(torch.ones(2)), torch.full((2,), settings.factor))
    assert len(scaled.recording.tapes()) == 2 and not scaled.recording.obstacle


class Twice(nn.Parameter):
    scale = 2.0


@pytest.mark.parametrize("is_own", [True, False])
def test_the_class_of_a_tensor_is_compared(is_own):
    net = nn.Linear(2, 2)
    weight = nn.Parameter(torch.ones(2)) if is_own else net.weight

    def scaled(x):
        return net(x) * weight * getattr(weight if is_own else net.weight, "scale", 1.0)

    apply, x = recorded(scaled), torch.ones(2)
    for call in range(12):
        if call == 8:
            assert apply.recording.is_ready
            weight.__class__ = Twice
        assert torch.equal(apply(x), scaled(x)), call


@pytest.mark.parametrize("name", ["weight", "x"])
def test_a_function_that_gives_a_tensor_another_class_is_refused(name):
    weight = torch.ones(2)

    def change(x):
        {"x": x, "weight": weight}[name].__class__ = nn.Parameter
        return x * 2

    with pytest.warns(FtnPytorchWarning, match="the class of weight|an argument other attributes"):
        apply = recorded(change)
        for _ in range(6):
            apply(torch.ones(2))
            weight.__class__ = torch.Tensor


class Holder:
    pass


def scaled_by(rate):
    class Scaled:
        def __call__(self, x):
            return x * rate

        def set(self, new):
            nonlocal rate
            rate = new

    return Scaled()


def test_classes_that_share_their_code_are_watched_each():
    """Also the one that is met when the code of the other has run."""
    one, holder = scaled_by(2.0), Holder()
    holder.other = scaled_by(3.0)

    @recorded
    def step(x):
        return one(x) + holder.other(x)

    for _ in range(8):
        assert step(torch.ones(2)).tolist() == [5.0, 5.0]
    assert step.recording.is_ready
    holder.other.set(10.0)
    assert step(torch.ones(2)).tolist() == [12.0, 12.0]


def test_modules_of_packages_with_the_same_code_are_watched_each(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    names = ("one_of_equal_modules", "two_of_equal_modules")
    for name in names:
        (folder / f"{name}.py").write_text("RATE = 2.0\ndef scaled(x): return x * RATE\n")
    monkeypatch.syspath_prepend(folder)
    one, two = map(importlib.import_module, names)

    @recorded
    def step(x):
        return one.scaled(x) + two.scaled(x)

    for _ in range(8):
        assert step(torch.ones(2)).tolist() == [4.0, 4.0]
    assert step.recording.is_ready
    two.RATE = 5.0
    assert step(torch.ones(2)).tolist() == [7.0, 7.0]


def test_complex_numbers_are_compared_with_the_signs_of_their_zeros():
    """On the two sides of a branch cut, as an argument and by a name; what is no number is the same as itself."""
    held = Holder()
    held.factor = complex(-1.0, 0.0)

    @recorded
    def step(x, factor):
        return torch.sqrt(x * factor) + torch.sqrt(x * held.factor)

    x, above, below = torch.ones(1, dtype=torch.complex64), complex(-1.0, 0.0), complex(-1.0, -0.0)
    for _ in range(8):
        assert step(x, above).tolist() == [2j]
    assert step.recording.is_ready
    assert step(x, below).tolist() == [0j]
    held.factor = below
    assert step(x, above).tolist() == [0j]
    held.factor = complex("nan")
    for _ in range(8):
        held.factor = complex(held.factor.real, held.factor.imag)
        step(x, above)
    assert step.recording.is_ready
