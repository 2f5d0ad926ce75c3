# SPDX-License-Identifier: MIT
"""Recorded calls and values in files, without a Fortran program; tests/diagnosis has the whole way."""

import json

import numpy
import pytest

import program
from ftn_pytorch import __main__
from ftn_pytorch.diagnosis import call_recorder
from ftn_pytorch.diagnosis.call_files import CallReader, CallWriter
from played_mpi import FIRST_OF_TWO

NOISE = """
import random
import numpy
def ftn_pytorch_forward(x, scale=1.0):
    x += 1
    return x * scale + random.random() + numpy.random.rand()
"""


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """The recorder of this process, for five calls."""
    made = call_recorder.Recorder(tmp_path / "calls", 5)
    monkeypatch.setattr(call_recorder, "recorder", lambda: made)
    return made


def call(runner, *args, **kwargs):
    function = program.function(runner, "ftn_pytorch_forward")
    begun = program.record_begin(runner, "ftn_pytorch_forward", 0, args, kwargs)
    result = function(*args, **kwargs)
    program.record_end(begun, result, None)
    return result


def replay(tmp_path, monkeypatch, *arguments):
    monkeypatch.setattr(call_recorder, "recorder", lambda: None)
    return __main__.main(["check", str(tmp_path / "calls"), *arguments])


def test_replay_gives_the_same(load, recorder, tmp_path, monkeypatch, capsys):
    runner = load(NOISE, layout="same", cast=True)
    x = numpy.arange(12.0).reshape(3, 4)
    call(runner, x[:, ::2], scale=2.0)
    call(runner, x.T)
    assert replay(tmp_path, monkeypatch) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"call {number}: model.ftn_pytorch_forward: the same" for number in (1, 2)
    ]


def test_no_call_is_recorded_beyond_the_limit(load, tmp_path, monkeypatch):
    monkeypatch.setattr(call_recorder, "USUAL_LIMIT", 1024)
    made = call_recorder.Recorder(tmp_path / "calls", 5)
    monkeypatch.setattr(call_recorder, "recorder", lambda: made)
    runner = load(NOISE)
    call(runner, numpy.zeros(40))  # 320 bytes, changed in place, and as many come out
    with pytest.warns(match="no call is recorded after number 1, the next one goes beyond FTN_PYTORCH_LOG_LIMIT"):
        call(runner, numpy.zeros(40))
    call(runner, numpy.zeros(1))
    folders = [path.name for path in (tmp_path / "calls").glob("call-*")]
    assert folders == ["call-0001"] and (tmp_path / "calls" / "call-0001" / "result.json").exists()


def test_a_module_that_is_freed_is_forgotten(recorder, tmp_path):
    """Another object may get its id."""

    class Runner:
        path = str(tmp_path / "script.py")

    (tmp_path / "script.py").write_text(NOISE)
    runner = Runner()
    recorder.loaded(runner, {}, {}, recorder.before_load())
    assert recorder.begin(runner, "step", 0, (), {}) and recorder.begin(Runner(), "step", 0, (), {}) == ()
    was = id(runner)
    del runner
    others = [Runner()]
    while id(others[-1]) != was and len(others) < 1_000_000:  # memory that is free elsewhere may be taken before
        others.append(Runner())
    assert id(others[-1]) == was
    assert recorder.begin(others[-1], "step", 0, (), {}) == ()


def test_replay_needs_no_ranks(mpi, load, recorder, tmp_path, monkeypatch):
    call(load(NOISE, communicator=FIRST_OF_TWO), numpy.zeros(2))
    mpi.initialised = 0
    assert replay(tmp_path, monkeypatch) == 0


def test_replay_finds_another_result_and_another_change(load, recorder, tmp_path, monkeypatch, capsys):
    call(load(NOISE), numpy.zeros(2))
    (tmp_path / "other.py").write_text(NOISE.replace("x += 1", "x += 3"))
    assert replay(tmp_path, monkeypatch, "--script", str(tmp_path / "other.py")) == 1
    out = capsys.readouterr().out
    assert "result values 1 differs from the recording by up to 2" in out
    assert "changed arguments /0/0 differs from the recording by up to 2" in out


