# SPDX-License-Identifier: MIT
"""Inputs of ONNX models: types that Fortran lacks, and names of sizes."""

import pytest

numpy = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

from onnx_models import array, forward_of, load, write  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


@pytest.fixture
def model(tmp_path):
    """model(nodes, inputs, outputs): path of a model."""
    return lambda *content: write(tmp_path / "net.onnx", *content)


@pytest.fixture
def two(model):
    """Sum of a and b."""
    return model([("Add", ["a", "b"], ["sum"])], [(name, FLOAT, ["n"]) for name in "ab"], [("sum", FLOAT, ["n"])])


@pytest.mark.parametrize(
    ("type_", "dtype", "given", "most"),
    [
        (TensorProto.UINT8, "uint8", "int16", 255),
        (TensorProto.UINT8, "uint8", "int32", 255),
        (TensorProto.UINT16, "uint16", "int32", 65535),
        (TensorProto.UINT32, "uint32", "int64", 2**32 - 1),
        (TensorProto.FLOAT16, "float16", "float32", 65504),
        (TensorProto.FLOAT16, "float16", "float64", 65504),
    ],
)
@pytest.mark.parametrize("strided", [False, True])
def test_types_that_fortran_lacks_are_made_of_those_that_it_has(model, fails, type_, dtype, given, most, strided):
    path = model([("Cast", ["x"], ["y"])], [("x", type_, ["n"])], [("y", TensorProto.DOUBLE, ["n"])])
    content = onnx.load(path)
    content.graph.node[0].attribute.append(helper.make_attribute("to", TensorProto.DOUBLE))
    onnx.save(content, path)
    runner = load(path, dtype="float32")
    forward = forward_of(runner)
    x, y = numpy.zeros(6, given)[:: 2 if strided else 1][:3], numpy.zeros(3)
    for value in (1, 2, 3, most, 4):
        x[:] = [0, 1, value]
        result = forward(x, out=y)
        assert (y if result is None else result[0]).tolist() == [0, 1, value]
    assert result is None
    for wrong in (2 * most + 2, -1) if given.startswith("int") else (2.0 * most,):
        x[1] = wrong
        with fails("DTYPE", "x holds", dtype):
            forward(x, out=y)
    x[1] = numpy.inf if given.startswith("float") else 5
    assert forward(x, out=y) is None
    assert y[1] == x[1]


def test_advice_for_a_type_that_fortran_lacks_can_be_followed(model, fails):
    pixels = forward_of(load(model([("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT16, [2])], [("y", 10, [2])])))
    with fails("DTYPE", "int32", "expects float16", "pass a real array"):
        pixels(array(1, 2, dtype="int32"))
    assert pixels(array(1, 2))[0].tolist() == [-1, -2]
    with fails("DTYPE", "x holds 300", "uint8"):
        path = model([("Identity", ["x"], ["y"])], [("x", TensorProto.UINT8, [])], [("y", TensorProto.UINT8, [])])
        forward_of(load(path))(300)


# ---- names of sizes


def test_names_of_sizes_explain_what_the_runtime_refuses(two, fails):
    with fails("SHAPE", "n is 3 on axis 0, but 2 on axis 0 of a", "layout"):
        forward_of(load(two))(array(1, 2), array(1, 2, 3))


def test_names_of_sizes_refuse_nothing_that_the_runtime_takes(model):
    path = model([("Shape", ["x"], ["y"])], [("x", FLOAT, ["?", "?"])], [("y", INT64, ["?"])])
    forward = forward_of(load(path))
    for shape in ((2, 3), (4, 1)):
        x, y = numpy.zeros(shape, "float32"), numpy.zeros(2, "int64")
        for _ in range(3):
            result = forward(x, out=y)
        assert result is None
        assert y.tolist() == list(shape)
    broadcast = model([("Add", ["a", "b"], ["y"])], [("a", FLOAT, ["n"]), ("b", FLOAT, ["n"])], [("y", FLOAT, ["n"])])
    assert forward_of(load(broadcast))(array(1), array(1, 2))[0].tolist() == [2, 3]


def test_size_without_a_name_of_its_own_may_depend_on_the_data(model):
    path = model([("NonZero", ["x"], ["places"])], [("x", FLOAT, ["?"])], [("places", INT64, [1, "?"])])
    forward = forward_of(load(path))
    x, y = array(1, 0, 2), numpy.zeros((1, 2), "int64")
    for _ in range(3):
        forward(x, out=y)
    x[1] = 3
    assert forward(x, out=y)[0].tolist() == [[0, 1, 2]]
