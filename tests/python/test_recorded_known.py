# SPDX-License-Identifier: MIT
"""What is understood is seen when it changes after the recording; everything else is refused by its name."""

import collections
import contextvars
import copy
import datetime
import enum
import functools
import os
import pickle
import random
import threading
import time
import types

import numpy
import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

nn = torch.nn
X = torch.arange(6.0).reshape(2, 3)


class Level(enum.Enum):
    LOW = 1


class Holder:
    scale = 2.0


class Other:
    scale = 5.0


class Greedy:
    """Says nothing of itself."""

    def __len__(self):
        raise RuntimeError("no length")

    __iter__ = items = keys = __bool__ = __eq__ = __hash__ = __len__

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")


def of_dict(held, change):
    return (lambda x: x * next(iter(held.values()))), lambda: change(held)


def of_function():
    def helper(x):
        return x * helper.scale

    helper.scale = 2.0
    return (lambda x: helper(x)), lambda: setattr(helper, "scale", 5.0)


def of_set():
    modes = {"plain"}

    def change():
        modes.clear()
        modes.add("shifted")

    return (lambda x: x + 100 if "shifted" in modes else x * 2), change


def of_class():
    held = Holder()
    return (lambda x: x * held.scale), lambda: setattr(held, "__class__", Other)


def of_enum():
    Level.LOW.scale = 2.0
    return (lambda x: x * Level.LOW.scale), lambda: setattr(Level.LOW, "scale", 5.0)


def of_partial():
    inner = functools.partial(lambda x, scale: x * scale, scale=2.0)
    return (lambda x: inner(x)), lambda: inner.keywords.update(scale=5.0)


def of_keyword_default():
    def inner(x, *, scale=2.0):
        return x * scale

    return (lambda x: inner(x)), lambda: inner.__kwdefaults__.update(scale=5.0)


def of_optimizer(read, change):
    made = torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=0.1)
    made.scale = 2.0
    schedule = torch.optim.lr_scheduler.ConstantLR(made, 0.5, 100)
    return (lambda x: x * read(made, schedule)), lambda: change(made, schedule)


def of_later_global():
    space = {"__name__": "script_of_user"}
    exec("def function(x):\n    return x * max(2.0, 1.0)", space)
    return space["function"], lambda: space.update(max=lambda one, other: 5.0)


def of_attribute_of_a_parameter():
    weight = nn.Parameter(torch.ones(3))
    return (lambda x: x * getattr(weight, "scale", 2.0)), lambda: setattr(weight, "scale", 5.0)


def of_environment(read):
    os.environ["TEST_SCALE"] = "2"
    return (lambda x: x * float(read("TEST_SCALE"))), lambda: os.environ.update(TEST_SCALE="5")


def of_new_field():
    held = Holder()
    return (lambda x: x * held.scale), lambda: setattr(held, "scale", 5.0)


def of_own_dict():
    held = Holder()
    held.scale = 2.0
    return (lambda x: x * held.scale), lambda: setattr(held, "__dict__", {"scale": 5.0})


def of_computed_name():
    held = Holder()
    held.first, held.second, name = 2.0, 5.0, ["fir", "st"]
    return (lambda x: x * getattr(held, "".join(name))), lambda: setattr(held, "first", 5.0)


def of_imported():
    helpers = types.ModuleType("helpers_of_user")
    helpers.scale = 2.0
    held = {"helpers": helpers}
    return (lambda x: x * held["helpers"].scale), lambda: setattr(helpers, "scale", 5.0)


