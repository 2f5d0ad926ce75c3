# SPDX-License-Identifier: MIT
"""Parameters of models by name, each the parameter itself, and gradients through models that Python runs."""

import warnings

import pytest

import program

torch = pytest.importorskip("torch")

X = torch.linspace(-1, 1, 6).reshape(2, 3)


class Net(torch.nn.Module):
    """Something that every format can hold."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first = torch.nn.Linear(3, 4)
        self.second = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


NAMES = ["first.weight", "first.bias", "second.weight", "second.bias"]


def called(runner, name, *args, **named):
    function = program.function(runner, name, named.pop("flags", 0))
    program.first_call(runner, name, args, named)
    return function(*args, **named)


@pytest.fixture(params=["torchscript", "exported", "pickled"])
def saved(request, tmp_path):
    """save(**options): the runner of a saved model, and its kind."""
    path = str(tmp_path / f"net.{'pt2' if request.param == 'exported' else 'pt'}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if request.param == "torchscript":
            torch.jit.save(torch.jit.script(Net()), path)
        elif request.param == "exported":
            torch.export.save(torch.export.export(Net(), (X,)), path)
        else:
            torch.save(Net(), path)

    def load(**options):
        options = {"weights_only": False, **options} if request.param == "pickled" else options
        return program.load_model(path, **options), request.param

    return load


def test_parameters_of_saved_models_are_the_parameters_themselves(saved):
    runner, _ = saved()
    found = called(runner, "ftn_pytorch_parameters")
    assert list(found) == NAMES
    names, values = program.unpack(found)
    assert list(names) == NAMES
    assert all(value is found[name] for name, value in zip(names, values))
    with torch.no_grad():
        values[-1].fill_(5)
        values[-2].zero_()
    assert called(runner, "ftn_pytorch_forward", X).tolist() == [[5], [5]]


def test_an_optimizer_trains_a_saved_model(saved):
    runner, kind = saved()
    for each in called(runner, "ftn_pytorch_parameters").values():
        each.requires_grad_()
    optimizer = called(runner, "ftn_pytorch_optimizer", "SGD", lr=0.1)
    net = Net()
    plain = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
    for _ in range(3):
        called(optimizer, "zero_grad")
        called(runner, "ftn_pytorch_forward", X).sum().backward()
        called(optimizer, "step")
        plain.zero_grad()
        net(X).sum().backward()
        plain.step()
    ours = called(runner, "ftn_pytorch_parameters").values()
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(ours, net.parameters())), kind


@pytest.mark.parametrize("inference", [0, 2])
def test_a_result_keeps_the_graph_where_an_input_requires_gradients(saved, inference):
    runner, _ = saved(flags=inference)
    x = X.clone().requires_grad_()
    net = Net()
    for _ in range(3):
        x.grad = None
        called(runner, "ftn_pytorch_forward", x).sum().backward()
        (wanted,) = torch.autograd.grad(net(x).sum(), x)
        assert torch.allclose(x.grad, wanted, atol=1e-6)
    y = called(runner, "ftn_pytorch_forward", X)
    assert y.is_inference() == bool(inference)


def test_a_model_loaded_for_training_keeps_the_graph_of_its_parameters(saved):
    kind = saved()[1]
    if kind == "exported":
        pytest.skip("the mode of a program of torch.export was settled when it was written")
    runner, _ = saved(flags=2, training=True)
    called(runner, "ftn_pytorch_forward", X).sum().backward()
    assert all(each.grad is not None for each in called(runner, "ftn_pytorch_parameters").values())


def test_parameters_of_scripts_are_found_wherever_networks_are(load):
    runner = load(
        """
        import torch

        class Closure:
            def __init__(self):
                self.net = torch.nn.Linear(1, 1)

        shared = torch.nn.Linear(2, 2)
        alias = shared
        parts = [torch.nn.Linear(1, 1, bias=False), {"deep": torch.nn.Linear(1, 1, bias=False)}]
        closure = Closure()
        offset = torch.nn.Parameter(torch.zeros(1))
        free = torch.zeros(1, requires_grad=True)
        constant = torch.zeros(1)
        optimizer = torch.optim.SGD(shared.parameters())

        def ftn_pytorch_forward(x):
            return x
        """
    )
    wanted = ["shared.weight", "shared.bias", "parts.0.weight", "parts.1.deep.weight", "closure.net.weight"]
    wanted += ["closure.net.bias", "offset", "free"]
    found = called(runner, "ftn_pytorch_parameters")
    assert list(found) == wanted
    found["offset"].requires_grad_(False)
    assert list(called(runner, "ftn_pytorch_parameters")) == wanted


def test_models_without_parameters_say_so(load, fails, write):
    numpy = load("import numpy\ndef ftn_pytorch_forward(x):\n    return x\n")
    assert not program.has(numpy, "ftn_pytorch_parameters")
    with fails("HOOK", "no parameters that can be reached"):
        called(numpy, "ftn_pytorch_parameters")
    lazy = load(
        "import torch\nnet = torch.nn.LazyLinear(2)\ndef ftn_pytorch_forward(x):\n    return net(x)\n", name="l.py"
    )
    with fails("ARGUMENT", "net.weight of", "no shape before the first forward"):
        called(lazy, "ftn_pytorch_parameters")
