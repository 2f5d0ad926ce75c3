# SPDX-License-Identifier: MIT
# ruff: noqa: E402
"""Models in a Triton server, played by triton_double: what they answer, and what is told when they do not."""

import contextlib
import dataclasses
import gc
import socket
import threading
import time
from concurrent import futures

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("tritonclient.grpc")

import program
from ftn_pytorch.diagnosis import call_recorder
from ftn_pytorch.runners.models import triton
from ftn_pytorch.runners.models.triton_client import Address
from ftn_pytorch.system.process import FtnPytorchWarning
from triton_double import serve

X = np.random.default_rng(0).standard_normal((6, 3)).astype("float32")
Y = np.tanh(X).sum(1, keepdims=True)


@pytest.fixture
def double(recwarn):
    server, double, port = serve()
    double.server, double.port = server, port
    yield double
    double.may_answer.set()
    double.server.stop(None).wait()
    gc.collect()  # models that fell back tell how often


def opened(double, model="net", query="", **options):
    return program.load_model(f"triton+grpc://127.0.0.1:{double.port}/{model}{query}", **options)


def impatient(runner):
    """It gives each request 0.2 s from now on: to open it took as long as it did."""
    runner._client.address = dataclasses.replace(runner._client.address, timeout=0.2)
    return runner


def forward(runner, *args, **named):
    """With arrays as the library passes them."""
    if runner.framework == "torch":
        import torch

        args, named = map(torch.from_numpy, args), {name: torch.from_numpy(each) for name, each in named.items()}
    return program.call(runner, "ftn_pytorch_forward", *args, **named)


def test_a_model_answers_by_position_and_by_name(double):
    runner = opened(double)
    assert (runner.name, runner.backend) == ("net", "triton")
    np.testing.assert_array_equal(forward(runner, X), Y)
    np.testing.assert_array_equal(forward(runner, x=X[:2]), Y[:2])
    two = opened(double, "two")
    total, difference = forward(two, X[0], b=X[1])
    np.testing.assert_array_equal(total, X[0] + X[1])
    np.testing.assert_array_equal(difference, X[0] - X[1])
    assert program.unpack(forward(two, X[0], X[1]))[0] == ("total", "difference")


def test_a_version_and_other_layouts_are_sent_as_they_are(double):
    runner = opened(double, "net/3")
    np.testing.assert_array_equal(forward(runner, np.asfortranarray(X)), Y)


def test_batches_are_sent_in_parts_that_the_model_takes(double):
    runner = opened(double, "batches")
    x = np.random.default_rng(1).standard_normal((10, 3)).astype("float32")
    np.testing.assert_array_equal(forward(runner, x), np.tanh(x).sum(1, keepdims=True))
    assert [request["x"] for request in double.requests] == [(4, 3), (4, 3), (2, 3)]
    forward(runner, x[:4])
    assert double.requests[-1]["x"] == (4, 3)


def test_real_arrays_are_cast_if_asked(double, fails):
    np.testing.assert_array_equal(forward(opened(double, dtype="float32"), X.astype("float64")), Y)
    with fails("DTYPE", "x is an array of float64, the model expects float32", 'dtype="float32"'):
        forward(opened(double), X.astype("float64"))


def test_inputs_that_do_not_fit(double, fails):
    runner = opened(double)
    with fails("SHAPE", "forward of net: x has shape (6, 2)"):
        forward(runner, X[:, :2])
    with fails("SIGNATURE", "forward of net has no input 'z'; it has 1 input: x"):
        forward(runner, z=X)
    with fails("PYTHON", "refuses the request: numbers are too large"):
        forward(runner, X + 1e7)


@pytest.mark.parametrize(
    "address",
    [
        "triton+grpc://localhost/net",
        "triton+grpc://localhost:8001",
        "triton+grpc://localhost:8001/net/new",
        "triton+grpc://localhost:8001/net?timeout=0",
        "triton+grpc://localhost:8001/net?timeout=soon",
        "triton+grpc://localhost:8001/net?retries=1.5",
        "triton+grpc://localhost:8001/net?tries=1",
        "triton+http://localhost:8000/net",
        "triton://localhost:8001/net",
    ],
)
def test_addresses_that_are_none(address, fails):
    with fails("ARGUMENT", address, "triton+grpc://HOST:PORT/MODEL"):
        program.load_model(address)


def test_parts_of_an_address():
    address = Address.parse("triton+grpc://node7:8001/net/2?timeout=0.5&retries=0")
    assert address == Address("node7:8001", "net", "2", 0.5, 0)
    assert str(address) == "triton+grpc://node7:8001/net/2"