SEEN = {
    "attribute of a function": of_function,
    "set of the same length": of_set,
    "order of a dict": lambda: of_dict({"a": 2.0, "b": 5.0}, lambda held: held.update(a=held.pop("a"))),
    "order of an ordered dict": lambda: of_dict(
        collections.OrderedDict(a=2.0, b=5.0), lambda held: held.move_to_end("a")
    ),
    "dict of the user": lambda: of_dict(collections.UserDict(a=2.0), lambda held: held.update(a=5.0)),
    "chain of dicts": lambda: of_dict(collections.ChainMap({"a": 2.0}), lambda held: held.maps[0].update(a=5.0)),
    "class of an object": of_class,
    "attribute of a member of Enum": of_enum,
    "keywords of a partial": of_partial,
    "default of a keyword": of_keyword_default,
    "defaults of an optimizer": lambda: of_optimizer(
        lambda made, schedule: made.defaults["momentum"] + 2, lambda made, schedule: made.defaults.update(momentum=3)
    ),
    "field of an optimizer": lambda: of_optimizer(
        lambda made, schedule: made.scale, lambda made, schedule: setattr(made, "scale", 5.0)
    ),
    "count of a schedule": lambda: of_optimizer(
        lambda made, schedule: schedule.last_epoch + 2, lambda made, schedule: setattr(schedule, "last_epoch", 3)
    ),
    "global that is made later": of_later_global,
    "attribute of a parameter": of_attribute_of_a_parameter,
    "environment": lambda: of_environment(os.environ.get),
    "getenv": lambda: of_environment(os.getenv),
    "field beside one of the class": of_new_field,
    "fields of an object": of_own_dict,
    "name that is computed": of_computed_name,
    "module in a dict": of_imported,
}


@pytest.mark.parametrize("name", SEEN)
def test_a_change_is_seen(name):
    function, change = SEEN[name]()
    apply = recorded(function)
    for _ in range(9):
        before = apply(X)
    assert apply.recording.is_ready, apply.recording.obstacle
    change()
    after = apply(X)
    assert torch.equal(after, function(X)) and not torch.equal(after, before)


def hidden_in(value):
    return lambda x: x * (value is not None)


def of_thread(x):
    made = []
    thread = threading.Thread(target=lambda: made.append(x * 2))
    thread.start()
    thread.join()
    return made[0] + 1


def of_file(x):
    with open(os.devnull) as file:
        return x + len(file.read())


class Careful(torch.optim.SGD):
    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for each in group["params"]:
                    each.sub_(each.grad * min(group["lr"], 0.05))


NUMBERS, DRAWN = random.Random(1), numpy.random.default_rng(1)
VIEW = torch.ones(3).numpy()

