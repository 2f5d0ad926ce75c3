# SPDX-License-Identifier: MIT
"""Where two features meet, the numbers are those of plain Python, bit for bit: cells of tests/README.md."""

import gc
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import program  # noqa: E402
from ftn_pytorch import __main__  # noqa: E402
from ftn_pytorch.recording.comparison import is_same  # noqa: E402
from ftn_pytorch.tensors import device, procedures  # noqa: E402

# A closure that trains; what precedes its names, the step and the prediction depends on the feature
SCRIPT = """
import torch
import ftn_pytorch
from ftn_pytorch.kit import Background, Guard, Normaliser, Replay

torch.manual_seed(0)
normaliser = Normaliser(3)
normaliser.update(torch.arange(12.0).reshape(4, 3))
normaliser.freeze()
net = torch.nn.Sequential(normaliser, torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)


def learn(x):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def ftn_pytorch_train(x):
    return False, learn(x)


def ftn_pytorch_forward(x):
    return net(x)
"""
RECORDED_PART = SCRIPT.replace("def learn", "@ftn_pytorch.recorded\ndef learn")
RECORDED_PREDICTION = RECORDED_PART.replace("    return net(x)", "    return predict(x)").replace(
    "def ftn_pytorch_forward", "@ftn_pytorch.recorded\ndef predict(x):\n    return net(x)\n\n\ndef ftn_pytorch_forward"
)
IN_A_THREAD = SCRIPT.replace("    return False, learn(x)", "    return background.submit(x)").replace(
    "def ftn_pytorch_train", "background = Background(learn, net, deterministic=True)\n\n\ndef ftn_pytorch_train"
)
RECORDED_IN_A_THREAD = IN_A_THREAD.replace("def learn", "@ftn_pytorch.recorded\ndef learn")
GUARDED = SCRIPT.replace(
    "    optimizer.zero_grad()", "    assert guard.allows(loss)\n    optimizer.zero_grad()"
).replace("def learn", "guard = Guard(net, optimizer, every=5)\n\n\ndef learn")
REPLAYED = SCRIPT.replace(
    "def learn(x):", "replay = Replay(100)\n\n\ndef learn(x):\n    replay.add(x)\n    (x,) = replay[:]"
)


def x(number):
    return torch.randn(5, 3, generator=torch.Generator().manual_seed(number))


def hook(runner, name):
    return program.function(runner, f"ftn_pytorch_{name}")


def train(runner, first=0, last=16):
    """Losses of some calls, each followed by a prediction."""
    losses = []
    for number in range(first, last):
        losses.append(hook(runner, "train")(x(number))[1])
        hook(runner, "forward")(x(number))
    return [float(torch.as_tensor(loss).detach()) for loss in losses]


def finish(runner):
    """Wait for what is trained beside."""
    background = vars(runner._module).get("background")
    if background is not None:
        background.flush()
    return runner


def numbers(runner):
    return {name: each.clone() for name, each in program.weights(runner, "net").items()}


def assert_same(one, other):
    assert list(one) == list(other)
    for name in one:
        assert is_same(one[name], other[name], 0), name


def derivatives(runner):
    """Tangent, adjoint and Jacobian at a place, of what a runner predicts now."""
    at, dx, dy = x(50), x(51), x(52)[:, :1]
    tangent, jacobian = _of_function(runner, "tangent:1", dx, at), _of_function(runner, "jacobian:0", at)
    return {"tangent": tangent, "jacobian": jacobian, "adjoint": _of_function(runner, "adjoint:1", dy, at)}


def _of_function(runner, kind, *args):
    name = f"ftn_pytorch_{kind}:ftn_pytorch_forward"
    function = program.function(runner, name)
    program.first_call(runner, name, args, {})
    found = function(*args)
    return (found[0] if isinstance(found, tuple) else found).detach().clone()


@pytest.fixture
def plain(load):
    """A script as it is, trained."""
    runner = load(SCRIPT, name="plain.py")
    return runner, train(runner)


@pytest.fixture
def saved(tmp_path):
    """saved(): a saved model of the same network, not trained, as a runner."""

    def saved():
        names: dict = {}
        exec(SCRIPT.partition("optimizer =")[0], names)  # the network alone
        torch.jit.script(names["net"].eval()).save(str(tmp_path / "net.pt"))
        return program.load_model(str(tmp_path / "net.pt"))

    return saved


WAYS = {
    "recorded": (RECORDED_PREDICTION, {}),
    "recorded by load": (SCRIPT, {"record": True}),
    "background": (IN_A_THREAD, {}),
    "background, recorded": (RECORDED_IN_A_THREAD, {}),
    "guard": (GUARDED, {}),
}


@pytest.fixture(params=WAYS)
def trained(request, load, extension):
    """A script that has trained in some other way than plainly."""
    text, options = WAYS[request.param]
    runner = load(text, name="other.py", **options)
    train(runner)
    return finish(runner)


def test_training_in_each_way_gives_the_numbers_of_plain_python(plain, trained):
    assert_same(numbers(plain[0]), numbers(trained))
    assert torch.equal(hook(plain[0], "forward")(x(70)), hook(trained, "forward")(x(70)))


def test_derivatives_after_training_in_each_way(plain, trained):
    assert_same(derivatives(plain[0]), derivatives(trained))


