# SPDX-License-Identifier: MIT
"""Saved recordings: a script, its file, and the script again give what the script alone gives; and what is refused."""

from collections import namedtuple
from pathlib import Path

import pytest

import program
from ftn_pytorch import load_recording, save_recording
from ftn_pytorch import recorded as recorded_function
from ftn_pytorch.checkpoint import file as checkpoint_file
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.opening import open_runner
from ftn_pytorch.saved import writing
from ftn_pytorch.system import extension

torch = pytest.importorskip("torch")

from build_tree import build_folder  # noqa: E402
from promises.program_without_python import Program  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

Pair = namedtuple("Pair", "first second")
SCRIPT = """
import torch
torch.manual_seed(1)
net = torch.nn.Sequential(
    torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2)
)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, fused=True)
averaged = [parameter.detach().clone() for parameter in net.parameters()]
def ftn_pytorch_forward(x, scale=1.0):
    with torch.no_grad():
        return {"flux": net(x) * scale}
def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.huber_loss(net(x), target)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(averaged, list(net.parameters()), 0.1)
    return False, loss
"""


def altered(path, change):
    """The file with another description of its recordings."""
    content = torch.load(path, weights_only=True)
    change(content["recording"])
    about, other = checkpoint_file.description(path), f"{path}.altered"
    checkpoint_file.write(other, about, lambda stream: torch.save(content, stream), checkpoint_file.RECORDING)
    return other


def samples(count):
    numbers = torch.Generator().manual_seed(5)
    return [(torch.randn(8, 4, generator=numbers), torch.randn(8, 2, generator=numbers)) for _ in range(count)]


def state_of(runner):
    names = vars(runner._module)
    states = [each for state in names["optimizer"].state.values() for each in state.values()]
    gradients = [parameter.grad for parameter in names["net"].parameters()]
    all_ = [*names["net"].state_dict().values(), *names["averaged"], *states, *gradients]
    return [each.clone() for each in all_] + [torch.get_rng_state()]


@pytest.fixture
def recorded(write):
    """recorded(): the runner of the script, its training and its prediction, which run without Python."""

    def recorded(text=SCRIPT):
        runner = open_runner(write("closure_saved.py", text), {"record": True}, {})
        train, forward = (runner.bind(name, 0)[0] for name in ("ftn_pytorch_train", "ftn_pytorch_forward"))
        for x, target in samples(8):
            train(x, target)
            forward(x)
        return runner, train, forward

    return recorded


@pytest.fixture
def file(recorded, tmp_path):
    path = str(tmp_path / "closure.ftr")
    recorded()[0].save(path)
    return path


def test_two_hundred_steps_with_the_file_in_between(recorded, tmp_path):
    path, folder = str(tmp_path / "closure.ftr"), str(tmp_path / "run")
    runner, train, _ = recorded()
    runner.save(path)
    data = samples(200)
    losses = [train(*each)[1] for each in data]
    expected = state_of(runner)

    saved = load_recording(path)
    again = [saved.train(*each)[1] for each in data[:100]]
    saved.write(folder, step=100)
    runner = open_runner(runner.path, {}, {})
    assert runner.restore(folder) == 100
    train = runner.bind("ftn_pytorch_train", 0)[0]
    again += [train(*each)[1] for each in data[100:]]
    assert all(map(torch.equal, losses, again))
    assert all(map(torch.equal, expected, state_of(runner)))


def test_the_script_restores_the_file_itself_and_the_file_what_the_script_wrote(recorded, tmp_path, file):
    runner, train, _ = recorded()
    data = samples(20)
    runner.restore(file)
    losses = [train(*each)[1] for each in data]
    runner.checkpoint(str(tmp_path / "run"), 3, 7)
    more = [train(*each)[1] for each in data]
    saved = load_recording(file)
    assert all(torch.equal(saved.train(*each)[1], loss) for each, loss in zip(data, losses))
    saved.train(*data[0])
    assert saved.restore(str(tmp_path / "run")) == 7
    assert all(torch.equal(saved.train(*each)[1], loss) for each, loss in zip(data, more))


