# SPDX-License-Identifier: MIT
"""What is done around calls of a recorded function comes out as without recording: each case is run both ways.

On a GPU the recording becomes graphs. The argument is at three addresses in turn.
"""

import collections
import dataclasses
import itertools
import random
import threading
import warnings

import pytest

torch = pytest.importorskip("torch")

from devices import device  # noqa: E402, F401
from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording.function import without_graph  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

nn = torch.nn
CALLS = 14


pytestmark = pytest.mark.usefixtures("extension", "device")


class Rooms:
    """Three arrays."""

    def __init__(self):
        self._arrays = itertools.cycle([torch.empty(4, 3) for _ in range(3)])

    def next(self):
        return next(self._arrays)


rooms = []


def x():
    return rooms[0].next().copy_(torch.randn(4, 3))


def step_of(net, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    return step


def frozen_later(record):
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    step = record(step_of(net, torch.optim.SGD(net.parameters(), lr=0.1)))
    for call in range(3 * CALLS):
        if call % 10 == 9:
            net[0].requires_grad_(call == 19)
        yield step(x()), *net.parameters()


def hook_of_a_parameter_later(record):
    net = nn.Linear(3, 1)
    step = record(step_of(net, torch.optim.SGD(net.parameters(), lr=0.1)))
    for call in range(CALLS):
        if call == 9:
            net.weight.register_hook(lambda gradient: gradient * 2)
        yield step(x()), net.weight


def hook_of_an_optimizer(record):
    net, seen = nn.Linear(3, 1), torch.zeros(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *given: seen.add_(1))
    step = record(step_of(net, optimizer))
    for _ in range(CALLS):
        yield step(x()), seen


class Counting(torch.optim.Optimizer):
    """Counts in Python."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})
        self.steps = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.steps += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                state["step"] = state.get("step", 0) + 1
                parameter.add_(parameter.grad, alpha=-group["lr"] / (state["step"] + self.steps))


def optimizer_of_the_user(record):
    net = nn.Linear(3, 1)
    step = record(step_of(net, Counting(net.parameters(), 0.1)))
    for _ in range(CALLS):
        yield step(x()), net.weight


def state_made_in_the_recorded_call(record):
    first, second = nn.Linear(3, 3), nn.Linear(3, 1)
    first.requires_grad_(False)
    net = nn.Sequential(first, second)
    step = record(step_of(net, torch.optim.Adam(net.parameters(), lr=0.1, fused=True)))
    for call in range(CALLS):
        if call == 2:
            first.requires_grad_(True)
        yield step(x()), *net.parameters()


def other_threads_train(record):
    net, other = nn.Linear(3, 1), nn.Linear(3, 1)
    aside = Counting(other.parameters(), 0.1)
    inner = step_of(net, torch.optim.SGD(net.parameters(), lr=0.1))
    beside = step_of(other, aside)

    def step(x):
        thread = threading.Thread(target=beside, args=(torch.ones(4, 3),))
        thread.start()
        thread.join()
        return inner(x)

    step = record(step)
    # the last one is checked; when no Python is run, there are no threads any more
    for _ in range(5):
        yield step(x()), net.weight
    yield other.weight, torch.tensor(aside.steps)


def gradients_of_leaves(record):
    weight = {"w": torch.ones(3, requires_grad=True)}

    def slope(x):
        loss = (x * weight["w"]).square().sum()
        loss.backward()
        return loss

    slope = record(slope)
    for _ in range(CALLS):
        yield slope(x()), weight["w"].grad
        with torch.no_grad():
            weight["w"] -= 0.1 * weight["w"].grad
        weight["w"].grad = None


def a_graph_waits_for_its_backward_pass(record):
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    apply = record(lambda x: net(x))
    for _ in range(CALLS):
        net.zero_grad()
        loss = net(x()).sum()
        yield apply(x()), loss
        loss.backward()
        yield (net[0].weight.grad,)


def memory_that_cannot_be_written(record):
    with torch.inference_mode():
        one = torch.full((3,), 2.0)
    two = torch.ones(1).expand(3)
    apply = record(lambda x: x * one + two)
    for _ in range(CALLS):
        yield (apply(x()),)


def results_that_were_there_before(record):
    net, table = nn.Linear(3, 1), torch.arange(6.0).reshape(2, 3)
    apply = record(lambda x: (net.weight, net.weight.detach(), table[0:2], x))
    for _ in range(CALLS):
        found = apply(x())
        yield found
        found[2].t_()


def numbers_read_by_python(record):
    by_list = record(lambda x: x * 100 if max(x.flatten().tolist()) > 10 else x)
    by_array = record(lambda x: x * 100 if x.cpu().numpy().max() > 10 else x)
    for call in range(CALLS):
        given = x() + (20 if call > 9 else 0)
        yield by_list(given), by_array(given)


def layouts(record):
    matrix = record(lambda a: torch.sparse.mm(a, torch.ones(3, 2)))
    ragged = record(lambda a: a * 2)
    table = nn.Embedding(10, 3, sparse=True)
    step = record(step_of(table, torch.optim.SGD(table.parameters(), lr=0.1)))
    for _ in range(CALLS):
        nested = ragged(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
        yield matrix(torch.eye(3).to_sparse()), step(torch.randint(10, (4,))), table.weight, *nested.unbind()


def activation_of_whole_numbers(record):
    apply = record(lambda x: torch.sigmoid(x.argmax(1)))
    for _ in range(CALLS):
        yield (apply(x()),)


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Fields:
    value: torch.Tensor
    rest: dict
    count: int = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    value: torch.Tensor


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """As transformers returns its results: a dict of the fields that are set."""

    logits: torch.Tensor | None = None
    hidden: tuple | None = None
    missing: torch.Tensor | None = None

    def __post_init__(self):
        for name in ("logits", "hidden", "missing"):
            if getattr(self, name) is not None:
                super().__setitem__(name, getattr(self, name))


def results_of_classes(record):
    apply = record(lambda x: (Fields(x * 2, {"y": x + 1}), Slots(x - 1), Output(x * 3, (x * 4, x * 5))))
    for _ in range(CALLS):
        fields, slots, output = apply(x())
        assert type(fields) is Fields and fields.count == 3 and type(output) is Output
        assert list(output) == ["logits", "hidden"] and output["logits"] is output.logits and output.missing is None
        yield fields.value, fields.rest["y"], slots.value, output["logits"], *output.hidden


def results_with_names(record):
    apply = record(lambda x: (x.sort(0), Pair(x * 2, [x + 1])))
    for _ in range(CALLS):
        order, pair = apply(x())
        yield order.values, order.indices, pair.first, *pair.second


def rows_by_number(record):
    table = torch.arange(30.0).reshape(10, 3)
    apply = record(lambda i: table[i])
    for _ in range(CALLS):
        yield (apply(torch.randperm(10)[:4]),)


def numbers_drawn_in_python(record):
    numbers = random.Random(1)
    apply = record(lambda x: x * numbers.random())
    for _ in range(CALLS):
        yield (apply(x()),)


def lazily_conjugated(record):
    apply = record(lambda x: x.conj())
    for _ in range(CALLS):
        yield (apply(torch.randn(3, dtype=torch.cfloat)).resolve_conj(),)


# What is said, where the function goes on as it is
CASES = {
    frozen_later: "",
    hook_of_a_parameter_later: "a hook of a parameter would not be called",
    hook_of_an_optimizer: "a hook of SGD would not be called",
    optimizer_of_the_user: "it changes",
    state_made_in_the_recorded_call: "",
    other_threads_train: "it changes",
    gradients_of_leaves: "",
    a_graph_waits_for_its_backward_pass: "",
    memory_that_cannot_be_written: "",
    results_that_were_there_before: "",
    numbers_read_by_python: "a number is taken out of a tensor (Tensor.tolist)",
    layouts: "it uses a nested tensor",
    activation_of_whole_numbers: "",
    lazily_conjugated: "",
    results_with_names: "",
    results_of_classes: "",
    rows_by_number: "",
    numbers_drawn_in_python: "it draws numbers from numbers",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_same_both_ways(case):
    made = []

    def plain(function):
        return lambda *args: without_graph(function(*args))

    def record(function):
        made.append(recorded(function))
        return made[-1]

    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FtnPytorchWarning)
        for each in (plain, record):
            torch.manual_seed(0)
            rooms[:] = [Rooms()]
            found.append([[(t.detach().clone(), t.requires_grad) for t in tensors] for tensors in case(each)])
    rooms.clear()
    for one, other in zip(*found, strict=True):
        for (a, grad), (b, same) in zip(one, other, strict=True):
            assert torch.equal(a, b) and grad == same
    said = " ".join(str(each.message) for each in caught if issubclass(each.category, FtnPytorchWarning))
    assert (CASES[case] in said) if CASES[case] else not said, said
    assert all(each.recording.is_ready for each in made) == (not said) or case in (frozen_later, other_threads_train)
