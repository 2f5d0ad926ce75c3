# SPDX-License-Identifier: MIT
"""The functions of torch by name: where they are looked for, what becomes of arguments, and what is refused."""

import pytest

import program

torch = pytest.importorskip("torch")


@pytest.fixture
def runner():
    return program.torch_functions(0)


@pytest.fixture
def call(runner):
    """call(name, *args, **named): what a program gets."""
    return lambda name, *args, **named: runner.bind(name, 0)[0](*args, **named)


X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("exp", torch.exp),
        ("torch.exp", torch.exp),
        ("plain.exp", torch.exp),
        ("nn.functional.relu", torch.nn.functional.relu),
        ("special.expit", torch.special.expit),
        ("linalg.norm", torch.linalg.norm),
        ("Tensor.clone", torch.Tensor.clone),
        ("numpy", torch.Tensor.numpy),
        ("fft.fft", torch.fft.fft),
    ],
)
def test_names_are_looked_up_below_torch_and_then_among_methods(runner, name, function):
    assert runner.find(name) is function


def test_folders_that_torch_does_not_import_are_imported(runner):
    assert runner.find("distributions.kl.kl_divergence") is not None


@pytest.mark.parametrize("name", ["", "sofmax", "pi", "float32", "nn.nothing", "no.such.folder", "fortran.nothing"])
def test_what_is_no_function_is_refused(runner, fails, name):
    assert runner.find(name) is None
    with fails("HOOK", f"torch has no function {name}, and its tensors no method of that name"):
        runner.require(name)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("sofmax", "softmax"),
        ("clam_", "clamp_"),
        ("nn.functional.rleu", "relu"),
        ("torch.expp", "exp"),
        ("Tensor.sumn", "sum"),
    ],
)
def test_the_nearest_function_is_proposed(runner, fails, name, near):
    with fails("HOOK", f"did you mean '{near}'?"):
        runner.require(name)


def test_what_is_no_function_is_not_proposed(runner):
    with pytest.raises(Exception, match="no method of that name$"):
        runner.require("pi")


def test_integers_become_tuples_only_where_tensors_are_refused(call):
    pair = torch.tensor([3, 2], dtype=torch.int32)
    assert call("zeros", pair).shape == (3, 2)
    assert call("reshape", X, pair).shape == (3, 2)
    assert call("sum", X, dim=torch.tensor([0, 1])).shape == ()
    assert call("nn.functional.pad", X, torch.tensor([1, 1])).shape == (2, 5)
    assert call("add", torch.tensor([1, 2]), torch.tensor([3, 4])).tolist() == [4, 6]
    with pytest.raises(TypeError):
        call("zeros", torch.tensor([3.0, 2.0]))
    with pytest.raises(TypeError):
        call("zeros", torch.tensor([[3, 2]]))


def test_types_are_passed_by_name(call, fails):
    assert call("sum", X, dtype="float64").dtype == torch.float64
    assert call("Tensor.to", X, dtype="torch.int32").dtype == torch.int32
    with fails("ARGUMENT", "did you mean 'float64'?"):
        call("zeros", 3, dtype="flaot64")


def test_exceptions_of_torch_have_its_text_and_no_frames_of_this_package(call):
    with pytest.raises(RuntimeError) as caught:
        call("add", X, torch.ones(7))
    of_the_package = caught.value.__traceback__.tb_next.tb_next  # without the frames of this test
    status, text = program.describe_error(caught.value.with_traceback(of_the_package), "add of torch")
    assert status == "PYTHON"
    assert text == f"add of torch: RuntimeError: {caught.value}"
    with pytest.raises(ValueError) as caught:
        call("nn.functional.binary_cross_entropy", X, torch.ones(7))
    text = program.describe_error(caught.value, "")[1]
    assert "functional.py" in text and "def _call" not in text and "in _call" not in text


def test_there_is_nothing_to_keep(runner, fails):
    with fails("HOOK", "torch has no state to save"):
        runner.save("x.pt")
    with fails("HOOK", "torch has no state to save"):
        runner.checkpoint("x", 1, None)
    with fails("HOOK", "torch has no state to restore"):
        runner.restore("x")
    with fails("HOOK", "torch is not reloaded"):
        runner.reload()
    assert runner.functions() == []


def test_arguments_are_described_by_number(runner):
    text = program.describe_arguments(runner, "add", (X, 2), {"alpha": 3}, "RuntimeError: size")
    assert text.splitlines()[:4] == [
        "It was called with",
        "  argument 1: float32 (2, 3), Fortran (3, 2)",
        "  argument 2: 2",
        "  alpha: 3",
    ]
