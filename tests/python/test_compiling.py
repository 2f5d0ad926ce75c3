# SPDX-License-Identifier: MIT
"""torch.compile as an option of load, with backends that need no C++ compiler; test_compile.f90 takes inductor."""

import sys

import pytest

import program
from ftn_pytorch.script import compiling
from ftn_pytorch.script.conventions import FORWARD, TRAIN

torch = pytest.importorskip("torch")

NETWORK = """
    import torch
    torch.manual_seed(1)
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    def ftn_pytorch_forward(x): return net(x)
    def ftn_pytorch_train(x, target):
        loss = torch.nn.functional.mse_loss(net(x), target)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        return False, loss
"""
X, TARGET = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0], [0.0]])


@pytest.fixture
def counted():
    """A backend of torch.compile that runs what it gets as it is and counts it."""
    from torch._dynamo import register_backend
    from torch._dynamo.backends import registry

    graphs = []

    def counting(graph, inputs):
        graphs.append(graph)
        return graph.forward

    register_backend(counting, name="counting")
    torch._dynamo.reset()
    yield graphs
    torch._dynamo.reset()
    registry._COMPILER_FNS.pop("counting", None)
    registry._BACKENDS.pop("counting", None)


def call(runner, name, *args):
    return program.call(runner, name, *args)


@pytest.mark.parametrize(
    "network",
    [
        "torch.nn.Linear(2, 1)",
        "torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))",
        "torch.nn.TransformerEncoderLayer(2, 1, 4, dropout=0.0)",
    ],
)
def test_modules_of_torch_itself_are_compiled(load, counted, network):
    text = f"""
        import torch
        torch.manual_seed(1)
        net = {network}.eval()
        def ftn_pytorch_forward(x): return net(x)
    """
    expected = call(load(text, name="plain.py"), FORWARD, X)
    torch.testing.assert_close(call(load(text, compile="default", compile_backend="counting"), FORWARD, X), expected)
    assert len(counted) == 1


def test_networks_of_a_script_are_compiled_in_place(load, counted):
    plain = load(NETWORK, name="plain.py")
    runner = load(NETWORK, compile="default", compile_backend="counting")
    assert torch.equal(call(runner, FORWARD, X), call(plain, FORWARD, X))
    assert len(counted) == 1
    for _ in range(3):
        assert call(runner, TRAIN, X, TARGET)[1].item() == call(plain, TRAIN, X, TARGET)[1].item()
    assert torch.equal(call(runner, FORWARD, X), call(plain, FORWARD, X))
    net = vars(runner._module)["net"]
    assert type(net) is torch.nn.Linear
    assert list(net.state_dict()) == ["weight", "bias"]


def test_without_the_option_nothing_is_compiled(load, counted):
    assert vars(load(NETWORK)._module)["net"]._compiled_call_impl is None
    assert vars(load(NETWORK, name="b.py", compile=None)._module)["net"]._compiled_call_impl is None


def test_networks_made_by_setup_are_compiled(load, counted):
    text = """
        import torch
        def ftn_pytorch_setup():
            global net
            net = torch.nn.Linear(2, 1)
        def ftn_pytorch_forward(x): return net(x)
    """
    call(load(text, compile="default", compile_backend="counting"), FORWARD, X)
    assert len(counted) == 1


def test_script_without_network_has_its_forward_compiled(load, counted):
    text = """
        import torch
        @torch.inference_mode()
        def ftn_pytorch_forward(x, scale=2.0): return torch.sin(x) * scale
    """
    runner = load(text, compile="default", compile_backend="counting")
    assert torch.equal(call(runner, FORWARD, X), torch.sin(X) * 2.0)
    assert len(counted) == 1
    program.first_call(runner, FORWARD, (X,), {"scale": 3.0})


def test_each_network_of_many_is_compiled(load, counted):
    text = """
        import torch
        for width in range(1, 13):
            globals()[f"net{width}"] = torch.nn.Linear(2, width, bias=width % 2 == 0)
        def ftn_pytorch_forward(x): return sum(globals()[f"net{width}"](x).sum() for width in range(1, 13))
    """
    call(load(text, compile="default", compile_backend="counting"), FORWARD, X)
    assert len(counted) == 12


def test_networks_in_lists_and_objects_are_compiled(load, counted):
    text = """
        import torch
        class Model:
            def __init__(self): self.head = torch.nn.Linear(2, 2)
        nets, head, model = [torch.nn.Linear(2, 2)], torch.nn.Linear(2, 2), Model()
        def ftn_pytorch_forward(x): return head(nets[0](model.head(x)))
    """
    call(load(text, compile="default", compile_backend="counting"), FORWARD, X)
    assert len(counted) == 3


