# SPDX-License-Identifier: MIT
"""ONNX models: runs that are prepared once per array, what is passed and returned, threads, and a missing runtime."""

import gc
import sys

import pytest

import program
from ftn_pytorch.script.conventions import FORWARD
from ftn_pytorch.system import process

numpy = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto  # noqa: E402

from onnx_models import array, forward_of, load, write  # noqa: E402

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@pytest.fixture
def model(tmp_path):
    """model(nodes, inputs, outputs): path of a model."""
    return lambda *content: write(tmp_path / "net.onnx", *content)


@pytest.fixture
def double(model):
    """2 x, of shape (batch, 3), in single precision."""
    return model([("Add", ["x", "x"], ["y"])], [("x", FLOAT, ["batch", 3])], [("y", FLOAT, ["batch", 3])])


@pytest.fixture
def two(model):
    """Sum and difference of a and b."""
    nodes = [("Add", ["a", "b"], ["sum"]), ("Sub", ["a", "b"], ["difference"])]
    inputs, outputs = [[(name, FLOAT, ["n"]) for name in names] for names in ("ab", ("sum", "difference"))]
    return model(nodes, inputs, outputs)


def prepared(runner):
    return len(runner._bindings._runs)


# ---- runs on the memory of the caller


def test_results_are_written_into_the_arrays_of_the_caller(double):
    runner = load(double)
    forward = forward_of(runner)
    x, y = numpy.ones((2, 3), "float32"), numpy.zeros((2, 3), "float32")
    results = []
    for value in range(1, 6):
        x[:] = value
        y[:] = 0
        results.append(forward(x, out=y))
        assert (y == 2 * value).all() == (results[-1] is None)
    # The first run finds out which shape the result has.
    assert (results[0][0] == 2).all()
    assert results[1:] == [None] * 4
    assert prepared(runner) == 1


def test_each_pair_of_arrays_has_a_run_of_its_own(double):
    runner = load(double)
    forward = forward_of(runner)
    xs = [numpy.full((rows, 3), rows, "float32") for rows in (1, 2, 4)]
    ys = [numpy.zeros_like(x) for x in xs]
    for _ in range(3):
        for x, y in zip(xs, ys):
            y[:] = 0
            forward(x, out=y)
    assert prepared(runner) == 3
    assert all((y == 2 * x).all() for x, y in zip(xs, ys))


def test_runs_end_with_their_arrays_and_keep_none(double):
    runner = load(double)
    forward = forward_of(runner)
    x, y = numpy.ones((2, 3), "float32"), numpy.zeros((2, 3), "float32")
    for _ in range(3):
        forward(x, out=y)
    assert sys.getrefcount(x) == 2
    assert sys.getrefcount(y) == 2
    assert prepared(runner) == 1
    del y
    assert prepared(runner) == 0
    for _ in range(100):
        forward(x, out=numpy.zeros((2, 3), "float32"))
    gc.collect()
    assert prepared(runner) == 0


def test_without_outputs_results_are_fresh(double):
    forward = forward_of(load(double))
    x = numpy.ones((2, 3), "float32")
    first = forward(x)
    x[:] = 5
    second = forward(x)
    assert (first[0] == 2).all()
    assert (second[0] == 10).all()
    assert program.unpack(second)[0] == ("y",)


def test_mode_safe_prepares_nothing(double):
    runner = load(double, mode="safe")
    forward = forward_of(runner)
    x, y = numpy.ones((2, 3), "float32"), numpy.zeros((2, 3), "float32")
    for _ in range(4):
        assert (forward(x, out=y)[0] == 2).all()
    assert prepared(runner) == 0


def test_read_only_and_strided_inputs_are_read_anew_in_each_run(double):
    forward = forward_of(load(double))
    base, y = numpy.zeros((2, 6), "float32"), numpy.zeros((2, 3), "float32")
    x = base[:, ::2]
    x.flags.writeable = False
    for value in range(1, 6):
        base[:] = value
        result = forward(x, out=y)
        assert (y == 2 * value).all() if result is None else (result[0] == 2 * value).all()
    assert result is None


@pytest.mark.parametrize("kind", ["strided", "wider", "other shape", "backwards"])
def test_outputs_that_do_not_fit_are_left_to_the_library(double, kind):
    forward = forward_of(load(double))
    x = numpy.ones((2, 3), "float32")
    out = {
        "strided": numpy.zeros((2, 6), "float32")[:, ::2],
        "wider": numpy.zeros((2, 3)),
        "other shape": numpy.zeros((3, 2), "float32"),
        "backwards": numpy.zeros((2, 3), "float32")[::-1],
    }[kind]
    for value in range(1, 5):
        x[:] = value
        result = forward(x, out=out)
        assert (result[0] == 2 * value).all()
        assert (out == 0).all()


