# SPDX-License-Identifier: MIT
"""The state of an optimizer in a TorchScript file: training that is resumed goes on, and damage is told."""

import io
import warnings
import zipfile
from pathlib import Path

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


def state_in(path):
    """The extra file with the state, as torch.save wrote it."""
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(optimizer_state.FILE))
        return archive.read(name)


def test_state_is_that_of_torch_optim(path, tmp_path):
    """Whoever has torch alone goes on with it: a state_dict, and nothing in it is code."""
    half, expected = stopped(path, tmp_path, "amsgrad")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.load(half)
    content = torch.load(io.BytesIO(state_in(half)), weights_only=True)
    parameters = dict(model.named_parameters())
    optimizer = getattr(torch.optim, content["class"])([parameters[name] for name in content["names"]])
    group = {**optimizer.state_dict()["param_groups"][0], **content["param_groups"][0], "fused": True}
    optimizer.load_state_dict({"state": content["state"], "param_groups": [group]})
    again = []
    with torch.jit.optimized_execution(False):
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(X), TARGET)
            loss.backward()
            optimizer.step()
            again.append(loss.item())
    assert again == expected


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_and_empty_parameters_come_back(dtype, text):
    parameters = {"w": torch.nn.Parameter(torch.ones(2, 3, dtype=dtype)), "none": torch.nn.Parameter(torch.ones(0, 3))}
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1, momentum=0.9)
    for parameter in parameters.values():
        parameter.grad = torch.full_like(parameter, 0.5)
    optimizer.step()
    data = optimizer_state.dumps(optimizer, parameters)
    again = optimizer_state.loads(as_0_2_0(data) if text else data, parameters, "net.pt").held
    for parameter in parameters.values():
        assert torch.equal(again.state[parameter]["momentum_buffer"], optimizer.state[parameter]["momentum_buffer"])


# ---- files of 0.2.0, whose state is a text


def as_0_2_0(data):
    """The text that 0.2.0 wrote in place of a state."""
    content = torch.load(io.BytesIO(data), weights_only=True)
    group = {"momentum": 0.0, "betas": (0.0, 0.0), "eps": 0.0, **content["param_groups"][0]}
    group["beta1"], group["beta2"] = group["betas"]
    lines = ["ftn_pytorch optimizer 1", f"kind {content['class'].lower()}"]
    reals = ("lr", "momentum", "weight_decay", "beta1", "beta2", "eps")
    lines += [f"{name} {float(group[name]).hex()}" for name in reals]
    lines += [f"dampening {float(group['dampening']).hex()}"] if group.get("dampening") else []
    lines += [f"{name} {int(group.get(name, False))}" for name in ("nesterov", "amsgrad")]
    body = b""
    parts = {"momentum_buffer": "first", "exp_avg": "first", "exp_avg_sq": "second", "max_exp_avg_sq": "largest"}
    for number, name in enumerate(content["names"]):
        state = content["state"].get(number, {})
        lines.append(f"parameter {name} {int(state.get('step', bool(state)))}")
        for key, part in parts.items():
            if key in state:
                sizes = ",".join(map(str, state[key].shape))
                lines.append(f"{part} {str(state[key].dtype).removeprefix('torch.')} {sizes}")
                body += state[key].contiguous().view(torch.uint8).numpy().tobytes() if state[key].numel() else b""
    return "\n".join([*lines, "end", ""]).encode() + body


@pytest.mark.parametrize("steps", [0, STEPS])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_goes_on_from_the_text_of_0_2_0(path, tmp_path, optimizer, steps):
    half, expected = stopped(path, tmp_path, optimizer, steps)
    old = with_state(half, tmp_path / "old.pt", as_0_2_0)
    assert losses(load(old)) == expected
    # As it was written without Python, in a program that had chosen such a locale.
    comma = with_state(old, tmp_path / "comma.pt", lambda text: text.replace(b"0x1.", b"0x1,"))
    assert losses(load(comma)) == expected


def test_a_file_that_0_2_0_has_written_is_read_and_becomes_one_of_today(tmp_path):
    old = Path(__file__).parents[1] / "fortran" / "scripts" / "trained_by_0_2_0.pt"
    assert state_in(old).startswith(b"ftn_pytorch optimizer 1\nkind adam\n")
    runner = load(str(old))
    expected = losses(runner)
    assert expected[:3] == pytest.approx([1.5897266864776611, 1.5464919805526733, 1.5039646625518799], rel=1e-6)
    program.restore(runner, str(old))
    assert losses(runner) == expected
    program.restore(runner, str(old))
    program.save(runner, str(tmp_path / "new.pt"))
    assert state_in(tmp_path / "new.pt").startswith(b"PK")
    assert losses(load(str(tmp_path / "new.pt"))) == expected