def test_published_after_training_in_each_way(plain, trained, saved):
    one, other = saved(), saved()
    program.assign(one, program.weights(plain[0], "net"))
    program.assign(other, program.weights(trained, "net"))
    assert torch.equal(hook(one, "forward")(x(70)), hook(other, "forward")(x(70)))
    assert torch.equal(hook(one, "forward")(x(70)), hook(plain[0], "forward")(x(70)))


def test_derivatives_of_a_model_that_was_published_to(plain, saved):
    model = saved()
    program.assign(model, program.weights(plain[0], "net"))
    for name, wanted in derivatives(plain[0]).items():
        assert torch.allclose(derivatives(model)[name], wanted, rtol=1e-5, atol=1e-6)


def test_derivatives_where_arrays_are_copied_to_a_device(plain, load, monkeypatch):
    """The host is taken for a device that no array is on."""
    moved = load(SCRIPT, name="moved.py")
    train(moved)
    wanted = derivatives(plain[0])
    monkeypatch.setattr(device._Moves, "_is_there", lambda moves, place: False)
    moved.device = "cpu"
    assert_same(wanted, derivatives(moved))


@pytest.mark.parametrize("way", [*WAYS, "replay"])
def test_a_restart_in_each_way_and_what_follows(way, load, tmp_path, saved, extension):
    """Restored: the training, the derivatives, what is published."""
    text, options = (REPLAYED, {}) if way == "replay" else WAYS[way]
    whole = load(text, name="whole.py", **options)
    losses = train(whole, 0, 24)
    first = load(text, name="first.py", **options)
    train(first, 0, 12)
    program.checkpoint(first, str(tmp_path / "kept"), keep=2, step=12)
    other = load(text, name="second.py", **options)
    train(other, 30, 42)  # a recording is ready when the state comes
    assert program.restore(other, str(tmp_path / "kept")) == 12
    assert train(other, 12, 24) == losses[12:]
    finish(whole), finish(other)
    assert_same(numbers(whole), numbers(other))
    assert_same(derivatives(whole), derivatives(other))
    models = saved(), saved()
    for model, runner in zip(models, (whole, other)):
        program.assign(model, program.weights(runner, "net"))
    assert torch.equal(*(hook(model, "forward")(x(70)) for model in models))
    finish(first)
    gc.collect()


def test_exported_from_a_checkpoint_of_each_way(plain, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program.checkpoint(trained, "kept", keep=2, step=16)
    options = ["--input", "5x3", "--to", "pt", "--output", "exported.pt", "--checkpoint", "kept"]
    assert __main__.main(["export", "other.py:net", *options]) == 0
    exported = program.load_model("exported.pt")
    assert torch.equal(hook(exported, "forward")(x(70)), hook(plain[0], "forward")(x(70)))


def test_recorded_in_the_process_of_a_background(load, extension):
    """The option of load, of a script whose step is recorded in part."""
    alone, beside = load(SCRIPT, name="alone.py"), load(RECORDED_PART, name="beside.py", background=True)
    beside._background._deterministic, beside._background._size = True, 1
    try:
        losses = train(alone)
        assert train(beside)[1:] == losses[:-1]
        beside._background.flush()
        assert_same(numbers(alone), numbers(beside))
    finally:
        beside._background.stop()


# ---- procedures of the program


@pytest.fixture
def scaled(monkeypatch):
    """A program whose procedure "scaled" doubles."""

    def call(name, adjoint, tensors, count):
        return (2 * tensors[-1 if adjoint else 0],)

    library = types.ModuleType("_ftn_pytorch")
    library.inherit = lambda descriptor, stays_open: None  # no process is forked here
    library.lock_is_kept = lambda: False
    library.outputs_of_procedure = lambda name: 1
    library.call_procedure = call
    library.warn = library.log = lambda *text: None
    library.log_level = lambda: 0
    library.runner_in_call = lambda: None
    monkeypatch.setitem(sys.modules, "_ftn_pytorch", library)
    procedures._function.cache_clear()
    yield
    procedures._function.cache_clear()


@pytest.mark.parametrize(
    "text", [SCRIPT, REPLAYED, GUARDED, IN_A_THREAD], ids=["script", "replay", "guard", "background"]
)
def test_procedures_in_each_way(text, load, tmp_path, scaled, monkeypatch):
    wanted = load(text.replace("net(x)", "net(2 * x)"), name="wanted.py")
    called = text.replace("import ftn_pytorch\n", 'import ftn_pytorch\nscaled = ftn_pytorch.procedure("scaled")\n')
    called = called.replace("net(x)", "net(scaled(x))")
    whole, first = load(called, name="whole.py"), load(called, name="first.py")
    assert train(whole) == train(wanted)
    train(first, 0, 8)
    program.checkpoint(first, str(tmp_path / "kept"), keep=2, step=8)
    second = load(called, name="second.py")
    program.restore(second, str(tmp_path / "kept"))
    train(second, 8, 16)
    for runner in (wanted, whole, first, second):
        finish(runner)
    assert_same(numbers(wanted), numbers(whole))
    assert_same(numbers(wanted), numbers(second))
    adjoints = [_of_function(each, "adjoint:1", x(52)[:, :1], x(50)) for each in (wanted, whole)]
    assert torch.equal(*adjoints)  # procedures have no tangents