def test_options_that_a_server_cannot_follow(double, fails, write):
    for options, text in (
        ({"device": "cuda"}, "leave out device="),
        ({"compile": "default"}, "leave out compile="),
        ({"training": True}, "leave out training="),
        ({"record": True}, "leave out record="),
        ({"background": True}, "leave out background="),
    ):
        with fails("ARGUMENT", text):
            opened(double, **options)
    with fails("ARGUMENT", "takes no config (a)"):
        program.load_model(f"triton+grpc://127.0.0.1:{double.port}/net", {"a": np.zeros(1)})
    with fails("ARGUMENT", "is a file and no address of a server: leave out fallback="):
        program.load(write("script.py", "def ftn_pytorch_forward(x): return x"), fallback="net.pt")
    runner = opened(double)
    with fails("HOOK", "a model in a Triton server"):
        program.save(runner, "net.pt")


def test_tritonclient_that_is_missing(double, monkeypatch, fails):
    monkeypatch.setitem(__import__("sys").modules, "tritonclient", None)
    with fails("IMPORT", "python -m pip install 'tritonclient[grpc]'"):
        opened(double)


def test_models_that_are_not_there(double, fails):
    with fails("FILE", "no such model that is ready", "'other'"):
        opened(double, "other")
    double.is_ready = False
    with fails("FILE", "no such model that is ready", "not ready"):
        opened(double)
    with fails("FORMAT", "its input 'x' is of type BYTES"):
        double.is_ready = True
        opened(double, "texts")


@contextlib.contextmanager
def listening(answer):
    """The port of a server that speaks no gRPC."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    held.append(connection)
                    if answer:
                        connection.sendall(answer)

        held = []
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        for connection in held:
            connection.close()


def test_servers_of_other_protocols(fails):
    with (
        listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port,
        fails("PYTHON", "no Triton server that can be reached"),
    ):
        program.load_model(f"triton+grpc://127.0.0.1:{port}/net?timeout=60")
    with listening(b"") as port, fails("PYTHON", "0.3 s"):
        program.load_model(f"triton+grpc://127.0.0.1:{port}/net?timeout=0.3")
    empty = grpc.server(futures.ThreadPoolExecutor(1))
    port = empty.add_insecure_port("127.0.0.1:0")
    empty.start()
    with fails("FORMAT", "not the protocol of Triton"):
        program.load_model(f"triton+grpc://127.0.0.1:{port}/net")
    empty.stop(None)


def test_no_server_at_all(fails):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with fails("PYTHON", "no Triton server that can be reached, in 3 attempts"):
        program.load_model(f"triton+grpc://127.0.0.1:{port}/net?retries=2")


@pytest.mark.parametrize(
    ("garbage", "text"),
    [
        ("type", "y is float64 of shape (6, 1), and should be y: float32"),
        ("shape", "y is float32 of shape (5, 1)"),
        ("name", "it has no y"),
        ("bytes", "y cannot be read"),
    ],
)
def test_answers_that_are_not_what_the_model_promises(double, garbage, text, fails):
    runner = opened(double, "batches" if garbage == "shape" else "net")
    double.garbage = garbage
    x = X[:4] if garbage == "shape" else X
    with fails("FORMAT", "is not what the model promises", text.replace("(5, 1)", "(3, 1)")):
        forward(runner, x)
    double.garbage = ""
    np.testing.assert_array_equal(forward(runner, x), Y[: len(x)])


def test_a_server_that_is_slow_or_fails(double, fails):
    runner = opened(double)
    double.may_answer.clear()
    with fails("PYTHON", "has not answered within 0.2 s"):
        forward(impatient(runner), X)
    assert double.asked <= 1, "and no second attempt"
    double.may_answer.set()
    double.garbage = "failure"
    with fails("PYTHON", "has failed (INTERNAL): the model raised an exception"):
        forward(opened(double), X)


def test_threads_share_a_connection(double):
    runner = opened(double)
    function = program.function(runner, "ftn_pytorch_forward")
    wrong = []

    def call(number):
        for _ in range(20):
            if not np.array_equal(function(X[number:]), Y[number:]):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(double.requests) == 80


def test_a_newer_version_after_reload(double, fails):
    runner = opened(double)
    double.is_ready = False
    with fails("FILE", "not ready"):
        program.reload(runner)
    double.is_ready = True
    program.reload(runner)
    np.testing.assert_array_equal(forward(runner, X), Y)


# ---- A saved model in its place ------------------------------------------------------------------------------------


@pytest.fixture(params=["torchscript", "onnx"])
def local(request, tmp_path):
    """The file of a model that answers like the server's, and 100 more."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.tanh(x).sum(1, keepdim=True) + 100

    path = str(tmp_path / ("net.pt" if request.param == "torchscript" else "net.onnx"))
    if request.param == "torchscript":
        torch.jit.script(Net()).save(path)
    else:
        pytest.importorskip("onnxscript")
        rows = torch.export.Dim("rows")
        torch.onnx.export(
            Net(), (torch.from_numpy(X),), path, input_names=["x"], dynamo=True, dynamic_shapes={"x": {0: rows}},
            verbose=False,
        )  # fmt: skip
    return path


