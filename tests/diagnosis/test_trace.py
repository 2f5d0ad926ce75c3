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
    [("12.4", ["ftn_pytorch_forward", "inside", "end", "fails", "end", "report"]), (None, ["inside"])],
)
def test_ranges_of_nvtx_are_opened_where_there_is_cuda(run, tmp_path, cuda, ranges) -> None:
    # a stand-in for a torch with CUDA: it is put where the import of torch would have put it
    path = tmp_path / "ranges.py"
    path.write_text(CUDA.format(cuda=cuda) + "def place(x): sys.modules['torch'] = torch\n")
    done = run(f"load={path}", "call=place", "forward", "call=fails", "call=report", TRACE="trace.json")
    assert f"ranges {ranges}" in done.stdout
