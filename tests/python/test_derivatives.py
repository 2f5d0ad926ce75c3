# SPDX-License-Identifier: MIT
"""Tangents, adjoints and Jacobians: of scripts, of saved models, and what cannot be differentiated."""

import pytest

import program
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.tensors import derivatives


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def net(torch):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()


def save_torchscript(torch, net, x, path):
    torch.jit.trace(net, x).save(path)


def save_scripted(torch, net, x, path):
    torch.jit.script(net).save(path)


def save_exported(torch, net, x, path):
    torch.export.save(torch.export.export(net, (x,)), path)


def derivative(runner, name, *args, **named):
    function = program.function(runner, name)
    program.first_call(runner, name, args, named)
    return function(*args, **named)


def runner_of(tmp_path, source, **options):
    path = tmp_path / "model.py"
    path.write_text(source)
    return program.load(str(path), **options)


@pytest.mark.parametrize(("save", "ending"), [(save_torchscript, "pt"), (save_scripted, "pt"), (save_exported, "pt2")])
def test_saved_models_have_tangents_and_adjoints(torch, net, tmp_path, save, ending):
    x, dx, dy = torch.rand(1, 4).double(), torch.rand(1, 4).double(), torch.rand(1, 3).double()
    path = tmp_path / f"net.{ending}"
    save(torch, net, x, str(path))
    runner = program.load_model(str(path))
    for _ in range(3):  # torch.jit rewrites what runs often
        (gradient,) = derivative(runner, "ftn_pytorch_adjoint:1:ftn_pytorch_forward", dy, x)
    for _ in range(3):
        (tangent,) = derivative(runner, "ftn_pytorch_tangent:1:ftn_pytorch_forward", dx, x)
        (gradient,) = derivative(runner, "ftn_pytorch_adjoint:1:ftn_pytorch_forward", dy, x)
    assert torch.allclose(tangent, torch.func.jvp(net, (x,), (dx,))[1], rtol=1e-13)
    assert torch.allclose((tangent * dy).sum(), (gradient * dx).sum(), rtol=1e-12)
    jacobian = derivative(runner, "ftn_pytorch_jacobian:0:ftn_pytorch_forward", x)
    assert torch.allclose(jacobian, torch.func.jacrev(net)(x))


def test_a_model_of_onnx_has_none(torch, tmp_path):
    pytest.importorskip("onnxruntime")
    onnx_models = pytest.importorskip("onnx_models")
    ends = [("x", 1, [2])], [("y", 1, [2])]
    runner = onnx_models.load(onnx_models.write(tmp_path / "net.onnx", [("Neg", ["x"], ["y"])], *ends))
    for what in ("adjoint", "tangent"):
        with pytest.raises(FtnPytorchError, match="cannot be differentiated"):
            derivative(runner, f"ftn_pytorch_{what}:1:ftn_pytorch_forward", torch.ones(2), torch.ones(2))


@pytest.mark.parametrize(
    "decorator", ["torch.inference_mode()", "torch.no_grad()", "torch.no_grad", "torch.enable_grad()"]
)
def test_modes_of_decorators_are_passed_over(torch, tmp_path, decorator):
    runner = runner_of(tmp_path, f"import torch\n@{decorator}\ndef f(x): return x ** 2\n")
    x, one = torch.tensor([1.0, 2.0]), torch.ones(2)
    assert torch.equal(derivative(runner, "ftn_pytorch_adjoint:1:f", one, x)[0], 2 * x)
    assert torch.equal(derivative(runner, "ftn_pytorch_tangent:1:f", one, x)[0], 2 * x)


def test_no_grad_inside_keeps_tangents_and_no_adjoint(torch, tmp_path):
    runner = runner_of(tmp_path, "import torch\ndef f(x):\n    with torch.no_grad(): return x ** 2\n")
    x, one = torch.tensor([1.0, 2.0]), torch.ones(2)
    assert torch.equal(derivative(runner, "ftn_pytorch_tangent:1:f", one, x)[0], 2 * x)
    with pytest.raises(FtnPytorchError, match="no_grad"):
        derivative(runner, "ftn_pytorch_adjoint:1:f", one, x)


def test_a_caller_without_gradients_gets_them_all_the_same(torch, tmp_path):
    runner = runner_of(tmp_path, "def f(x): return x ** 2\n")
    x, one = torch.tensor([1.0, 2.0]), torch.ones(2)
    with torch.inference_mode():
        assert torch.equal(derivative(runner, "ftn_pytorch_adjoint:1:f", one, x)[0], 2 * x)
        assert torch.equal(derivative(runner, "ftn_pytorch_tangent:1:f", one, x)[0], 2 * x)


