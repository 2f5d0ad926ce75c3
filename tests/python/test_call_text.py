# SPDX-License-Identifier: MIT
"""What stands at the end of the text about an exception: the arguments, as the script and as Fortran see them."""

import pytest

import program

numpy = pytest.importorskip("numpy")

TEXT = """
import numpy
def ftn_pytorch_forward(x, n=1): pass
def several(*arrays, target=None, **others): pass
def listed(inputs): pass
"""


def lines(runner, name, args, kwargs=None, failure="ValueError: no"):
    return program.describe_arguments(runner, name, args, kwargs or {}, failure).splitlines()


def array(*shape, dtype="float32"):
    return numpy.zeros(shape, dtype)


def test_arrays_have_both_shapes_and_their_parameters(load):
    runner = load(TEXT)
    assert lines(runner, "ftn_pytorch_forward", (array(3, 10), 5)) == [
        "It was called with",
        "  x: float32 (3, 10), Fortran (10, 3)",
        "  n: 5",
    ]
    assert lines(runner, "ftn_pytorch_forward", (array(3),))[1:] == ["  x: float32 (3,)"]
    assert lines(runner, "ftn_pytorch_forward", ("x" * 99,))[1] == "  x: str '" + "x" * 56 + "..."


def test_lists_and_further_names_are_written_out(load):
    runner = load(TEXT)
    found = lines(runner, "several", (array(2, 1), array(4, dtype="int8")), {"target": array(2), "y": True})
    assert found[1:] == [
        "  arrays[0]: float32 (2, 1), Fortran (1, 2)",
        "  arrays[1]: int8 (4,)",
        "  target: float32 (2,)",
        "  y: True",
    ]
    assert lines(runner, "listed", ([array(1), array(2)],))[1:] == [
        "  inputs[0]: float32 (1,)",
        "  inputs[1]: float32 (2,)",
    ]


def test_call_that_does_not_fit_the_signature_is_described_by_position(load):
    assert lines(load(TEXT), "listed", (1, array(2, 3)))[1:] == [
        "  argument 1: 1",
        "  argument 2: float32 (2, 3), Fortran (3, 2)",
    ]
    assert lines(load(TEXT), "listed", ()) == []


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x10 and 3x1)", True),
        ("ValueError: operands could not be broadcast together", True),
        ("IndexError: index 5 is out of bounds for dimension 0 with size 3", True),
        ("ValueError: too dry", False),
    ],
)
def test_failures_about_shapes_name_the_option(load, failure, told):
    assert ('layout="same"' in lines(load(TEXT), "listed", (array(3, 10),), failure=failure)[-1]) is told
    assert 'layout="same"' not in lines(load(TEXT), "listed", (array(10),), failure=failure)[-1]


FLOATS = 'x is float64, real(8) in Fortran: convert real arrays on their way in with load(..., dtype="float32").'


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("net(x)", FLOATS),
        ("torch.nn.Conv1d(4, 2, 1)(x)", FLOATS),
        ("torch.nn.LSTM(3, 2)(x)", FLOATS),
        ("torch.nn.LayerNorm(3)(x)", FLOATS),
        ("net(x.float()[:, :1])", None),
        ("net.double()(n)", FLOATS.replace("x is float64, real(8)", "n is float32, real(4)").replace('32"', '64"')),
    ],
)
def test_failures_about_precision_name_the_option(load, call, told):
    """The commonest mistake: real(8) of a model for a network of single precision."""
    torch = pytest.importorskip("torch")
    double, single = torch.ones(4, 3, dtype=torch.float64), torch.ones(4, 3)
    arguments = {"n": single} if "(n)" in call else {"x": double}
    runner = load(f"import torch\nnet = torch.nn.Linear(3, 2)\ndef f(x=None, n=None): return {call}\n")
    with pytest.raises((RuntimeError, ValueError)) as caught:
        program.call(runner, "f", **arguments)
    _, failure = program.describe_error(caught.value, "")
    last = lines(runner, "f", (), arguments, failure)[-1]
    assert last == told if told else "dtype=" not in last


def test_nothing_is_reversed_with_the_same_layout(load):
    runner = load(TEXT, layout="same")
    assert lines(runner, "listed", (array(3, 10),), failure="shape")[1:] == ["  inputs: float32 (3, 10)"]


def test_setup_tells_its_configuration(load, fails):
    with fails("SCRIPT", "KeyError", "It was called with\n  size: 3\n  mean: float32 (2, 3), Fortran (3, 2)"):
        load("def ftn_pytorch_setup(size, mean): {}[size]\n", {"size": 3, "mean": array(2, 3)})
