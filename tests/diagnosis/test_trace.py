# SPDX-License-Identifier: MIT
"""FTN_PYTORCH_TRACE: Chrome's trace format, complete at any time."""

import json
import signal
from pathlib import Path

import pytest


def events_of(path: Path, category: str) -> list[dict]:
    return [event for event in json.loads(path.read_text()) if event.get("cat") == category]


def test_python_part_lies_inside_its_crossing(run, script, tmp_path) -> None:
    run(f"load={script}", "forward", "train", "call=fails", TRACE="trace.json")
    crossings = events_of(tmp_path / "trace.json", "crossing")
    inner = events_of(tmp_path / "trace.json", "python")
    names = ["weather.ftn_pytorch_forward", "weather.ftn_pytorch_train", "weather.fails"]
    assert [event["name"] for event in crossings] == [event["name"] for event in inner] == names
    for outer, part in zip(crossings, inner):
        assert outer["ph"] == part["ph"] == "X"
        assert outer["pid"] == part["pid"] == 0 and outer["tid"] == part["tid"]
        assert outer["ts"] <= part["ts"] and part["ts"] + part["dur"] <= outer["ts"] + outer["dur"] + 0.001
    assert [event["args"]["status"] for event in crossings] == ["FTN_PYTORCH_OK"] * 2 + ["FTN_PYTORCH_ERR_PYTHON"]
    assert [event["name"] for event in events_of(tmp_path / "trace.json", "load")] == ["load of weather"]


STATE = ("save=state.ckpt", "restore=state.ckpt", "checkpoint=steps", "restore=steps", "restore=nowhere", "reload")


def test_files_of_the_state_are_crossings_too(run, script, tmp_path) -> None:
    script.write_text(script.read_text() + "\nkept = numpy.ones(3)\n")
    run(f"load={script}", "forward", *STATE, "train", TRACE="trace.json")
    crossings = events_of(tmp_path / "trace.json", "crossing")
    found = [
        (event["name"], event["args"]["status"].removeprefix("FTN_PYTORCH_"), event["args"].get("file"))
        for event in crossings
    ]
    assert found == [
        ("weather.ftn_pytorch_forward", "OK", None),
        ("save of weather", "OK", "state.ckpt"),
        ("restore of weather", "OK", "state.ckpt"),
        ("checkpoint of weather", "OK", "steps"),
        ("restore of weather", "OK", "steps"),
        ("restore of weather", "ERR_NO_CHECKPOINT", "nowhere"),
        ("reload of weather", "OK", None),
        ("weather.ftn_pytorch_train", "OK", None),
    ]
    ends = [event["ts"] + event["dur"] for event in crossings]
    assert all(end <= event["ts"] + 0.001 for end, event in zip(ends, crossings[1:]))


def test_direct_path_is_traced_alike(run, saved_model, tmp_path) -> None:
    optimizer = "call=ftn_pytorch_create_optimizer_sgd"
    run(
        f"direct={saved_model}",
        "forward",
        optimizer,
        "train",
        "save=again.pt",
        "restore=again.pt",
        "checkpoint=steps",
        "reload",
        TRACE="trace.json",
    )
    crossings = events_of(tmp_path / "trace.json", "crossing")
    assert [(event["name"], event["args"]["status"].removeprefix("FTN_PYTORCH_")) for event in crossings] == [
        ("net.ftn_pytorch_forward", "OK"),
        ("net.ftn_pytorch_create_optimizer_sgd", "ERR_ARGUMENT"),  # an array is no learning rate
        ("net.ftn_pytorch_train", "ERR_HOOK"),
        ("save of net", "OK"),
        ("restore of net", "OK"),
        ("checkpoint of net", "ERR_HOOK"),
        ("reload of net", "OK"),
    ]
    assert not events_of(tmp_path / "trace.json", "python")


def test_file_is_complete_when_the_program_is_killed(run, script, tmp_path) -> None:
    run(f"load={script}", "forward", "forward", "kill", TRACE="trace.json", code=-signal.SIGKILL)
    assert len(events_of(tmp_path / "trace.json", "crossing")) == 2


def test_each_rank_has_a_file_and_each_thread_a_track(run, script, tmp_path) -> None:
    ranks = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}
    run(f"load={script}", "threads", TRACE="trace.json", environment=ranks)
    events = events_of(tmp_path / "trace.1.json", "crossing")
    assert {event["pid"] for event in events} == {1}
    assert len(events) == 6 and len({event["tid"] for event in events}) == 2


def test_names_are_escaped(run, tmp_path) -> None:
    odd = tmp_path / 'a "b".py'
    odd.write_text("def ftn_pytorch_forward(x): return x\n")
    run(f"load={odd}", "forward", TRACE="trace.json")
    assert events_of(tmp_path / "trace.json", "crossing")[0]["name"] == 'a "b".ftn_pytorch_forward'


@pytest.mark.parametrize("what", ["TRACE", "LOG"])
def test_a_file_that_cannot_be_written_is_a_warning_and_calls_go_on(run, script, what) -> None:
    variables = {"TRACE": "no/such/folder.json"} if what == "TRACE" else {"LOG": "info", "LOG_FILE": "no/such/folder"}
    done = run(f"load={script}", "forward", **variables)
    assert "forward FTN_PYTORCH_OK 12" in done.stdout
    assert done.stderr == ""  # this program has registered nobody for warnings


CUDA = """
import sys, types
opened = []
torch = types.ModuleType("torch")
class Tensor: pass
class device: pass
torch.Tensor = Tensor
torch.__version__ = "9.9"
torch.get_num_threads = lambda: 1
torch.version = types.SimpleNamespace(cuda={cuda!r}, hip=None)
torch.cuda = types.SimpleNamespace(
    is_available=lambda: True, is_initialized=lambda: False,
    nvtx=types.SimpleNamespace(range_push=lambda name: opened.append(name), range_pop=lambda: opened.append("end")))
ftn_pytorch_framework = "numpy"
def ftn_pytorch_forward(x):
    opened.append("inside")
    return x
def fails(x):
    raise ValueError
def report(x):
    del sys.modules["torch"]
    print("ranges", opened)
"""


@pytest.mark.parametrize(
    "cuda, ranges",
    [
        ("12.4", ["ranges.ftn_pytorch_forward", "inside", "end", "ranges.fails", "end", "ranges.report"]),
        (None, ["inside"]),
    ],
)
def test_ranges_of_nvtx_are_opened_where_there_is_cuda(run, tmp_path, cuda, ranges) -> None:
    # a stand-in for a torch with CUDA: it is put where the import of torch would have put it
    path = tmp_path / "ranges.py"
    path.write_text(CUDA.format(cuda=cuda) + "def place(x): sys.modules['torch'] = torch\n")
    done = run(f"load={path}", "call=place", "forward", "call=fails", "call=report", TRACE="trace.json")
    assert f"ranges {ranges}" in done.stdout