def test_numbers_of_optimizers_are_those_of_a_scheduler(recorded, tmp_path, file):
    runner, train, _ = recorded()
    runner.restore(file)
    saved = load_recording(file)
    assert saved.get_number("lr") == saved.get_number("optimizer.0.lr") == 1e-2
    losses = []
    for step, each in enumerate(samples(10)):
        vars(runner._module)["optimizer"].param_groups[0]["lr"] = 1e-2 / (step + 1)
        losses.append(train(*each)[1])
    runner.restore(file)  # the random state
    for step, each in enumerate(samples(10)):
        saved.set_number("lr", 1e-2 / (step + 1))
        assert torch.equal(saved.train(*each)[1], losses[step])
    saved.save(str(tmp_path / "rate.ckpt"))
    runner.restore(str(tmp_path / "rate.ckpt"))
    assert vars(runner._module)["optimizer"].param_groups[0]["lr"] == 1e-3


@pytest.mark.parametrize(
    "call, status, text",
    [
        (
            lambda m: m.train(torch.zeros(9, 4), torch.zeros(9, 2)),
            "SHAPE",
            r"x float32 \(8, 4\), target float32 \(8, 2\)",
        ),
        (lambda m: m.train(torch.zeros(8, 4)), "SIGNATURE", "its recordings take"),
        (lambda m: m.train(torch.zeros(8, 4), torch.zeros(8, 2).double()), "DTYPE", "float64"),
        (lambda m: m.forward(torch.zeros(8, 4), y=1), "SIGNATURE", "its recordings take"),
        (lambda m: m.call("nothing"), "HOOK", "has no function nothing; it has ftn_pytorch_"),
        (lambda m: m.get_number("rate"), "ARGUMENT", 'there is no "rate"; there are optimizer.0.lr'),
        (lambda m: m.get_number("betas"), "ARGUMENT", 'there is no "betas"'),
        (lambda m: m.set_number("lr", 0.0), "ARGUMENT", "optimizer.0.lr .* cannot become 0:"),
        (lambda m: m.set_number("lr", float("nan")), "ARGUMENT", "cannot become nan"),
        (lambda m: m.restore("nowhere"), "NO_CHECKPOINT", "does not exist"),
    ],
)
def test_what_does_not_fit_is_refused(file, call, status, text):
    with pytest.raises(FtnPytorchError, match=text) as failure:
        call(load_recording(file))
    assert failure.value.status == status


def test_a_checkpoint_of_another_network_is_refused_and_changes_nothing(recorded, tmp_path, file, write):
    other, *_ = recorded(SCRIPT.replace("16", "12"))
    other.checkpoint(str(tmp_path / "other"), 3, None)
    saved = load_recording(file)
    before = {name: each.clone() for name, each in saved.arrays.items()}
    with pytest.raises(
        FtnPytorchError, match=r"averaged/0 is float32 \(12, 4\) in the file and float32 \(16, 4\) here"
    ):
        saved.restore(str(tmp_path / "other"))
    assert all(torch.equal(each, saved.arrays[name]) for name, each in before.items())


def test_other_files_are_refused(tmp_path, recorded, file):
    runner, *_ = recorded()
    runner.checkpoint(str(tmp_path / "run"), 3, 1)
    with pytest.raises(FtnPytorchError, match="is a checkpoint, which holds no functions"):
        load_recording(str(tmp_path / "run" / "checkpoint-000000000001.ckpt"))
    first = torch.load(file, weights_only=True)["recording"]["functions"]["ftn_pytorch_train"][0]["operations"][0]
    for change, text in [
        (("aten::from_file", *first[1:]), "which a saved recording may not call"),
        (("ftn_pytorch::exchange_rows", *first[1:]), "which a saved recording may not call"),
        (("mkldnn::_linear", *first[1:]), "which a saved recording may not call"),
        (("aten::nothing", *first[1:]), "which this torch lacks"),
        ((*first[:2], "aten::addmm(Tensor self) -> Tensor", *first[3:]), "write the file again with this torch"),
    ]:

        def exchange(recording, change=change):
            recording["functions"]["ftn_pytorch_train"][0]["operations"][0] = change

        with pytest.raises(FtnPytorchError, match=text) as failure:
            load_recording(altered(file, exchange))
        assert failure.value.status == "FORMAT"


def test_fortran_sees_it_through_python(file):
    module = program.load(file)
    assert module.backend == "recording" and "ftn_pytorch_train" in module.functions()
    train = module.bind("ftn_pytorch_train", 0)[0]
    assert train(*samples(1)[0])[1] > 0
    module.bind("ftn_pytorch_set", 0)[0](name="lr", value=0.5)
    assert module.bind("ftn_pytorch_get", 0)[0](name="lr") == 0.5
    for given in (("lr",), ("lr", torch.ones(3)), (1, 0.5), ("lr", 0.5, 0.5)):
        with pytest.raises(FtnPytorchError, match="takes a name and a number"):
            module.bind("ftn_pytorch_set", 0)[0](*given)
    with pytest.raises(FtnPytorchError, match="takes the name of a number"):
        module.bind("ftn_pytorch_get", 0)[0]()
    for options in ({"training": True}, {"compile": True}):
        with pytest.raises(FtnPytorchError, match="is a saved recording"):
            program.load(file, **options)
    with pytest.raises(FtnPytorchError, match="it takes no config"):
        program.load(file, {"lr": 1})