def values(found):
    (value,) = program.unpack(found)[1]
    return np.asarray(value)


@pytest.fixture
def pauses(monkeypatch):
    """pauses(seconds): how long the server is left alone after a failure."""
    return lambda seconds: monkeypatch.setattr(triton, "_PAUSES", (seconds, 60.0))


def test_a_file_answers_where_the_server_does_not(double, local, pauses, recwarn):
    pauses(0.0)
    runner = opened(double, fallback=local, dtype="float32")
    np.testing.assert_array_equal(forward(runner, X.astype("float64")), Y)
    double.garbage = "failure"
    for _ in range(3):
        np.testing.assert_allclose(values(forward(runner, X.astype("float64"))), Y + 100, rtol=1e-6)
    double.garbage = ""
    np.testing.assert_array_equal(forward(runner, X), Y)
    double.server.stop(None).wait()
    np.testing.assert_allclose(values(forward(runner, X)), Y + 100, rtol=1e-6)
    double.server = serve(double.port, double)[0]
    deadline = time.monotonic() + 120
    while values(forward(runner, X))[0, 0] > 50:
        assert time.monotonic() < deadline, "the server that is back is used again"
    told = [str(each.message) for each in recwarn if each.category is FtnPytorchWarning]
    assert len(told) == 2, "one for each time that it fails"
    assert "INTERNAL" in told[0] and f"{local} answers in its place" in told[0]
    with pytest.warns(FtnPytorchWarning, match=r"/net: \d+ of \d+ calls were answered by .*net"):
        del runner
        gc.collect()


def test_inputs_that_require_gradients_are_refused(double, local, fails):
    if local.endswith(".onnx"):
        pytest.skip("its inputs are NumPy arrays")
    import torch

    predict = program.function(opened(double, fallback=local), "ftn_pytorch_forward")
    x = torch.from_numpy(X).requires_grad_()
    with fails("ARGUMENT", "an input of forward of net requires gradients", "a server"):
        predict(x)
    with torch.no_grad():
        np.testing.assert_array_equal(predict(x), Y)


def test_a_server_that_is_down_is_not_asked_in_every_call(double, local, pauses):
    pauses(60.0)
    runner = impatient(opened(double, fallback=local))
    double.may_answer.clear()
    with pytest.warns(FtnPytorchWarning, match="has not answered within"):
        forward(runner, X)
    for _ in range(20):
        forward(runner, X)
    assert double.asked <= 1


def test_a_server_that_comes_later(double, local, pauses):
    pauses(0.0)
    double.server.stop(None).wait()
    with pytest.warns(FtnPytorchWarning, match="no Triton server that can be reached"):
        runner = opened(double, fallback=local)
    np.testing.assert_allclose(values(forward(runner, X)), Y + 100, rtol=1e-6)
    double.server = serve(double.port, double)[0]
    deadline = time.monotonic() + 120
    while values(forward(runner, X))[0, 0] > 50:
        assert time.monotonic() < deadline
    np.testing.assert_array_equal(forward(runner, X), Y)


def test_mistakes_of_the_program_are_no_reason_to_fall_back(double, local, fails):
    runner = opened(double, fallback=local)
    with fails("SHAPE", "x has shape (6, 2)"):
        forward(runner, X[:, :2])
    with fails("PYTHON", "refuses the request"):
        forward(runner, X + 1e7)
    with fails("FILE", "missing.pt does not exist"):
        opened(double, fallback="missing.pt")


def test_several_results_of_the_file_get_the_names_of_the_server(double, tmp_path, pauses):
    torch = pytest.importorskip("torch")

    class Two(torch.nn.Module):
        def forward(self, a, b):
            return a + b, a - b

    path = str(tmp_path / "two.pt")
    torch.jit.script(Two()).save(path)
    runner = opened(double, "two", fallback=path)
    double.garbage = "failure"
    with pytest.warns(FtnPytorchWarning):
        names, (total, _) = program.unpack(forward(runner, X[0], X[1]))
    with pytest.warns(FtnPytorchWarning, match="1 of 1 calls"):
        del runner
        gc.collect()
    assert names == ("total", "difference")
    np.testing.assert_array_equal(np.asarray(total), X[0] + X[1])


def test_calls_are_not_recorded(double, tmp_path, monkeypatch):
    monkeypatch.setenv("FTN_PYTORCH_RECORD", str(tmp_path / "calls"))
    monkeypatch.setattr(call_recorder, "_tried", False)
    monkeypatch.setattr(call_recorder, "_recorder", None)
    with pytest.warns(FtnPytorchWarning, match="is in a server: its calls are not recorded"):
        runner = opened(double)
    np.testing.assert_array_equal(forward(runner, X), Y)
