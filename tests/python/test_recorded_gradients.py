# SPDX-License-Identifier: MIT
"""Gradients through recorded functions: of arguments, by tangent, adjoint and Jacobian, and by transforms of torch."""

from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

import program  # noqa: E402
from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.system import thread_recorder  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
CALLS = 8

pytestmark = pytest.mark.usefixtures("extension")


@dataclass
class Batch:
    x: torch.Tensor


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3))


def made_ready(function, *args):
    for _ in range(CALLS):
        function(*args)
    assert function.recording.is_ready, function.recording.obstacle
    return function


# How an argument that requires a gradient reaches the function
ARGUMENTS = {
    "itself": lambda x: x,
    "in containers": lambda x: {"pair": (1, [x])},
    "in an object": Batch,
}


@pytest.mark.parametrize("way", ARGUMENTS)
def test_an_argument_that_requires_a_gradient_gets_it(way):
    net = network()

    def plain(given):
        x = given["pair"][1][0] if isinstance(given, dict) else given.x if isinstance(given, Batch) else given
        return net(x) * x

    step, seen = recorded(plain), []
    for function in (plain, step):
        for number in range(2 * CALLS):
            x = torch.full((2, 3), 0.1 * number).requires_grad_(number % 2 == 0)
            result = function(ARGUMENTS[way](x))
            if x.requires_grad:
                (x.square().sum() + result.sum()).backward()
            else:
                assert function is plain or not result.requires_grad
            seen.append(x.grad if x.requires_grad else result.detach())
        seen.append(net[0].weight.grad.clone())
        net.zero_grad()
    half = len(seen) // 2
    assert all(torch.equal(one, other) for one, other in zip(seen[:half], seen[half:], strict=True))
    # each object is another argument
    assert step.recording.is_ready == (way != "in an object")


def test_a_graph_before_the_argument_is_passed_through():
    def run(record):
        before, net = network(), network()

        def slope(x):
            loss = net(x).sum()
            loss.backward()
            return loss

        slope = recorded(slope) if record else slope
        for _ in range(CALLS):
            before.zero_grad()
            loss = slope(before(torch.ones(2, 3)))
            yield from (loss, before[0].weight.grad.clone(), net[0].weight.grad.clone())

    for one, other in zip(run(False), run(True), strict=True):
        assert torch.equal(one, other) and one.requires_grad == other.requires_grad


@pytest.mark.parametrize("factor", [1, 3], ids=["leaf", "computed"])
def test_gradients_that_a_function_itself_sends_into_its_argument_arrive(factor):
    """Called where nothing is followed, so the argument does not keep it from being recorded."""

    @recorded
    def step(x):
        with torch.enable_grad():
            x.square().sum().backward()
        return x.detach() + 1

    with pytest.warns(FtnPytorchWarning, match="step is not recorded: .* gradients flow into an argument"):
        for number in range(12):
            w = torch.full((2,), float(number), requires_grad=True)
            x = w if factor == 1 else factor * w
            with torch.no_grad():
                step(x)
            assert torch.equal(w.grad, 2 * factor * x.detach())