REFUSED = {
    "array": (hidden_in(numpy.ones(3)), "value is an array of NumPy, whose changes cannot be seen: make it a tensor"),
    "view of an array": (lambda x, view=VIEW: view.sum() + x, "a default of <lambda> is an array of NumPy"),
    "proxy": (hidden_in(types.MappingProxyType({})), "value is of type mappingproxy"),
    "bytes": (hidden_in(bytearray(3)), "value is of type bytearray"),
    "local": (hidden_in(threading.local()), "value is of type _thread._local"),
    "context": (hidden_in(contextvars.ContextVar("context")), "value is of type _contextvars.ContextVar"),
    "iterator": (hidden_in(iter([1])), "value is of type list_iterator"),
    "long list": (hidden_in(types.SimpleNamespace(values=[0.0] * 1500)), "value.values has more than 1000 items"),
    "thread": (of_thread, "uses a tensor that no operator has made"),
    "tensor of tensors": (lambda x: x + torch.tensor([x[0, 0], x[0, 1], x[1, 1]]), "uses a tensor that no operator"),
    "copy": (lambda x: x + copy.deepcopy(x.sum()), "it uses the memory of a tensor as it is"),
    "pickle": (lambda x: x + pickle.loads(pickle.dumps(x.sum())), "it uses the memory of a tensor as it is"),
    "legacy constructor": (lambda x: x + torch.FloatTensor([1.0, 2.0, 3.0]), "uses a tensor that no operator has made"),
    "random": (lambda x: x * random.random(), "draws numbers from Python's random"),
    "random of NumPy": (lambda x: x * float(numpy.random.rand()), "draws numbers from numpy.random"),
    "own random": (lambda x: x * NUMBERS.random(), "draws numbers from NUMBERS"),
    "own random of NumPy": (lambda x: x * float(DRAWN.random()), "draws numbers from DRAWN"),
    "clock": (lambda x: x * (time.time() > 0), "it reads a clock (time)"),
    "today": (lambda x: x * datetime.datetime.now().year, "it reads a clock (datetime)"),
    "file": (of_file, "it opens a file"),
    "text as code": (lambda x: eval("x * 2"), "runs a text as code"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_is_refused(name):
    function, reason = REFUSED[name]
    apply = recorded(function)
    with pytest.warns(FtnPytorchWarning) as caught:
        for call in range(9):
            apply(X + call)
    assert reason in str(caught[0].message) and not apply.recording.is_ready


def test_numbers_of_an_optimizer_of_the_user_are_constants():
    """A rule that two rates show need not hold for a third: this one has a limit."""

    def run(record):
        torch.manual_seed(1)
        net = nn.Linear(3, 1)
        made = Careful(net.parameters(), lr=0.2)

        def step(x):
            made.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            made.step()
            return loss.detach()

        step = record(step)
        losses = []
        for call in range(30):
            made.param_groups[0]["lr"] = 0.2 if call < 20 else 0.01
            losses.append(step(X))
        return torch.stack(losses)

    assert torch.equal(run(recorded), run(lambda function: function))


def test_objects_that_raise_when_they_are_looked_at():
    held = [Greedy()]
    apply = recorded(lambda x: x * len(held))
    for _ in range(9):
        assert torch.equal(apply(X), X)
    assert apply.recording.is_ready, apply.recording.obstacle


def test_names_that_are_ignored():
    calls = iter(range(100))

    def function(x):
        next(calls)
        return x * 2

    apply = recorded(function, ignore=["calls"])
    for _ in range(9):
        apply(X)
    assert apply.recording.is_ready


class Trainer:
    """As many write one. Only what its step mentions counts."""

    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.99)
        self.history, self.numbers, self.lock = [], numpy.random.default_rng(1), threading.local()
        self.advance = recorded(self.step)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.loss(self.net(x))
        loss.backward()
        self.optimizer.step()
        return loss

    def loss(self, y):
        return y.square().mean()

    def train(self):
        x = X + torch.as_tensor(self.numbers.random((2, 3)), dtype=torch.float32)
        self.history.append(self.advance(x).item())
        self.schedule.step()


def test_fields_that_no_code_of_the_step_mentions_do_not_count():
    made = Trainer()
    for _ in range(12):
        made.train()
    assert made.advance.recording.is_ready, made.advance.recording.obstacle


def test_tensors_of_numbers_begin_anew_in_each_call():
    def function(x):
        total = torch.tensor(0.0)
        total += x.sum()
        return total, x + torch.tensor([1.0, 2.0, 3.0])

    apply = recorded(function)
    for call in range(12):
        for one, other in zip(apply(X + call), function(X + call)):
            assert torch.equal(one, other)
    assert apply.recording.is_ready, apply.recording.obstacle


def test_hooks_around_a_call_see_what_is_saved():
    weight = torch.ones(3, requires_grad=True)

    @recorded
    def slope(x):
        return torch.autograd.grad((x * weight).exp().sum(), weight)[0]

    for _ in range(9):
        slope(X)
    assert slope.recording.is_ready
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda each: saved.append(each) or each, lambda each: each):
        slope(X)
    assert saved


def test_gradients_after_an_operator_that_fails_late():
    """The statistics of the batch are written first, so the call cannot be made again."""

    def run(record):
        torch.manual_seed(1)
        net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 4))

        def step(x, rows):
            net.zero_grad()
            loss = nn.functional.cross_entropy(net(x), rows)
            loss.backward()
            return loss.detach()

        step = record(step)
        for _ in range(9):
            step(X, torch.tensor([0, 1]))
        with pytest.raises(IndexError):
            step(X, torch.tensor([0, 7]))
        return [each.grad for each in net.parameters()], net[0].running_mean

    (gradients, mean), (expected, same) = run(recorded), run(lambda function: function)
    assert torch.equal(mean, same)
    assert [each is None for each in gradients] == [each is None for each in expected]