def test_output_on_the_memory_of_the_input_is_not_written_too_early(model):
    nodes = [("MatMul", ["x", "x"], ["y"])]
    forward = forward_of(load(model(nodes, [("x", FLOAT, ["n", "n"])], [("y", FLOAT, ["n", "n"])])))
    start = numpy.arange(64, dtype="float32").reshape(8, 8) / 64
    for _ in range(4):
        x = start.copy()
        expected = x @ x
        for _ in range(3):
            assert numpy.allclose(forward(x, out=x)[0], expected)


def test_empty_batch_runs(double):
    forward = forward_of(load(double))
    x, y = numpy.zeros((0, 3), "float32"), numpy.zeros((0, 3), "float32")
    for _ in range(3):
        assert forward(x, out=y)[0].shape == (0, 3)


def test_shapes_that_depend_on_the_data_are_found_in_each_run(model):
    path = model([("NonZero", ["x"], ["places"])], [("x", FLOAT, ["n"])], [("places", INT64, [1, None])])
    forward = forward_of(load(path))
    x, y = array(1, 0, 2), numpy.zeros((1, 2), "int64")
    for _ in range(3):
        result = forward(x, out=y)
    assert result is None
    assert y.tolist() == [[0, 2]]
    x[1] = 3
    assert forward(x, out=y)[0].tolist() == [[0, 1, 2]]
    x[:] = [0, 5, 6]
    assert forward(x, out=y) is None
    assert y.tolist() == [[1, 2]]


# ---- several inputs and outputs


def test_several_outputs_are_written_by_place_or_by_name(two):
    forward = forward_of(load(two))
    a, b, low, high = array(3, 4), array(1, 2), array(0, 0), array(0, 0)
    for _ in range(3):
        by_place = forward(a, b, out=[high, low])
    assert by_place is None
    assert (high.tolist(), low.tolist()) == ([4, 6], [2, 2])
    for _ in range(3):
        by_name = forward(b=b, a=a, out={"difference": high, "sum": low})
    assert by_name is None
    assert (low.tolist(), high.tolist()) == ([4, 6], [2, 2])


def test_some_of_the_outputs_may_be_asked_for_by_name(two):
    forward = forward_of(load(two))
    a, b, one, two_wide = array(3, 4), array(1, 2), array(0, 0), array(0, 0, dtype="float64")
    for _ in range(3):
        result = forward(a, b, out={"difference": one})
    assert one.tolist() == [2, 2]
    for _ in range(3):
        names, values = program.unpack(forward(a, b, out=[one, two_wide]))
    assert names == ("sum", "difference")
    assert [value.tolist() for value in values] == [[4, 6], [2, 2]]
    assert result is not None


def test_outputs_of_unknown_names_or_of_another_number_are_left_to_the_library(two):
    forward = forward_of(load(two))
    a, b = array(3, 4), array(1, 2)
    for _ in range(3):
        assert len(forward(a, b, out={"sum": array(0, 0), "product": array(0, 0)})) == 2
        assert len(forward(a, b, out=[array(0, 0)] * 3)) == 2


def test_swapped_inputs_are_not_taken_for_each_other(two):
    forward = forward_of(load(two))
    a, b, low, high = array(3, 4), array(1, 2), array(0, 0), array(0, 0)
    for _ in range(3):
        forward(a, b, out=[high, low])
        forward(b, a, out=[high, low])
    assert low.tolist() == [-2, -2]
    forward(a=b, b=a, out=[high, low])
    forward(a=a, b=b, out=[high, low])
    forward(a=a, b=b, out=[high, low])
    assert low.tolist() == [2, 2]


def test_names_may_be_none_that_python_has(model):
    path = model([("Neg", ["input.1"], ["a/b:0"])], [("input.1", FLOAT, [2])], [("a/b:0", FLOAT, [2])])
    forward = forward_of(load(path))
    names, values = program.unpack(forward(**{"input.1": array(1, 2)}))
    assert names == ("a/b:0",)
    assert values[0].tolist() == [-1, -2]


def test_input_called_out_is_an_input(model):
    path = model([("Neg", ["out"], ["y"])], [("out", FLOAT, [2])], [("y", FLOAT, [2])])
    runner = load(path)
    function, _, has_out, _ = program.bind(runner, FORWARD)
    assert not has_out
    assert function(array(1, 2))[0].tolist() == [-1, -2]