def test_an_inner_function_in_a_recorded_step_passes_gradients_on():
    def run(record):
        first, second = network(), network()
        inner = recorded(lambda x: second(x)) if record else lambda x: second(x)
        optimizer = torch.optim.SGD(first.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = inner(first(x)).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        step = recorded(step, checks=1) if record else step
        torch.manual_seed(2)
        return [step(torch.randn(4, 3)).detach() for _ in range(CALLS)]

    assert torch.equal(torch.stack(run(False)), torch.stack(run(True)))


def test_a_script_that_is_recorded_from_outside(load):
    runner = load("import torch\ndef ftn_pytorch_forward(x): return torch.sin(x)\n", record=True)
    function = program.function(runner, "ftn_pytorch_forward")
    for _ in range(CALLS):
        function(torch.ones(2))
    x = torch.ones(2, requires_grad=True)
    (x.square() + function(x)).sum().backward()
    assert torch.equal(x.grad, 2 + torch.cos(torch.ones(2)))


def test_transforms_and_tangents_see_the_function():
    net = network()

    def plain(x):
        return net(x).square()

    step = recorded(plain)
    x, dx = torch.full((3,), 0.5), torch.tensor([1.0, 2.0, 3.0])
    with torch.no_grad():
        made_ready(step, x)
    made_ready(step, x)

    def tangent(function):
        with torch.no_grad(), forward_ad.dual_level():
            return forward_ad.unpack_dual(function(forward_ad.make_dual(x.clone(), dx))).tangent

    def of_weights(function):
        parameters = dict(net.named_parameters())
        keyed = torch.func.grad(lambda bias: torch.func.functional_call(Of(function), {"net.2.bias": bias}, x).sum())
        return keyed(parameters["2.bias"].detach())

    class Of(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.net, self.function = net, function

        def forward(self, x):
            return self.function(x)

    for transform in (
        tangent,
        of_weights,
        lambda function: torch.func.grad(lambda x: function(x).sum())(x),
        lambda function: torch.func.jvp(function, (x,), (dx,))[1],
        lambda function: torch.func.jacrev(function)(x),
        lambda function: torch.vmap(function)(torch.stack([x, dx])),
        lambda function: torch.vmap(torch.func.grad(lambda x: function(x).sum()))(torch.stack([x, dx])),
        lambda function: torch.func.hessian(lambda x: function(x).sum())(x),
    ):
        assert torch.equal(transform(plain), transform(step))
    assert step.recording.is_ready and torch.equal(step(x), plain(x).detach())


def test_aside_ends_also_where_the_function_fails():
    step = made_ready(recorded(lambda x: 2 * x), torch.ones(2))
    with pytest.raises(ZeroDivisionError), thread_recorder.aside():
        assert thread_recorder.is_aside()
        raise ZeroDivisionError
    assert not thread_recorder.is_aside() and torch.equal(step(torch.ones(2)), torch.full((2,), 2.0))


def random(*shape, dtype=torch.float32):
    return torch.rand(shape, generator=torch.Generator().manual_seed(3), dtype=dtype)


# Script, function, its inputs
DIFFERENTIABLE = {
    "assimilation/error_model": ("correction", lambda: (random(12, dtype=torch.float64),)),
    "autograd_basics/network": ("ftn_pytorch_forward", lambda: (random(5, 1, dtype=torch.float64),)),
    "first/first": ("ftn_pytorch_forward", lambda: (random(5, 3),)),
    "mpi_training/learner": ("ftn_pytorch_forward", lambda: (random(5, 2),)),
    "../tests/fortran/scripts/oscillator": ("ftn_pytorch_forward", lambda: (random(4), random(4) + 1, 0.1)),
    "polynomial_gpu/network": ("ftn_pytorch_forward", lambda: (random(5, 1),)),
}


@pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning")
@pytest.mark.parametrize("example", DIFFERENTIABLE)
def test_tangent_and_adjoint_of_examples_agree_recorded_or_not(example, monkeypatch):
    name, inputs_of = DIFFERENTIABLE[example]
    inputs = inputs_of()
    directions = [torch.flip(value, (0,)) for value in inputs if isinstance(value, torch.Tensor)]

    def derivatives(record, decorate):
        torch.manual_seed(4)
        runner = program.load(str(EXAMPLES / f"{example}.py"), record=record)
        script = vars(runner._module)
        if decorate:
            monkeypatch.setitem(script, name, recorded(script[name]))
        function = program.function(runner, name)
        with torch.no_grad():
            for _ in range(CALLS):
                result = function(*inputs)
        weight = torch.flip(result, (0,)).clone()
        kinds = [f"ftn_pytorch_tangent:{len(directions)}:{name}", f"ftn_pytorch_adjoint:1:{name}"]
        tangent, adjoint = (program.function(runner, kind) for kind in kinds)
        return weight, tangent(*directions, *inputs), adjoint(weight, *inputs)

    weight, tangents, gradients = derivatives(False, False)
    one = sum((weight.double() * tangent.double()).sum() for tangent in tangents)
    other = sum((gradient.double() * dx.double()).sum() for gradient, dx in zip(gradients, directions, strict=True))
    assert one != 0 and abs(one - other) < 1e-4 * abs(one)
    for way in ((True, False), (False, True)):
        again = derivatives(*way)
        for one, other in zip((weight, *tangents, *gradients), (again[0], *again[1], *again[2]), strict=True):
            assert torch.equal(one, other)


def test_derivatives_of_a_script_with_a_recorded_part(load):
    text = """
        import torch
        {import_}
        state = {{}}
        {decorator}
        def inner(x): return torch.sin(x) * x
        {decorator}
        def of_state(): return torch.cos(state["x"])
        def f(x):
            state["x"] = x
            return x + inner(x) + of_state()
    """
    found = []
    x, dx, dy = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]), torch.tensor([2.0, 5.0])
    for import_, decorator in (("", ""), ("from ftn_pytorch import recorded", "@recorded(checks=1)")):
        runner = load(text.format(import_=import_, decorator=decorator))
        function = program.function(runner, "f")
        for _ in range(CALLS):
            function(x)
        kinds = [("tangent:1", dx), ("adjoint:1", dy), ("jacobian:0", None)]
        for kind, direction in kinds:
            given = (x,) if direction is None else (direction, x)
            found.append(program.call(runner, f"ftn_pytorch_{kind}:f", *given))
    for one, other in zip(found[:3], found[3:], strict=True):
        assert torch.equal(one[0], other[0])
    assert torch.allclose((found[0][0] * dy).sum(), (found[1][0] * dx).sum())
