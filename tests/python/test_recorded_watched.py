# SPDX-License-Identifier: MIT
"""What a recorded function depends on is seen when it changes after the recording, wherever it is kept."""

import argparse
import collections
import dataclasses
import functools
import gc
import sys
import types
import weakref

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402

nn = torch.nn


pytestmark = pytest.mark.usefixtures("extension")


class Config:
    scale = 2.0


class Net(nn.Module):
    shift = 1.0

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3))

    @property
    def of_property(self):
        return Config.scale

    @staticmethod
    def of_static(x):
        return x * Config.scale

    @classmethod
    def of_class(cls, x):
        return cls.of_static(x) + cls.shift

    def forward(self, x):
        return self.of_class(self.inner(x)) * self.of_property


class Slotted:
    __slots__ = ("scale",)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * Config.scale

    @staticmethod
    def backward(context, gradient):
        return gradient * Config.scale


@dataclasses.dataclass
class Batch:
    x: object
    scale: float = 2.0


class Method:
    def __init__(self):
        self.net, self.scale = nn.Linear(3, 3), 2.0

    @recorded
    def step(self, x):
        return self.net(x) * self.scale


def made_of(function, *holders):
    """A function of x, and what a case changes."""
    return (recorded(function), *holders)


def of_class():
    return made_of(lambda x: x * Config.scale, lambda: setattr(Config, "scale", 3.0))


def of_net(change):
    net = Net()
    return made_of(lambda x: net(x), lambda: change(net))


def of_autograd_function():
    weight = torch.ones(3, requires_grad=True)

    def slope(x):
        return torch.autograd.grad(Double.apply(x * weight).sum(), weight)

    return made_of(slope, lambda: setattr(Config, "scale", 3.0))


def of_object(holder, change=lambda holder: setattr(holder, "scale", 3.0)):
    holder.scale = 2.0
    return made_of(lambda x: x * holder.scale, lambda: change(holder))


def of_set():
    flags = set()
    return made_of(lambda x: x * 2 if "double" in flags else x, lambda: flags.add("double"))


def of_queue():
    held = collections.deque([1.0, 2.0], maxlen=2)
    return made_of(lambda x: x * held[0], lambda: held.append(3.0))


def of_sign():
    held = {"zero": -0.0}
    return made_of(lambda x: (x + 1) / held["zero"], lambda: held.update(zero=0.0))


def of_all_networks(request):
    net = nn.Linear(3, 3)

    def change():
        request.addfinalizer(nn.modules.module.register_module_forward_hook(lambda module, args, y: y * 2).remove)

    return made_of(lambda x: net(x), change)


def of_cached():
    held = {"scale": 2.0}
    cached = functools.lru_cache(lambda factor: held["scale"] * factor)

    def change():
        held["scale"] = 3.0
        cached.cache_clear()

    return made_of(lambda x: x * cached(2), change)


def of_inner():
    held = {"scale": 2.0}
    inner = recorded(lambda x: x * held["scale"])
    return made_of(lambda x: inner(x) + 1, lambda: held.update(scale=3.0))


def of_argument():
    batch = Batch(torch.ones(3))
    outer = recorded(lambda batch, x: batch.x * batch.scale + x)
    return functools.partial(outer, batch), lambda: setattr(batch, "x", torch.zeros(3))


def of_network_argument():
    net = nn.Linear(3, 3)
    outer = recorded(lambda net, x: net(x))
    return functools.partial(outer, net), lambda: setattr(net, "weight", nn.Parameter(torch.zeros(3, 3)))


def of_method():
    made = Method()
    return made.step, lambda: setattr(made, "scale", 3.0)


def of_package():
    package, inner = types.ModuleType("package_of_user"), types.ModuleType("package_of_user.inner")
    package.inner, inner.scale = inner, 2.0
    return made_of(lambda x: x * package.inner.scale, lambda: setattr(inner, "scale", 3.0))


def of_import_inside():
    sys.modules["module_of_user"] = module = types.ModuleType("module_of_user")
    module.scale = 2.0

    def function(x):
        import module_of_user

        return x * module_of_user.scale

    return made_of(function, lambda: setattr(module, "scale", 3.0))


def of_rate(read):
    net = nn.Linear(3, 1)
    made = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ConstantLR(made, 0.5, 100)
    return made_of(lambda x: x * read(made, schedule), lambda: made.param_groups[0].update(lr=0.2))


def of_function(change):
    def inner(x, scale=2.0):
        return x * scale

    return made_of(lambda x: inner(x), lambda: change(inner))


def rate_of(optimizer, schedule):
    return optimizer.param_groups[0]["lr"]


CASES = {
    "class": of_class,
    "attribute of the class of a net": lambda: of_net(lambda net: setattr(Net, "shift", 5.0)),
    "static, class method, property": lambda: of_net(lambda net: setattr(Config, "scale", 5.0)),
    "method of a class": lambda: of_net(lambda net: setattr(Net, "forward", lambda self, x: x * 7)),
    "method of an object": lambda: of_net(lambda net: setattr(net, "forward", lambda x: x * 7)),
    "layer added": lambda: of_net(lambda net: net.inner.append(nn.Tanh())),
    "hook added": lambda: of_net(lambda net: net.inner.register_forward_hook(lambda module, args, y: y * 2)),
    "autograd function": of_autograd_function,
    "namespace": lambda: of_object(types.SimpleNamespace()),
    "command line": lambda: of_object(argparse.Namespace()),
    "slots": lambda: of_object(Slotted()),
    "set": of_set,
    "queue": of_queue,
    "sign of zero": of_sign,
    "hook of all networks": of_all_networks,
    "cached function": of_cached,
    "recorded function inside": of_inner,
    "field of an argument": of_argument,
    "network as argument": of_network_argument,
    "recorded method": of_method,
    "module in a package": of_package,
    "import inside": of_import_inside,
    "defaults": lambda: of_function(lambda inner: setattr(inner, "__defaults__", (3.0,))),
    "code": lambda: of_function(lambda inner: setattr(inner, "__code__", (lambda x, scale: x + scale).__code__)),
    "learning rate": lambda: of_rate(rate_of),
    "learning rate of a schedule": lambda: of_rate(lambda made, schedule: rate_of(made, schedule.get_last_lr())),
}


@pytest.fixture
def restored(monkeypatch):
    for holder, name in ((Config, "scale"), (Net, "shift"), (Net, "forward")):
        monkeypatch.setattr(holder, name, vars(holder)[name])
    yield
    sys.modules.pop("module_of_user", None)


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen(name, restored, request):
    case = CASES[name]
    apply, change = case(request) if case is of_all_networks else case()
    function = apply.func if isinstance(apply, functools.partial) else apply
    x = torch.arange(6.0).reshape(2, 3)
    plain = functools.partial(function.__wrapped__, *getattr(apply, "args", ()))
    if isinstance(apply, types.MethodType):
        plain = functools.partial(plain, apply.__self__)
    for _ in range(8):
        before = apply(x)
    assert function.recording.is_ready, function.recording.obstacle
    change()
    after = apply(x)
    first = lambda value: value[0] if isinstance(value, tuple) else value  # noqa: E731
    assert torch.equal(first(after), first(plain(x)))
    assert not torch.equal(first(after), first(before))


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