def test_results_that_do_not_depend_have_zeros(torch, tmp_path):
    runner = runner_of(tmp_path, "def f(x, y): return x * 2, y.new_ones(3), y\n")
    x, y = torch.ones(2), torch.ones(3)
    first, second, third = derivative(runner, "ftn_pytorch_tangent:2:f", x, y, x, y)
    assert torch.equal(first, 2 * x) and torch.equal(second, torch.zeros(3)) and torch.equal(third, y)
    of_x, of_y = derivative(runner, "ftn_pytorch_adjoint:3:f", x, y, 0 * y, x, y)
    assert torch.equal(of_x, 2 * x) and torch.equal(of_y, torch.zeros(3))


def test_complex_inputs(torch, tmp_path):
    runner = runner_of(tmp_path, "def f(z): return z * z\n")
    z, dz = torch.tensor([1 + 2j]), torch.tensor([0.5j])
    assert torch.equal(derivative(runner, "ftn_pytorch_tangent:1:f", dz, z)[0], 2 * z * dz)


def test_inputs_keep_their_values_and_have_no_gradient_afterwards(torch, net, tmp_path):
    runner = runner_of(tmp_path, "def f(x, *, scale): return x * scale\n")
    x, one = torch.tensor([1.0, 2.0]), torch.ones(2)
    derivative(runner, "ftn_pytorch_adjoint:1:f", one, x, scale=torch.tensor(3.0))
    assert x.grad is None and not x.requires_grad


def test_functions_that_work_in_place_change_only_what_is_theirs(torch, tmp_path):
    runner = runner_of(tmp_path, "def f(x): return x.mul_(2) ** 2\n")
    x, direction = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    for kind in ("tangent", "adjoint"):
        (found,) = derivative(runner, f"ftn_pytorch_{kind}:1:f", direction, x)
        assert torch.equal(found, torch.tensor([24.0, 80.0]))
        assert x.tolist() == [1, 2] and direction.tolist() == [3, 5]


@pytest.mark.parametrize(("kind", "count"), [("tangent", 1), ("adjoint", 1), ("jacobian", 0)])
def test_results_of_parameters_alone_are_refused(torch, tmp_path, kind, count):
    source = "import torch\nw = torch.ones(2, requires_grad=True)\ndef f(x): return w * x.detach()\n"
    runner = runner_of(tmp_path, source)
    with pytest.raises(FtnPytorchError, match=r"detach\(\)"):
        derivative(runner, f"ftn_pytorch_{kind}:{count}:f", *count * [torch.ones(2)], torch.ones(2))


def test_an_adjoint_without_real_inputs_is_refused(torch, tmp_path):
    runner = runner_of(tmp_path, "import torch\nw = torch.ones(2, requires_grad=True)\ndef f(n): return w * n\n")
    with pytest.raises(FtnPytorchError, match="depends on its inputs"):
        derivative(runner, "ftn_pytorch_adjoint:1:f", torch.ones(2), torch.tensor([1, 2]))


def test_jacobian_of_a_result_that_is_not_contiguous(torch, tmp_path):
    runner = runner_of(tmp_path, "def f(x): return (x * x).T\n")
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = derivative(runner, "ftn_pytorch_jacobian:0:f", x)
    assert torch.equal(found, torch.func.jacrev(lambda x: (x * x).T)(x))


@pytest.mark.parametrize("result", ["x * x", "x.abs()", "x.real * 1j"])
def test_a_complex_jacobian_is_refused(torch, tmp_path, result):
    runner = runner_of(tmp_path, f"def f(x): return {result}\n")
    with pytest.raises(FtnPytorchError, match="f is complex"):
        derivative(runner, "ftn_pytorch_jacobian:0:f", torch.tensor([1 + 2j]))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ftn_pytorch_tangent:2:f", ("tangent", 2, "f")),
        ("ftn_pytorch_adjoint:1:a:b", ("adjoint", 1, "a:b")),
        ("ftn_pytorch_forward", None),
        ("ftn_pytorch_tangent:x:f", None),
        ("ftn_pytorch_hessian:1:f", None),
        ("tangent:1:f", None),
    ],
)
def test_names(name, wanted):
    assert derivatives.parse(name) == wanted