# ---- what is refused


def with_state(half, target, change):
    """A copy of a file whose state is changed."""
    with zipfile.ZipFile(half) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            new.writestr(entry.filename, change(content) if entry.filename.endswith(optimizer_state.FILE) else content)
    return str(target)


def changed(change):
    """A change of what a state says."""

    def changed(data):
        content = torch.load(io.BytesIO(data), weights_only=True)
        change(content)
        stream = io.BytesIO()
        torch.save(content, stream)
        return stream.getvalue()

    return changed


def replaced(old, new):
    """A change of the text of 0.2.0."""

    def replaced(data):
        text = as_0_2_0(data)
        assert old in text
        return text.replace(old, new, 1)

    return replaced


def moments(content):
    return content["state"][0]


DAMAGES = {
    "no archive": (lambda data: b"x" + data, "cannot be read"),
    "cut off": (lambda data: data[:-40], "cannot be read"),
    "code": (lambda data: data.replace(b"collections\nOrderedDict", b"builtins\nxxxxxxxxxxxxxx"), "cannot be read"),
    "no class": (changed(lambda content: content.pop("class")), "class"),
    "unknown optimizer": (changed(lambda content: content.update({"class": "ogre"})), "'ogre'"),
    "missing setting": (changed(lambda content: content["param_groups"][0].pop("lr")), "settings are missing: lr"),
    "impossible setting": (changed(lambda content: content["param_groups"][0].update(lr=-1.0)), "learning rate"),
    "other parameter": (changed(lambda content: content["names"].__setitem__(0, "9.weight")), "no parameter 9.weight"),
    "other shape": (changed(lambda content: moments(content).update(exp_avg=torch.ones(3, 5))), "type and shape"),
    "other type": (changed(lambda content: moments(content).update(exp_avg=torch.ones(5, 3).half())), "type and shape"),
    "negative steps": (changed(lambda content: moments(content).update(step=torch.tensor(-4.0))), "-4 steps"),
    "nothing left": (changed(lambda content: moments(content).pop("exp_avg_sq")), "0.weight has made steps that left"),
    "text: later version": (replaced(b"optimizer 1", b"optimizer 2"), "later version"),
    "text: no end": (replaced(b"\nend\n", b"\nfin\n"), "ends early"),
    "text: unknown optimizer": (replaced(b"kind adam", b"kind ogre"), "'ogre'"),
    "text: no optimizer": (replaced(b"kind adam\n", b""), "begins with 'first'"),
    "text: no number": (replaced(b"lr 0x", b"lr 0z"), "hexadecimal"),
    "text: too large a number": (replaced(b"lr 0x1.", b"lr 0x1p99999999999 "), "too large"),
    "text: impossible setting": (replaced(b"lr 0x", b"lr -0x"), "learning rate"),
    "text: unknown line": (replaced(b"\neps ", b"\nups "), "begins with 'ups'"),
    "text: missing setting": (replaced(b"\nlr ", b"\neps "), "settings are missing: lr"),
    "text: other parameter": (replaced(b"0.weight", b"9.weight"), "no parameter 9.weight"),
    "text: other shape": (replaced(b"float32 5,3", b"float32 3,5"), "not of the type and shape"),
    "text: other type": (replaced(b"float32 5,3", b"float64 5,3"), "not of the type and shape"),
    "text: negative steps": (replaced(b"parameter 0.weight 4", b"parameter 0.weight -4"), "-4 steps"),
    "text: empty line": (replaced(b"\nkind", b"\n\nkind"), "not enough values"),
    "text: incomplete": (lambda data: as_0_2_0(data)[:-4], "incomplete"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_state_is_told_and_changes_nothing(path, tmp_path, fails, damage):
    change, piece = DAMAGES[damage]
    half, expected = stopped(path, tmp_path, "adam")
    damaged = with_state(half, tmp_path / "damaged.pt", change)
    with fails("FORMAT", damaged, "the state of an optimizer", piece):
        load(damaged)
    runner = load(half)
    with fails("FORMAT", damaged, piece):
        program.restore(runner, damaged)
    assert losses(runner) == expected


def test_steps_that_left_nothing_behind_are_told(path, tmp_path, fails):
    fresh, _ = stopped(path, tmp_path, "amsgrad", 0)
    old = with_state(fresh, tmp_path / "old.pt", replaced(b"0.weight 0", b"0.weight 4"))
    with fails("FORMAT", old, "0.weight has made steps that left nothing behind"):
        load(old)
    with fails("FORMAT", old, "settings are missing: kind"):
        load(with_state(fresh, old, replaced(b"kind adam\n", b"")))


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