def test_reload_compiles_again(load, counted):
    runner = load(NETWORK, compile="default", compile_backend="counting")
    call(runner, FORWARD, X)
    program.reload(runner)
    call(runner, FORWARD, X)
    assert len(counted) == 2


def test_what_the_script_compiled_stays(load, counted):
    text = """
        import torch
        net = torch.compile(torch.nn.Linear(2, 1), backend="eager")
        def ftn_pytorch_forward(x): return net(x)
    """
    call(load(text, compile="default", compile_backend="counting"), FORWARD, X)
    assert counted == []


def test_changing_batches_are_compiled_for_any_size(load, counted):
    runner = load(NETWORK, compile="default", compile_backend="counting")
    for rows in range(2, 12):
        assert call(runner, FORWARD, torch.ones(rows, 2)).shape == (rows, 1)
    assert len(counted) == 2


def test_exported_program_is_compiled(tmp_path, counted):
    net = torch.nn.Linear(2, 1)
    torch.export.save(torch.export.export(net, (X,)), tmp_path / "net.pt2")
    runner = program.load_model(str(tmp_path / "net.pt2"), compile="default", compile_backend="counting")
    assert torch.equal(call(runner, FORWARD, X), net(X))
    assert len(counted) == 1


# ---- what is refused


def test_backend_that_torch_does_not_know_is_refused(load, fails):
    with fails("ARGUMENT", "compile_backend='inductr' cannot be used", "inductor"):
        load(NETWORK, compile="default", compile_backend="inductr")


def test_script_with_nothing_to_compile_is_told(load, fails):
    with fails("HOOK", "nothing to compile"):
        load("import torch\ndef step(x): return x", compile="default", compile_backend="eager")


def test_script_with_numpy_cannot_be_compiled(load, fails):
    pytest.importorskip("numpy")
    with fails("ARGUMENT", "uses NumPy"):
        load("import numpy\ndef ftn_pytorch_forward(x): return x", compile="default", compile_backend="eager")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_cannot_be_compiled(tmp_path, fails, load):
    path = tmp_path / "net.pt"
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 1)), path)
    with fails("ARGUMENT", "torch.compile cannot work on"):
        program.load_model(str(path), compile="default", compile_backend="inductor")
    text = f"import torch\nnet = torch.jit.load({str(path)!r})\ndef ftn_pytorch_forward(x): return net(x)"
    with fails("ARGUMENT", "TorchScript module"):
        load(text, compile="default", compile_backend="eager")


def test_missing_compiler_is_told_at_load(load, fails, monkeypatch, tmp_path):
    from torch._inductor import config, cpp_builder

    cpp_builder.cpp_compiler_search.cache_clear()
    monkeypatch.setenv("CXX", str(tmp_path / "g++"))
    no_cxx = config.patch({"cpp.cxx": (None, str(tmp_path / "g++"))})
    with no_cxx, fails("IMPORT", str(tmp_path / "g++"), "CXX", "aot_eager"):
        load(NETWORK, compile="default", compile_backend="inductor")
    cpp_builder.cpp_compiler_search.cache_clear()
    assert load(NETWORK, name="other.py", compile="default", compile_backend="aot_eager").backend == "script"


@pytest.mark.parametrize(
    ("executable", "answer"), [("/usr/bin/python3.11", True), ("/opt/model/bin/atmosphere", False), (None, False)]
)
def test_a_host_is_not_taken_for_a_python(executable, answer):
    assert compiling._is_python(executable) == answer


@pytest.mark.parametrize("is_python", [True, False])
@pytest.mark.parametrize("chosen", [None, "fork"])
def test_workers_of_the_compiler(chosen, is_python, monkeypatch):
    """Programs of their own unless the user has chosen another way, and none where no Python can be started as one."""
    from torch._inductor import config

    monkeypatch.setattr(compiling, "require_cxx", lambda *_: None)
    monkeypatch.setattr(compiling.sys, "executable", sys.executable if is_python else "/opt/model/bin/atmosphere")
    monkeypatch.delenv(compiling.WORKER_START, raising=False)
    if chosen:
        monkeypatch.setenv(compiling.WORKER_START, chosen)
    with config.patch(worker_start_method="fork", compile_threads=4):
        compiling.prepare("inductor", None)
        assert config.worker_start_method == (chosen or "subprocess")
        assert config.compile_threads == (4 if is_python else 1)


def test_what_was_compiled_is_not_replaced(load, fails):
    text = "import torch\ndef ftn_pytorch_forward(x): return 2 * x\ndef other(x): return 3 * x\n"
    runner = load(text, compile=True, compile_backend="eager")
    assert program.call(runner, FORWARD, X).equal(2 * X)
    runner.names[FORWARD] = runner.names["other"]
    with fails("ARGUMENT", "another function after it was compiled", "leave out compile="):
        program.function(runner, FORWARD)