def test_numbers_are_inputs_without_axes(model):
    inputs = [("x", FLOAT, ["n"]), ("factor", FLOAT, []), ("on", BOOL, []), ("n", FLOAT, [])]
    nodes = [
        ("Mul", ["x", "factor"], ["scaled"]),
        ("Where", ["on", "scaled", "x"], ["chosen"]),
        ("Add", ["chosen", "n"], ["y"]),
    ]
    forward = forward_of(load(model(nodes, inputs, [("y", FLOAT, ["n_elements"])])))
    x, y = array(1, 2), array(0, 0)
    for factor in (2.0, 3.0, 3.0):
        assert forward(x, factor, True, 1, out=y)[0].tolist() == [factor + 1, 2 * factor + 1]
    assert forward(x, 2.0, False, n=5)[0].tolist() == [6, 7]


@pytest.mark.parametrize("value", [1.5, "text", 1j])
def test_number_of_another_kind_is_refused(model, fails, value):
    path = model([("Neg", ["n"], ["y"])], [("n", INT64, [])], [("y", INT64, [])])
    with fails("DTYPE", "n is", "int64"):
        forward_of(load(path))(value)


def test_number_for_an_array_is_refused(double, fails):
    with fails("SHAPE", "axes"):
        forward_of(load(double))(1.0)


# ---- conversion


def test_dtype_converts_real_inputs_into_buffers_that_stay(double):
    runner = load(double, dtype="float32")
    assert runner.dtype == "keep"
    forward = forward_of(runner)
    x, y = numpy.ones((2, 3)), numpy.zeros((2, 3), "float32")
    for value in range(1, 6):
        x[:] = value
        result = forward(x, out=y)
        assert (y == 2 * value).all() if result is None else (result[0] == 2 * value).all()
    assert result is None


def test_other_precision_is_refused_with_what_to_do(double, fails):
    forward = forward_of(load(double))
    with fails("DTYPE", "float64", "float32", 'dtype="float32"'):
        forward(numpy.ones((2, 3)))


# ---- threads, runtime, files


def test_number_of_threads_is_that_of_the_library(double, monkeypatch):
    def threads(runner):
        return runner._bindings._session.get_session_options().intra_op_num_threads

    monkeypatch.setenv("OMP_NUM_THREADS", "3,1")
    runner = load(double)
    assert threads(runner) == 3
    forward = forward_of(runner)
    x, y = numpy.ones((2, 3), "float32"), numpy.zeros((2, 3), "float32")
    for _ in range(3):
        forward(x, out=y)
    program.set_threads(2)
    assert threads(runner) == 2
    x[:] = 4
    for _ in range(3):
        forward(x, out=y)
    assert (y == 8).all()
    assert threads(load(double)) == 2


def test_without_a_wish_the_cores_are_shared_among_the_ranks_of_a_node(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(process, "cores", lambda: 8)
    monkeypatch.delenv("OMPI_COMM_WORLD_LOCAL_SIZE", raising=False)
    assert process.threads() == 8
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4")
    assert process.threads() == 2
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "40")
    assert process.threads() == 1


def test_change_of_threads_that_fails_is_warned_of(double, tmp_path):
    runner = load(double)
    forward = forward_of(runner)
    (tmp_path / "net.onnx").write_bytes(b"")
    with pytest.warns(process.FtnPytorchWarning, match="old number of threads"):
        program.set_threads(2)
    assert (forward(numpy.ones((2, 3), "float32"))[0] == 2).all()


def test_missing_runtime_is_told_with_what_to_install(double, monkeypatch, fails):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with fails("IMPORT", "onnxruntime", f"{sys.executable} -m pip install onnxruntime"):
        load(double)


def test_torch_is_not_imported(double, python):
    code = """
        import sys, numpy, program
        runner = program.load_model(sys.argv[1])
        program.set_threads(1)
        forward = program.function(runner, "ftn_pytorch_forward")
        x = numpy.ones((2, 3), "float32")
        print(runner.framework, program.unpack(forward(x))[1][0].sum(), "torch" in sys.modules)
    """
    assert python(code, double).split() == ["numpy", "12.0", "False"]


def test_operator_that_the_runtime_does_not_know_is_told(model, fails):
    path = model([("Mystery", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])])
    with fails("FORMAT", "Mystery", "ONNX Runtime"):
        load(path)


@pytest.mark.parametrize("dtype", [TensorProto.STRING, TensorProto.COMPLEX64])
def test_types_that_cannot_cross_are_refused_at_load(model, fails, dtype):
    path = model([("Identity", ["x"], ["y"])], [("x", dtype, [2])], [("y", dtype, [2])])
    with fails("FORMAT", "net.onnx"):
        load(path)


def test_unknown_device_is_refused(double, fails):
    assert load(double, device="cpu").device is None
    with fails("DEVICE", "'tpu'", '"cuda:1"'):
        load(double, device="tpu")