def test_half_precision_on_the_host_is_replayed(load, recorder, tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    call(load("import torch\ndef ftn_pytorch_forward(x): return torch.sin(x)\n"), torch.ones(3, dtype=torch.bfloat16))
    result = CallReader(tmp_path / "calls" / "call-0001", "result").value({"~": "tensor", "at": "/values/0"})
    assert result.dtype == torch.bfloat16
    assert replay(tmp_path, monkeypatch) == 0


def test_a_recording_of_another_format_is_refused(load, recorder, tmp_path, monkeypatch, capsys):
    call(load(NOISE), numpy.zeros(2))
    place = tmp_path / "calls" / "record.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "format": 1}))
    assert replay(tmp_path, monkeypatch) == 2
    assert "its format is 1, this version reads 2: record the calls again" in capsys.readouterr().err


def there_and_back(tmp_path, value):
    store = CallWriter()
    store.write(tmp_path, "x", {"tree": store.add(value)})
    stored = CallReader(tmp_path, "x")
    return stored.value(stored.facts["tree"])


def test_tensors_come_back_as_they_were(tmp_path):
    torch = pytest.importorskip("torch")
    base = torch.arange(24.0).reshape(4, 6)
    values = [base[::2, ::3], base.t(), torch.ones(2, requires_grad=True), base.bfloat16(), torch.tensor(1)]
    for one, other in zip(values, there_and_back(tmp_path, values)):
        assert torch.equal(one, other)
        assert (one.dtype, one.stride(), one.requires_grad) == (other.dtype, other.stride(), other.requires_grad)


def test_plain_values_come_back_as_they_were(tmp_path):
    assert there_and_back(tmp_path, numpy.zeros((0, 3), "int8")).shape == (0, 3)
    values = {"a": [1, 2.5, float("inf"), -0.0, 1 + 2j, "text", None, True], "b": (1, "x"), "c": numpy.float32(2.5)}
    found = there_and_back(tmp_path, values)
    assert found == values
    assert type(found["c"]) is numpy.float32


def test_unknown_objects_are_described(tmp_path):
    with pytest.raises(ValueError, match="an object of type builtins.object was passed"):
        there_and_back(tmp_path, [1, {"x": object()}])


def test_changes_are_arrays_that_are_different_now(tmp_path):
    args, kwargs = [numpy.zeros(2), [numpy.ones(3)]], {"out": numpy.zeros(1)}
    store = CallWriter()
    store.add([args, kwargs])
    assert store.changes([args, kwargs]) == {}
    args[1][0][1] = 5
    kwargs["out"][0] = 1
    changes = store.changes([args, kwargs])
    assert list(changes) == ["/0/1/0", "/1/out"]
    assert changes["/1/out"] is kwargs["out"]


# ---- what cannot be recorded


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "complex32", "uint16"])
def test_types_that_numpy_lacks_come_back(tmp_path, dtype):
    torch = pytest.importorskip("torch")
    value = torch.arange(6, dtype=torch.uint8).view(3, 2).to(torch.float32).to(getattr(torch, dtype))
    found = there_and_back(tmp_path, value)
    assert found.dtype == value.dtype
    assert torch.equal(found.to(torch.complex64), value.to(torch.complex64))


@pytest.mark.parametrize("kind", ["object", "sparse"])
def test_array_that_cannot_be_stored_is_warned_of(load, recorder, tmp_path, kind):
    torch = pytest.importorskip("torch")
    value = numpy.array([None]) if kind == "object" else torch.eye(3).to_sparse()
    runner = load("def ftn_pytorch_forward(x): return 1\n")
    with pytest.warns(UserWarning, match=f"call.json lacks a value, so this call cannot be replayed: .*{kind}"):
        assert call(runner, value) == 1


