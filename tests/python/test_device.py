# SPDX-License-Identifier: MIT
"""Computing on a device. The wrapper copies to any device, so on a machine without one it is tried with the host."""

import operator

import pytest

import program
from ftn_pytorch import recorded
from ftn_pytorch.system import process
from ftn_pytorch.tensors import device

torch = pytest.importorskip("torch")

FORWARD = "ftn_pytorch_forward"
SCRIPT = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def ftn_pytorch_setup():
    global late
    late = torch.nn.Linear(1, 1)
def ftn_pytorch_forward(x, out=None): return net(x)
def places(): return [p.device.type for p in [*net.parameters(), *late.parameters()]]
"""

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
needs_no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


@pytest.fixture
def anywhere(monkeypatch):
    """Take the host for a device."""
    monkeypatch.setattr(device, "resolve", lambda text, framework: text)


@pytest.fixture
def elsewhere(monkeypatch):
    """Take the host for a device that no array is on."""
    monkeypatch.setattr(device._Moves, "_is_there", lambda moves, place: False)


# ---- which device


@pytest.mark.parametrize("text", ["cpu", "cpu:0"])
def test_host_is_no_device(load, text):
    runner = load(SCRIPT, device=text)
    assert runner.device is None
    assert program.function(runner, FORWARD).__name__ == FORWARD


@needs_no_cuda
@pytest.mark.parametrize("options", [{"device": "cuda"}, {"device": "cuda:1"}])
def test_device_that_cannot_be_used_is_told_with_what_torch_was_built_for(load, fails, options):
    with fails("DEVICE", "cannot be used", torch.__version__, "built for", "finds 0 usable GPUs"):
        load(SCRIPT, **options)


@pytest.mark.parametrize(
    ("text", "pieces"), [("gpu", ("'gpu'", '"cuda"')), ("", ("''",)), ("meta", ("holds no numbers",))]
)
def test_unknown_device_is_refused(load, fails, text, pieces):
    with fails("DEVICE", *pieces):
        load(SCRIPT, device=text)


def test_device_needs_torch(load, fails):
    with fails("DEVICE", "NumPy"):
        load("def ftn_pytorch_forward(x): pass\n", device="cuda")
    assert load("def ftn_pytorch_forward(x): pass\n", device="cpu").device is None


# ---- the wrapper


def test_arguments_are_copies_and_the_result_is_returned_as_it_is(elsewhere):
    seen = []

    def function(*args, **kwargs):
        seen.extend([*args, *kwargs.values()])
        return seen

    x, y = torch.ones(2), torch.zeros(3)
    assert device.on_device(function, "cpu")(x, 2.5, [y, "text"], named=x) is seen
    assert torch.equal(seen[0], x)
    assert seen[0].data_ptr() != x.data_ptr()
    assert seen[1] == 2.5
    assert torch.equal(seen[2][0], y)
    assert seen[2][0].data_ptr() != y.data_ptr()
    assert seen[2][1] == "text"
    assert torch.equal(seen[3], x)


def test_functions_that_get_copies_are_recorded(extension, monkeypatch):
    monkeypatch.setattr(device._Moves, "_is_there", operator.not_)  # as elsewhere, without code of a user
    net, x = torch.nn.Linear(2, 2), torch.zeros(3, 2)

    def function(x, factor):
        factor.add_(1)
        return net(x) * factor

    apply, factor = recorded(device.on_device(function, "cpu")), torch.ones(())
    for call in range(12):
        x.fill_(call)
        assert torch.equal(apply(x, factor), net(x) * (call + 2))
    assert apply.recording.is_ready, apply.recording.obstacle


def test_changes_in_place_are_copied_back(elsewhere):
    def function(x, inputs, *, y):
        x.add_(1)
        inputs[0].mul_(3)
        y[0] = 7

    x, y, z = torch.zeros(2), torch.zeros(2), torch.ones(2, 2).t()
    device.on_device(function, "cpu")(x, [z], y=y)
    assert x.tolist() == [1, 1]
    assert y.tolist() == [7, 0]
    assert z.tolist() == [[3, 3], [3, 3]]


def test_arrays_that_were_not_changed_are_not_written(elsewhere):
    x = torch.ones(2)
    version = x._version
    device.on_device(lambda x: x + 1, "cpu")(x)
    assert x._version == version


def test_changes_under_inference_mode_are_copied_back(elsewhere):
    x = torch.zeros(2)

    @torch.inference_mode()
    def function(x):
        x.add_(1)

    device.on_device(function, "cpu")(x)
    assert x.tolist() == [1, 1]


def test_change_of_an_argument_that_needs_gradients_is_copied_back(elsewhere):
    def function(x):
        x.add_(1)
        x.requires_grad_()

    x = torch.zeros(2)
    device.on_device(function, "cpu")(x)
    assert x.tolist() == [1, 1]
    assert not x.requires_grad


def test_arrays_that_are_there_are_passed_as_they_are():
    x, y = torch.zeros(2), torch.zeros(2)
    assert device.on_device(lambda x, inputs: (x, inputs[0]), "cpu")(x, [y]) == (x, y)


def test_memory_of_another_device_is_copied_which_is_told_once():
    x = torch.zeros(2, device="meta")  # of which every copy is on the same device again, and has no numbers
    with pytest.warns(process.FtnPytorchWarning, match=r'an array on meta is copied to meta:7.*device="meta"') as told:
        for _ in range(3):
            assert device.on_device(lambda x: x, "meta:7")(x) is not x
    assert len(told) == 1


@needs_cuda
def test_arrays_of_the_current_gpu_are_those_of_a_device_without_an_index():
    x = torch.zeros(2, device="cuda:0")
    assert device.on_device(lambda x: x, "cuda")(x) is x
    assert device.on_device(lambda x: x, "cuda:0")(torch.zeros(2)).is_cuda


# ---- arrays on a device


@pytest.mark.parametrize(("dtype", "expected"), [("", torch.float32), ("float64", torch.float64)])
def test_a_copy_has_the_wanted_type_and_goes_back(dtype, expected):
    x = torch.ones(3)
    there = device.move(x, "cpu", dtype)
    assert there.dtype == expected
    assert there.data_ptr() != x.data_ptr()
    there.requires_grad_()
    with torch.no_grad():
        there.mul_(2)
    device.move_back(there, x)
    assert x.tolist() == [2, 2, 2]
    assert not x.requires_grad


@needs_no_cuda
def test_memory_of_a_device_that_torch_cannot_use_is_refused(fails):
    with fails("DEVICE", "the array is in memory of cuda:0, which torch cannot use", "was built for the CPU only"):
        device.start_device("cuda:0")


@needs_cuda
def test_work_goes_to_the_stream_of_the_program():
    stream, usual = torch.cuda.Stream(), torch.cuda.current_stream()
    entered = device.enter_stream(stream.cuda_stream, "")
    assert torch.cuda.current_stream().cuda_stream == stream.cuda_stream
    device.wait_for_device("")
    device.leave_stream(entered)
    assert torch.cuda.current_stream().cuda_stream == usual.cuda_stream
    device.leave_stream(device.enter_stream(0, ""))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are fewer than two GPUs")
def test_a_stream_of_another_gpu_leaves_no_trace():
    here, there = torch.cuda.current_device(), 1 - torch.cuda.current_device()
    usual = torch.cuda.current_stream(there)
    stream = torch.cuda.Stream(there)
    entered = device.enter_stream(stream.cuda_stream, f"cuda:{there}")
    assert torch.cuda.current_stream().cuda_stream == stream.cuda_stream
    device.leave_stream(entered)
    assert torch.cuda.current_device() == here
    assert torch.cuda.current_stream(there).cuda_stream == usual.cuda_stream


# ---- runners


def test_functions_of_a_script_are_wrapped(load, anywhere):
    runner = load(SCRIPT, device="cpu:0")
    function, one_list, has_out, _ = program.bind(runner, FORWARD)
    assert (one_list, has_out) == (True, False)
    assert function.__wrapped__.__globals__[FORWARD] is function.__wrapped__
    assert function(torch.ones(3, 2)).shape == (3, 1)


def test_checks_see_the_function_of_the_script(load, anywhere, fails):
    with fails("SIGNATURE", "(x, out=None)"):
        program.first_call(load(SCRIPT, device="cpu:0"), FORWARD, (), {})


def test_networks_of_a_script_are_moved_also_those_made_in_setup(load, anywhere):
    runner = load(SCRIPT, device="meta")
    function = program.function(runner, "places")
    assert function() == ["meta"] * 4
    program.reload(runner)
    assert program.call(runner, "places") == ["meta"] * 4


def test_script_without_device_is_not_moved(load):
    assert program.call(load(SCRIPT), "places") == ["cpu"] * 4


@needs_cuda
def test_script_computes_on_the_gpu_with_host_arrays(load):
    text = SCRIPT + "def fill(x): x.fill_(3); return x\n"
    runner = load(text, device="cuda")
    assert runner.device == "cuda"
    x = torch.ones(3, 2)
    (result,) = program.unpack(program.call(runner, FORWARD, x))[1]
    assert result.is_cuda
    host = program.to_host(result, widened=False)
    assert not host.is_cuda
    assert torch.equal(host, result.cpu())
    program.call(runner, "fill", x)
    assert x.tolist() == [[3, 3]] * 3


@needs_cuda
@pytest.mark.filterwarnings("ignore")
def test_saved_model_trains_on_the_gpu_with_host_arrays(tmp_path):
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 1)), tmp_path / "net.pt")
    runner = program.load_model(str(tmp_path / "net.pt"), device="cuda", flags=1)
    assert runner.device == "cuda"
    program.call(runner, "ftn_pytorch_create_optimizer_sgd", 0.05)
    train = program.function(runner, "ftn_pytorch_train")
    x, target = torch.rand(64, 2), torch.rand(64, 1)
    losses = [train(x, target)[1] for _ in range(50)]
    assert losses[-1] < losses[0]
    assert program.function(runner, FORWARD, 2)(x).is_cuda
    program.save(runner, str(tmp_path / "trained.pt"))
    host = program.load_model(str(tmp_path / "trained.pt"))
    assert not program.call(host, FORWARD, x).is_cuda


@needs_cuda
def test_device_of_an_index_that_is_not_there_is_told(load, fails):
    with fails("DEVICE", "cannot be used", "built for CUDA"):
        load(SCRIPT, device="cuda:99")
