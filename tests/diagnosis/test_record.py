# SPDX-License-Identifier: MIT
"""FTN_PYTORCH_RECORD and its replay, without Fortran."""

import json
import shutil
import signal
import sys

import numpy
import pytest


def test_first_calls_are_written_with_their_arrays(run, script, tmp_path) -> None:
    run(f"load={script}", *["forward"] * 3, RECORD="calls", RECORD_CALLS=2)
    folder = tmp_path / "calls"
    assert sorted(path.name for path in folder.iterdir()) == ["call-0001", "call-0002", "module-1", "record.json"]
    with numpy.load(folder / "call-0001" / "call.npz", allow_pickle=False) as arrays:
        numpy.testing.assert_array_equal(arrays["array0"], [[1, 2, 3], [4, 5, 6]])
    with numpy.load(folder / "call-0001" / "result.npz", allow_pickle=False) as arrays:
        numpy.testing.assert_array_equal(arrays["array0"], [[2, 4, 6], [8, 10, 12]])
    assert (folder / "module-1" / "weather.py").read_text() == script.read_text()
    assert json.loads((folder / "module-1" / "load.json").read_text())["file"] == str(script)


def test_ten_calls_are_recorded_by_default(run, script, tmp_path) -> None:
    run(f"load={script}", *["forward"] * 12, RECORD="calls")
    assert len(list((tmp_path / "calls").glob("call-*"))) == 10


def test_replay_gives_the_same(run, script, tmp_path, command) -> None:
    run(f"load={script}", "forward", "train", "out", "call=fails", RECORD="calls")
    lines = command("check", tmp_path / "calls").stdout.splitlines()
    assert lines == [
        "call 1: weather.ftn_pytorch_forward: the same",
        "call 2: weather.ftn_pytorch_train: the same",
        "call 3: weather.fill: the same",
        "call 4: weather.fails: the same",
    ]


def test_replay_of_a_changed_script_names_the_difference(run, script, tmp_path, command) -> None:
    run(f"load={script}", "forward", "out", "train", RECORD="calls")
    changed = tmp_path / "changed.py"
    changed.write_text(
        script.read_text().replace("2 * x", "2 * x + 1").replace("3 * x", "4 * x").replace("+ 0.5", "+ 1")
    )
    done = command("check", tmp_path / "calls", "--script", changed, code=1)
    first, second, third = done.stdout.splitlines()
    assert first.endswith("differs from the recording by up to 1")
    assert second.endswith("changed arguments /1/out differs from the recording by up to 6")
    assert third.endswith("is 1.0, recorded 0.5")


def test_copy_runs_where_the_script_has_changed(run, script, tmp_path, command) -> None:
    run(f"load={script}", "forward", RECORD="calls")
    script.write_text("def ftn_pytorch_forward(x): return x\n")
    done = command("check", tmp_path / "calls")
    assert "has changed since: the copy of the recording runs" in done.stderr
    assert done.stdout.endswith("the same\n")


STATE = """
import random
import torch
torch.nn.Linear(1, 1)
# The loss depends on the bias whatever the dropout leaves out
net = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 3))
optimizer = torch.optim.Adam(net.parameters())
def ftn_pytorch_train(x, target):
    loss = torch.nn.functional.mse_loss(net(x), target) + random.random()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    return False, loss
"""


def test_training_with_random_numbers_is_replayed(run, tmp_path, command) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "training.py"
    path.write_text(STATE)
    run(f"load={path}", *["train"] * 4, RECORD="calls")
    assert command("check", tmp_path / "calls").stdout.count("the same") == 4
    assert command("check", tmp_path / "calls", "--call", 3).stdout == "call 3: training.ftn_pytorch_train: the same\n"
    # without the calls before it the network is another
    assert "differs" in command("check", tmp_path / "calls", "--call", 3, "--alone", code=1).stdout


def test_a_call_that_ended_the_program_can_be_run_again(run, script, tmp_path, command) -> None:
    run(f"load={script}", "forward", "call=crash", RECORD="calls", code=-signal.SIGSEGV)
    harmless = tmp_path / "harmless.py"
    harmless.write_text(script.read_text().replace("ctypes.string_at(0)", "pass"))
    done = command("check", tmp_path / "calls", "--call", 2, "--script", harmless)
    assert "nothing to compare with: the program ended in this call" in done.stdout


def test_debugger_stops_in_the_function(run, script, tmp_path, command) -> None:
    run(f"load={script}", "forward", RECORD="calls")
    done = command("check", tmp_path / "calls", "--pdb", cold=True, input="p 'shape', x.shape\ncontinue\n")
    assert "-> return 2 * x" in done.stdout
    assert "('shape', (2, 3))" in done.stdout


def test_ranks_have_folders_of_their_own(run, script, tmp_path, command) -> None:
    ranks = {"PMI_SIZE": "2", "PMI_RANK": "1"}
    run(f"load={script}", "forward", RECORD="calls", environment=ranks)
    assert command("check", tmp_path / "calls" / "rank-1").stdout.endswith("the same\n")
    assert "name one of its folders rank-1" in command("check", tmp_path / "calls", code=2).stderr


def test_an_older_recording_is_kept(run, script, tmp_path) -> None:
    run(f"load={script}", "forward", RECORD="calls")
    before = (tmp_path / "calls" / "call-0001" / "call.json").read_bytes()
    assert "forward FTN_PYTORCH_OK 12" in run(f"load={script}", "forward", "train", RECORD="calls").stdout
    assert (tmp_path / "calls" / "call-0001" / "call.json").read_bytes() == before
    assert not (tmp_path / "calls" / "call-0002").exists()


def test_recording_changes_nothing_of_the_call(run, script, tmp_path) -> None:
    plain = run(f"load={script}", *["forward"] * 4, "out", "call=fails").stdout
    shutil.rmtree(tmp_path / "calls", ignore_errors=True)
    observed = run(
        f"load={script}", *["forward"] * 4, "out", "call=fails", RECORD="calls", TRACE="t.json", LOG="debug", PROFILE=1
    )
    assert observed.stdout == plain


def test_what_cannot_be_replayed_is_told(tmp_path, command) -> None:
    assert "holds no record.json, which runs with FTN_PYTORCH_RECORD" in command("check", tmp_path, code=2).stderr
    (tmp_path / "record.json").write_text("{}")
    assert "a file in it lacks 'format'" in command("check", tmp_path, code=2).stderr
    (tmp_path / "record.json").write_text('{"format": 99}')
    assert "its format is 99" in command("check", tmp_path, code=2).stderr


def test_strided_arrays_come_back_as_they_were(tmp_path) -> None:
    sys.path.insert(0, "python")
    from ftn_pytorch.diagnosis.call_files import CallReader, CallWriter

    base = numpy.arange(24.0).reshape(4, 6)
    values = [
        base[::2, ::3],
        base.T,
        base[::-1],
        base[:0],
        numpy.float32(2.5),
        1 + 2j,
        float("nan"),
        "text",
        None,
        True,
    ]
    store = CallWriter()
    store.write(tmp_path, "x", {"tree": store.add(values)})
    stored = CallReader(tmp_path, "x")
    found = stored.value(stored.facts["tree"])
    for one, other in zip(values[:4], found):
        assert one.strides == other.strides or one.size == 0
        numpy.testing.assert_array_equal(one, other)
    assert (
        found[4] == numpy.float32(2.5)
        and found[5:][0] == 1 + 2j
        and found[6] != found[6]
        and found[7:] == ["text", None, True]
    )