@pytest.mark.parametrize("name", ["record.json", "module-1", "call-0001"])
def test_folder_with_a_recording_is_kept_and_nothing_is_recorded(load, tmp_path, monkeypatch, name):
    (tmp_path / "calls" / name).mkdir(parents=True)
    monkeypatch.setenv("FTN_PYTORCH_RECORD", str(tmp_path / "calls"))
    monkeypatch.setattr(call_recorder, "_tried", False)
    with pytest.warns(UserWarning, match="nothing is recorded: .* holds a recording already"):
        runner = load("def ftn_pytorch_forward(x): return 2 * x\n")
    assert call(runner, numpy.ones(2)).tolist() == [2, 2]
    assert [entry.name for entry in (tmp_path / "calls").iterdir()] == [name]


@pytest.mark.parametrize("obstacle", ["module-1", "call-0001"])
def test_recording_that_fails_ends_and_the_call_goes_on(load, recorder, tmp_path, obstacle):
    (tmp_path / "calls" / obstacle).write_text("in the way")
    with pytest.warns(UserWarning, match="nothing more is recorded: FileExistsError"):
        runner = load("def ftn_pytorch_forward(x): return 2 * x\n")
        assert call(runner, numpy.ones(2)).tolist() == [2, 2]
    assert call(runner, numpy.ones(2)).tolist() == [2, 2]


COUNTS = """
calls, weights = 0, [1.0]
def ftn_pytorch_forward(x):
    global calls
    calls += 1
    weights[0] *= 2
    return x * weights[0] + calls
"""


@pytest.mark.parametrize("hooks", ["", "def ftn_pytorch_save(file): open(file, 'w').write(repr([calls, weights]))"])
def test_replay_restores_where_the_program_did(load, recorder, tmp_path, monkeypatch, capsys, hooks):
    """The checkpoint itself is gone by then: a run keeps the latest only."""
    read = "def ftn_pytorch_restore(file):\n    global calls, weights\n    calls, weights = eval(open(file).read())\n"
    text = f"{COUNTS}\n{hooks}\n{read if hooks else ''}"
    before, x = load(text, name="before.py"), numpy.ones(2)
    program.call(before, "ftn_pytorch_forward", x)
    program.checkpoint(before, str(tmp_path / "kept"))
    runner = load(text)
    call(runner, x)
    program.restore(runner, str(tmp_path / "kept"))
    for _ in range(2):
        call(runner, x)
    next((tmp_path / "kept").glob("*.ckpt")).unlink()
    program.restore(runner, str(tmp_path / "calls" / "module-2" / "restored-2"))
    call(runner, x)
    for chosen in ([], ["--call", "3"], ["--call", "2", "--alone"], ["--call", "4", "--alone"]):
        assert replay(tmp_path, monkeypatch, *chosen) == 0, capsys.readouterr().out
        assert "the same" in capsys.readouterr().out


def test_replay_loads_again_where_the_program_did(load, recorder, tmp_path, monkeypatch, capsys):
    runner, x = load(COUNTS), numpy.ones(2)
    for _ in range(2):
        call(runner, x)
    (tmp_path / "model.py").write_text(COUNTS.replace("*= 2", "*= 3"))
    program.reload(runner)
    for _ in range(2):
        call(runner, x)
    assert replay(tmp_path, monkeypatch) == 0
    assert capsys.readouterr().out.count("the same") == 4


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_replay_has_the_weights_that_were_published(write, load, recorder, tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(2, 1)
    path = write("net.pt", "")
    torch.jit.script(net).save(path)
    model, x = program.load_model(path), torch.ones(2)
    call(model, x)
    trained = load("import torch\nnet = torch.nn.Linear(2, 1)")
    program.assign(model, program.weights(trained, "net"))
    call(model, x)
    assert replay(tmp_path, monkeypatch) == 0, capsys.readouterr().out