def test_states_of_other_ranks_are_passed_over_and_not_written_again(recorded, tmp_path, file):
    build = build_folder()
    if not next(build.glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("there is no build with a direct path")
    runner, _, _ = recorded()
    checkpoint = runner.found_state()
    encoded = checkpoint._encoded("", checkpoint._collector())
    (tmp_path / "run").mkdir()
    place = str(tmp_path / "run" / "checkpoint-000000000007.ckpt")
    checkpoint_file.write(place, *checkpoint._content_of(7, encoded, {"parts": [1, 2]}, {"1": b"one", "2": b"other"}))
    assert sorted(torch.load(place, weights_only=True)["ranks"]) == ["1", "2"]

    saved = load_recording(file)
    assert saved.restore(str(tmp_path / "run")) == 7
    saved.write(str(tmp_path / "with_python"), step=8)
    beside = Program(build)
    for words in (("load", file), ("restore", f"{tmp_path}/run"), ("checkpoint", f"{tmp_path}/without_python")):
        beside.tell(*words)
    assert beside.end() == 0
    for folder in ("with_python", "without_python"):
        (written,) = (tmp_path / folder).glob("*.ckpt")
        assert "ranks" not in torch.load(written, weights_only=True)
        assert not (checkpoint_file.description(str(written)) or {}).get("parts")


TYPES = sorted({str(each) for each in vars(torch).values() if isinstance(each, torch.dtype)})


@pytest.mark.parametrize("where", ["between", "a constant", "beside"])
def test_each_element_type_runs_without_python_or_is_refused_when_it_is_saved(write, tmp_path, where):
    build = build_folder()
    if not next(build.glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("there is no build with a direct path")
    x, beside, refused = torch.tensor([[1.0, 2.0]]), Program(build), []
    for name in TYPES:
        try:
            constant = torch.tensor([1.0, 2.0]).to(eval(name))
            constant.float(), constant.clone()
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # torch itself does not convert
        used = {"between": f"x.to({name}).float()", "a constant": "x + held.float()", "beside": "x * 2"}[where]
        held = "" if where == "between" else f"held = torch.tensor([1.0, 2.0]).to({name})\n"
        function = f"def ftn_pytorch_forward(x):\n    with torch.no_grad(): return {used}\n"
        text = f"import torch\nnet = torch.nn.Linear(1, 1)\n{held}{function}"
        runner = program.load(write(f"{name.replace('.', '_')}.py", text), record=True)
        forward = program.function(runner, "ftn_pytorch_forward")
        for _ in range(12):
            forward(x)
        path = tmp_path / "types.ftr"
        try:
            runner.save(str(path))
        except FtnPytorchError as failure:
            assert f"numbers of type {name.removeprefix('torch.')}, which a program without" in failure.text
            refused.append(name)
            continue
        beside.tell("load", str(path))
        found, *_ = beside.call("ftn_pytorch_forward", (x,), {}, [x], set(), tmp_path)
        assert torch.equal(found, forward(x)), name
    assert beside.end() == 0
    assert "torch.float8_e4m3fn" not in refused and "torch.uint16" not in refused and "torch.complex32" in refused


def test_a_file_that_was_cut_off_is_damaged_without_python(tmp_path, file):
    """Whatever its name is, as long as the first entry is there."""
    build = build_folder()
    if not next(build.glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("there is no build with a direct path")
    whole = Path(file).read_bytes()
    beside = Program(build)
    for left in (len(whole) - 1, len(whole) - 100, len(whole) // 2, 5000, 200):
        for name in ("cut.ftr", "cut.bin"):
            cut = tmp_path / name
            cut.write_bytes(whole[:left])
            assert f"{name} is damaged: the end of it is missing" in beside.ask("load", str(cut)), left
    cut = tmp_path / "cut.ftr"
    cut.write_bytes(whole[:20])
    assert "cut.ftr is no checkpoint of ftn_pytorch; it is a zip archive" in beside.ask("load", str(cut))
    assert beside.end() == 0


def test_checkpoints_of_before_are_restored_by_scripts_only(recorded, tmp_path, file, monkeypatch):
    from ftn_pytorch.checkpoint import resumption

    runner, *_ = recorded()
    entries = resumption.entries
    monkeypatch.setattr(resumption, "entries", lambda *given: (entries(*given)[0], {}))
    path = str(tmp_path / "before.ckpt")
    runner.save(path)
    runner.restore(path)
    with pytest.raises(FtnPytorchError, match="was written by an earlier version"):
        load_recording(file).restore(path)


def test_its_parameters_are_those_of_the_script(recorded, file):
    net = vars(recorded()[0]._module)["net"]
    runner = program.load_model(file)
    found = runner.require("ftn_pytorch_parameters")()
    assert list(found) == [f"net.{name}" for name, _ in net.named_parameters()]
    x = samples(1)[0][0]
    with torch.no_grad():
        for each in found.values():
            each.zero_()
        found["net.4.bias"].fill_(3.0)
    forward = runner.bind("ftn_pytorch_forward", 0)[0]
    assert torch.equal(forward(x)["flux"], torch.full((8, 2), 3.0))


def test_a_file_of_an_earlier_version_runs_and_tells_no_parameters(file):
    def as_before(recording):
        del recording["parameters"]
        known = ("deterministic", "matmul_precision", "cudnn_tf32")
        recording["settings"] = {name: recording["settings"][name] for name in known}

    x, target = samples(1)[0]
    wanted = load_recording(file).train(x, target)
    saved = load_recording(altered(file, as_before))
    assert torch.equal(saved.train(x, target)[1], wanted[1])
    with pytest.raises(FtnPytorchError, match="earlier version") as failure:
        saved.parameters()
    assert failure.value.status == "HOOK"


@pytest.mark.parametrize("changed", [0.5, float("nan")])
def test_a_file_with_other_numbers_than_the_script_is_not_written(recorded, file, monkeypatch, changed):
    """As one would have whose writer or reader understands a constant otherwise."""
    portable, before = writing.portable, Path(file).read_bytes()

    def altered(*given):
        plain = portable(*given)
        for name, _, _, arguments, _ in plain["operations"]:
            if name.startswith("aten::_foreach_lerp_"):
                arguments[-1] = ("value", changed)
        return plain

    runner, *_ = recorded()
    generator = torch.get_rng_state()
    monkeypatch.setattr(writing, "portable", altered)
    with pytest.raises(FtnPytorchError, match="ftn_pytorch_train gives other numbers out of the file") as failure:
        runner.save(file)
    assert failure.value.status == "HOOK" and "averaged/0" in failure.value.text
    assert Path(file).read_bytes() == before and torch.equal(torch.get_rng_state(), generator)


def test_writing_a_file_changes_nothing_of_the_script(recorded, tmp_path):
    runner, *_ = recorded()
    before, versions = state_of(runner), [each._version for each in vars(runner._module)["net"].parameters()]
    runner.save(str(tmp_path / "closure.ftr"))
    assert all(map(torch.equal, before, state_of(runner)))
    assert versions == [each._version for each in vars(runner._module)["net"].parameters()]


def test_without_the_reader_a_file_is_refused(file, monkeypatch):
    monkeypatch.setattr(extension, "module", lambda: None)
    monkeypatch.setattr(extension, "obstacle", lambda: "it is missing: build it")
    for load in (load_recording, program.load):
        with pytest.raises(FtnPytorchError, match="which cannot be run here: it is missing: build it") as failure:
            load(file)
        assert failure.value.status == "IMPORT"


def test_without_the_plug_in_a_file_is_refused(file, monkeypatch):
    monkeypatch.setattr(extension, "plugin", lambda: "")
    with pytest.raises(FtnPytorchError, match="cannot be run here: there is no libftn_pytorch_direct.so") as failure:
        load_recording(file)
    assert failure.value.status == "IMPORT"


def test_named_tuples_of_containers_come_out_of_a_file(tmp_path):
    step = recorded_function(lambda x: Pair(x * 2, [x + 1, Pair(x, {"y": x})]))
    x = torch.ones(3)
    for _ in range(8):
        expected = step(x)
    save_recording(str(tmp_path / "pair.ftr"), {"step": step}, {})
    found = load_recording(str(tmp_path / "pair.ftr")).call("step", x)
    assert list(found) == ["first", "second"] and torch.equal(found["first"], expected.first)
    plain, inner = found["second"]
    assert torch.equal(plain, x + 1) and torch.equal(inner["first"], x) and torch.equal(inner["second"]["y"], x)
