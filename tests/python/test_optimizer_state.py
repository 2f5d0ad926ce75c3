# SPDX-License-Identifier: MIT
"""The state of an optimizer in a TorchScript file: training that is resumed goes on, and damage is told."""

import warnings
import zipfile

import pytest

import program
from ftn_pytorch.runners.models import optimizer_state

torch = pytest.importorskip("torch")

FORWARD, TRAIN = "ftn_pytorch_forward", "ftn_pytorch_train"
X, TARGET = torch.linspace(-1, 1, 12).reshape(4, 3), torch.linspace(0, 2, 8).reshape(4, 2)
STEPS = 4

OPTIMIZERS = {
    "sgd": ("sgd", {"lr": 0.1}),
    "momentum": ("sgd", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "nesterov": ("sgd", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "dampening": ("sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.25}),
    "adam": ("adam", {"lr": 0.01}),
    "amsgrad": ("adam", {"lr": 0.01, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.1, "amsgrad": True}),
    "adamw": ("adamw", {"lr": 0.01, "weight_decay": 0.1}),
}


@pytest.fixture
def path(tmp_path):
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2, bias=False))
    return saved(net, tmp_path / "net.pt")


def saved(net, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(net), path)
    return str(path)


def load(path):
    return program.load_model(path)


def call(runner, name, *args, **kwargs):
    return program.call(runner, name, *args, **kwargs)


def create(runner, optimizer):
    kind, settings = OPTIMIZERS[optimizer]
    call(runner, f"ftn_pytorch_create_optimizer_{kind}", **settings)


def losses(runner, steps=STEPS):
    return [call(runner, TRAIN, X, TARGET)[1] for _ in range(steps)]


def stopped(path, tmp_path, optimizer, steps=STEPS):
    """(file written after some steps, the losses of the steps that followed)"""
    runner, half = load(path), str(tmp_path / "half.pt")
    create(runner, optimizer)
    losses(runner, steps)
    program.save(runner, half)
    return half, losses(runner)


# ---- training goes on where it stopped, with the very same numbers


@pytest.mark.parametrize("steps", [0, STEPS])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_goes_on_after_load(path, tmp_path, optimizer, steps):
    half, expected = stopped(path, tmp_path, optimizer, steps)
    assert losses(load(half)) == expected


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_goes_on_after_reload_and_restore(path, tmp_path, optimizer):
    half, expected = stopped(path, tmp_path, optimizer)
    runner = load(half)
    losses(runner, 2)
    program.reload(runner)
    assert losses(runner) == expected
    runner = load(path)
    create(runner, "sgd")
    losses(runner, 2)
    program.restore(runner, half)
    assert losses(runner) == expected, "the optimizer of the file replaces another one"


def test_without_the_state_training_would_not_go_on(path, tmp_path):
    """What the tests above rely on: numbers do depend on the state."""
    half, expected = stopped(path, tmp_path, "adam")
    runner = load(half)
    create(runner, "adam")
    assert losses(runner)[0] == expected[0]
    assert losses(runner, 1) != expected[1:2]


def test_restore_of_a_file_without_state_leaves_the_optimizer_as_it_is(path):
    runner, other = load(path), load(path)
    for each in (runner, other):
        create(each, "adam")
        losses(each)
    program.restore(runner, path)
    plain = torch.jit.load(path)
    other._model.load_state_dict(plain.state_dict())
    assert losses(runner) == losses(other)


def test_reload_of_a_file_without_state_starts_the_optimizer_anew(path):
    runner, fresh = load(path), load(path)
    for each in (runner, fresh):
        create(each, "amsgrad")
    losses(runner)
    program.reload(runner)
    assert losses(runner) == losses(fresh)


def test_file_remains_a_model_for_torch(path, tmp_path):
    half, _ = stopped(path, tmp_path, "adam")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(torch.jit.load(half)(X), call(load(half), FORWARD, X))


def test_state_is_that_of_torch_optim(path):
    parameters = dict(torch.jit.load(path).named_parameters())
    optimizer = torch.optim.Adam(parameters.values(), lr=0.01, betas=(0.8, 0.99), amsgrad=True)
    for _ in range(3):
        for parameter in parameters.values():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
    kind, settings, states = optimizer_state.loads(
        optimizer_state.dumps("adam", optimizer, parameters), parameters, "net.pt"
    )
    assert kind == "adam"
    assert settings == {"lr": 0.01, "weight_decay": 0.0, "beta1": 0.8, "beta2": 0.99, "eps": 1e-8, "amsgrad": True}
    again = optimizer_state.make(kind, parameters, settings, states)
    for parameter in parameters.values():
        before, after = optimizer.state[parameter], again.state[parameter]
        assert sorted(before) == sorted(after)
        assert all(torch.equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_and_empty_parameters_come_back(dtype):
    parameters = {"w": torch.nn.Parameter(torch.ones(2, 3, dtype=dtype)), "none": torch.nn.Parameter(torch.ones(0, 3))}
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1, momentum=0.9)
    for parameter in parameters.values():
        parameter.grad = torch.full_like(parameter, 0.5)
    optimizer.step()
    data = optimizer_state.dumps("sgd", optimizer, parameters)
    states = optimizer_state.loads(data, parameters, "net.pt")[2]
    for name, parameter in parameters.items():
        assert states[name]["steps"] == 1
        assert torch.equal(states[name]["momentum_buffer"], optimizer.state[parameter]["momentum_buffer"])


def test_numbers_with_the_comma_of_a_locale_are_read():
    # As 0.2.0 wrote them without Python, in a program that had chosen such a locale.
    parameters = {"w": torch.nn.Parameter(torch.ones(2))}
    data = optimizer_state.dumps("adam", torch.optim.Adam(parameters.values(), lr=1e-3), parameters)
    assert b"lr 0x1.0" in data
    again = optimizer_state.loads(data.replace(b"0x1.", b"0x1,"), parameters, "net.pt")
    assert again == optimizer_state.loads(data, parameters, "net.pt")


# ---- what is refused


def with_state(half, target, change):
    """A copy of a file whose state is changed."""
    with zipfile.ZipFile(half) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            new.writestr(entry.filename, change(content) if entry.filename.endswith(optimizer_state.FILE) else content)
    return str(target)


DAMAGES = {
    "later version": (b"optimizer 1", b"optimizer 2", "later version"),
    "no text": (b"ftn_pytorch", b"\xff\xfe\xfd\xfc", "does not begin"),
    "no end": (b"\nend\n", b"\nfin\n", "ends early"),
    "unknown optimizer": (b"kind adam", b"kind ogre", "'ogre'"),
    "no optimizer": (b"kind adam\n", b"", "begins with 'first'"),
    "no number": (b"lr 0x", b"lr 0z", "hexadecimal"),
    "too large a number": (b"lr 0x1.", b"lr 0x1p99999999999 ", "too large"),
    "impossible setting": (b"lr 0x", b"lr -0x", "learning rate"),
    "unknown line": (b"\neps ", b"\nups ", "begins with 'ups'"),
    "missing setting": (b"\nlr ", b"\neps ", "settings are missing: lr"),
    "other parameter": (b"0.weight", b"9.weight", "no parameter 9.weight"),
    "other shape": (b"float32 5,3", b"float32 3,5", "not of the type and shape"),
    "other type": (b"float32 5,3", b"float64 5,3", "not of the type and shape"),
    "negative steps": (b"parameter 0.weight 4", b"parameter 0.weight -4", "-4 steps"),
    "empty line": (b"\nkind", b"\n\nkind", "not enough values"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_state_is_told_and_changes_nothing(path, tmp_path, fails, damage):
    old, new, piece = DAMAGES[damage]
    half, expected = stopped(path, tmp_path, "adam")

    def change(content):
        assert old in content
        return content.replace(old, new, 1)

    damaged = with_state(half, tmp_path / "damaged.pt", change)
    with fails("FORMAT", damaged, "the state of an optimizer", piece):
        load(damaged)
    runner = load(half)
    with fails("FORMAT", damaged, piece):
        program.restore(runner, damaged)
    assert losses(runner) == expected


def test_incomplete_state_is_told(path, tmp_path, fails):
    half, _ = stopped(path, tmp_path, "adam")
    damaged = with_state(half, tmp_path / "damaged.pt", lambda content: content[:-4])
    with fails("FORMAT", damaged, "incomplete"):
        load(damaged)
    fresh, _ = stopped(path, tmp_path, "amsgrad", 0)
    change = lambda content: content.replace(b"0.weight 0", b"0.weight 4")  # noqa: E731
    with fails("FORMAT", damaged, "0.weight has made steps that left nothing behind"):
        load(with_state(fresh, damaged, change))
    with fails("FORMAT", damaged, "settings are missing: kind"):
        load(with_state(fresh, damaged, lambda content: content.replace(b"kind adam\n", b"")))


def test_state_of_a_model_that_is_frozen_is_told(path, tmp_path, fails):
    half, _ = stopped(path, tmp_path, "adam")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frozen = torch.jit.freeze(torch.jit.load(path).eval())
        extra = {optimizer_state.FILE: b""}
        torch.jit.load(half, _extra_files=extra)
        torch.jit.save(frozen, tmp_path / "frozen.pt", _extra_files=extra)
    with fails("ARGUMENT", "no parameters that can be trained"):
        load(str(tmp_path / "frozen.pt"))
