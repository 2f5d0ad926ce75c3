# SPDX-License-Identifier: MIT
"""What recordings have read of a state as constants: a file goes on from checkpoints in which all that is the same."""

import textwrap

import pytest

import program
from ftn_pytorch import load_recording, save_recording
from ftn_pytorch.checkpoint import file as checkpoint_file
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.saved import reads, writing

torch = pytest.importorskip("torch")

from build_tree import build_folder  # noqa: E402
from promises.program_without_python import Failed, Program  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

SCRIPT = """
import torch
import reads_settings
from ftn_pytorch import recorded

class Loss:
    def __init__(self):
        self.weight, self.calls, self.seen = 1.0, 0, []
    def __call__(self, y, target):
        return self.weight * torch.nn.functional.mse_loss(y, target)

def scaled(factor):
    def apply(x):
        return x * factor
    def change(other):
        nonlocal factor
        factor = other
    return apply, change

torch.manual_seed(1)
nets = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2)) for _ in range(2)]
chosen, loss_of, scale, activation, weights = nets[0], Loss(), 1.0, torch.tanh, [1.0, 2.0]
optimizer = torch.optim.SGD([each for net in nets for each in net.parameters()], lr=0.05, momentum=0.9)
apply, change = scaled(1.0)
history, best = [], None

@recorded
def step(x, target):
    optimizer.zero_grad()
    y = activation(apply(chosen(x * scale))) * weights[0] * reads_settings.gain
    loss = loss_of(y, target)
    loss.backward()
    optimizer.step()
    return loss

@recorded
def predict(x):
    chosen.eval()
    with torch.no_grad():
        return chosen(x)
"""
CHANGES = {
    "a number of an optimizer that was zero": ("optimizer.param_groups[0]['weight_decay'] = 0.5", "weight_decay"),
    "a switch of an optimizer": ("optimizer.param_groups[0]['nesterov'] = True", "nesterov"),
    "a mode": ("[each.eval() for each in nets]", "training"),
    "requires_grad": ("nets[0][0].requires_grad_(False)", "requires_grad"),
    "a global": ("global scale; scale = 2.0", "scale"),
    "a field": ("loss_of.weight = 2.0", "loss_of.weight"),
    "an item": ("weights[0] = 3.0", "weights"),
    "another network": ("global chosen; chosen = nets[1]", "chosen"),
    "a function": ("global activation; activation = torch.relu", "activation"),
    "a variable of a function": ("change(2.0)", "factor"),
    "a module of the user": ("reads_settings.gain = 2.0", "reads_settings.gain"),
    "a field of a layer": ("nets[0][1].p = 0.25", "p"),
}


@pytest.fixture
def script(load, write):
    """script(more): the runner of the script with ``later`` as told, and samples; ``step`` runs without Python."""

    def script(later="pass"):
        write("reads_settings.py", "gain = 1.0\n")
        runner = load(f"{SCRIPT}\ndef later():\n    {later}\n")
        numbers = torch.Generator().manual_seed(5)
        samples = [(torch.randn(8, 3, generator=numbers), torch.randn(8, 2, generator=numbers)) for _ in range(12)]
        names = vars(runner._module)
        for each in samples[:8]:
            names["step"](*each)
        return runner, names, samples

    return script


def without_python(file, place):
    """What a program without Python says to a checkpoint; empty if it goes on from it."""
    if not next(build_folder().glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("there is no build with a direct path")
    beside = Program(build_folder())
    beside.tell("load", file)
    try:
        beside.tell("restore", place)
    except Failed as failure:
        return str(failure)
    finally:
        assert beside.end() == 0
    return ""


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_with_another_value_of_what_was_read_is_refused(script, tmp_path, change):
    line, name = CHANGES[change]
    runner, names, samples = script(line)
    file, before, after = (str(tmp_path / each) for each in ("step.ftr", "before.ckpt", "after.ckpt"))
    save_recording(file, {"step": names["step"]}, names)
    program.save(runner, before)
    losses = [names["step"](*each) for each in samples[8:]]
    names["later"]()
    program.save(runner, after)

    saved = load_recording(file)
    with pytest.raises(FtnPytorchError, match=name) as refusal:
        saved.restore(after)
    assert refusal.value.status == "FORMAT"
    saved.restore(before)
    assert all(torch.equal(saved.call("step", *each), loss) for each, loss in zip(samples[8:], losses))
    assert name in without_python(file, after)
    assert without_python(file, before) == ""


def test_what_no_recording_reads_and_what_a_run_reads_anew_may_be_another_one(script, tmp_path):
    later = "global best; best = [each.detach().clone() for each in chosen.parameters()]; history.append(1.0)"
    rate = "optimizer.param_groups[0]['lr'] = 0.01"
    runner, names, samples = script(f"{later}; loss_of.calls += 1; loss_of.seen.append(2.0); {rate}")
    file, after = str(tmp_path / "step.ftr"), str(tmp_path / "after.ckpt")
    save_recording(file, {"step": names["step"]}, names)
    names["later"]()
    program.save(runner, after)
    losses = [names["step"](*each) for each in samples[8:]]
    saved = load_recording(file)
    saved.restore(after)
    assert all(torch.equal(saved.call("step", *each), loss) for each, loss in zip(samples[8:], losses))


def test_the_mode_that_a_function_gives_may_be_another_one_before_it(script, tmp_path):
    runner, names, samples = script("[each.train() for each in nets]")
    expected = [names["predict"](x) for x, _ in samples]  # from eval() to eval()
    file, after = str(tmp_path / "predict.ftr"), str(tmp_path / "after.ckpt")
    save_recording(file, {"predict": names["predict"]}, names)
    names["later"]()
    program.save(runner, after)
    saved = load_recording(file)
    saved.restore(after)
    assert all(torch.equal(saved.call("predict", x), y) for (x, _), y in zip(samples, expected))


def test_a_value_that_is_another_one_when_it_is_saved_is_none_of_these(script, tmp_path):
    runner, names, _ = script("loss_of.weight = 2.0")
    names["later"]()
    file = str(tmp_path / "step.ftr")
    writing.write(file, {"step": writing.tapes_of("step", names["step"])}, runner.found_state(), "model.py")
    read = [what for what, _, _ in torch.load(file, weights_only=True)["recording"]["read"]]
    assert "loss_of.weight" not in read
    assert "scale" in read


@pytest.mark.parametrize(
    "text", ["", "[", '[{"objects"', '[{"objects": {"scale": 2', '[{"objects": "\\', "[[[[", "\0:,}"]
)
def test_a_text_that_is_no_state_leads_nowhere(script, tmp_path, text, monkeypatch):
    runner, names, _ = script()
    file, other = str(tmp_path / "step.ftr"), str(tmp_path / "other.ckpt")
    way = ["0", '"objects"', '"optimizer"', '"state"', "7", "x"]
    monkeypatch.setattr(reads, "of", lambda *given: [("scale", way, False)])
    save_recording(file, {"step": names["step"]}, names)
    program.save(runner, other)
    alter(other, lambda content: {"state": text, "holes": []})
    load_recording(file).restore(other)


def alter(place, change):
    """Write other entries into a checkpoint."""
    content = torch.load(place, weights_only=True)
    altered = {**content, **change(content)}
    checkpoint_file.write(place, checkpoint_file.description(place), lambda stream: torch.save(altered, stream))


@pytest.mark.parametrize(
    "was, becomes, is_right",
    [
        ('"fused": null', '"fused": null, "of a later torch": true', True),
        (', "nesterov": false', "", True),
        (', "fused": null', "", False),
        ('"nesterov": false', '"nesterov": true', False),
    ],
)
def test_groups_of_optimizers_that_another_version_of_torch_has_written(script, tmp_path, was, becomes, is_right):
    """torch puts False there where nothing stands for "nesterov" and for "fused", which was None."""
    runner, names, samples = script()
    file, other = str(tmp_path / "step.ftr"), str(tmp_path / "other.ckpt")
    save_recording(file, {"step": names["step"]}, names)
    program.save(runner, other)
    losses = [names["step"](*each) for each in samples[8:]]

    def group_of_another_version(content):
        assert content["state"].count(was) == 1
        return {"state": content["state"].replace(was, becomes), "holes": []}

    alter(other, group_of_another_version)
    saved = load_recording(file)
    if is_right:
        saved.restore(other)
        assert all(torch.equal(saved.call("step", *each), loss) for each, loss in zip(samples[8:], losses))
    else:
        with pytest.raises(FtnPytorchError, match="does not fit"):
            saved.restore(other)


ORDERED = """
import torch
from ftn_pytorch import recorded
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
first, second = net[0].weight, net[1].weight
def made(*groups):
    groups = [{"params": group, "lr": 0.05 * number} for number, group in enumerate(groups, 1)]
    return torch.optim.Adam(groups)
def begin(): pass
def update(): optimizer.step()
OWN

@recorded
def step(x):
    first.grad = second.grad = None
    loss = net(x).square().sum()
    loss.backward()
    update()
    return loss
"""
ORDERS = {
    "of parameters": "optimizer = made([FIRST, SECOND])",
    "of groups": "optimizer = made([FIRST], [SECOND])",
    "of groups without moments": "optimizer = torch.optim.SGD(made([FIRST], [SECOND]).param_groups)",
    "of a group that was added": """
        optimizer = made([net[0].bias])
        def begin(): optimizer.add_param_group({"params": [FIRST, SECOND]})
        """,
    "of parameters of an optimizer that a call has made": """
        optimizer = None
        def begin():
            global optimizer
            optimizer = made([FIRST, SECOND])
        """,
    "of the first steps of such an optimizer": """
        optimizer = None
        def begin():
            global optimizer
            optimizer = made([first, second])
            for each in (FIRST, SECOND):
                each.grad = torch.ones(2, 2)
                optimizer.step()
                each.grad = None
        """,
    "of the settings of such an optimizer": """
        optimizer = None
        def begin():
            global optimizer
            optimizer = made([first, second])
            optimizer.param_groups[0]["weight_decay"] = 0.5 if FIRST is first else 0.0
        """,
    "of the keys of a dict": """
        moments = {}
        def begin():
            moments.update({each: torch.zeros_like(each) for each in (FIRST, SECOND)})
        def update():
            with torch.no_grad():
                for each in (first, second):
                    each.sub_(moments[each].mul_(0.9).add_(each.grad), alpha=0.05)
        """,
}


@pytest.mark.parametrize("order", ORDERS)
def test_what_belongs_to_one_parameter_does_not_become_that_of_another(load, tmp_path, order):
    """The script was edited since the checkpoint was written, and both parameters have one shape."""
    text = ORDERED.replace("OWN", textwrap.dedent(ORDERS[order]))
    samples = [torch.tensor([[1.0 + step, 0.3 * step]]) for step in range(12)]
    places, scripts = [], []
    for named in (("first", "second"), ("second", "first")):
        runner = load(text.replace("FIRST", named[0]).replace("SECOND", named[1]), name=f"from_{named[0]}.py")
        program.call(runner, "begin")
        for each in samples[:8]:
            runner.value("step")(each)
        places.append(str(tmp_path / f"from_{named[0]}.ckpt"))
        program.save(runner, places[-1])
        scripts.append(runner)
    file = str(tmp_path / "step.ftr")
    save_recording(file, {"step": scripts[1].value("step")}, vars(scripts[1]._module))
    saved = load_recording(file)
    with pytest.raises(FtnPytorchError, match="does not fit") as refusal:
        saved.restore(places[0])
    assert refusal.value.status == "FORMAT"
    alter(places[1], lambda content: {"state": content["state"].replace('"trains"', '"another"'), "holes": []})
    saved.restore(places[1])
    assert all(torch.equal(saved.call("step", each), scripts[1].value("step")(each)) for each in samples[8:])
