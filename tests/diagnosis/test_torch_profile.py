# SPDX-License-Identifier: MIT
"""FTN_PYTORCH_TORCH_PROFILE: calls of the program in traces of torch.profiler."""

import json
from pathlib import Path

import pytest

TORCH_SCRIPT = """
import torch

net = torch.nn.Linear(1, 1, dtype=torch.float64)

def ftn_pytorch_forward(x):
    return 2 * x

def ftn_pytorch_train(x, target):
    return False, net(x.reshape(-1, 1)).square().sum()

def fails(x):
    raise ValueError("no such weather")

def threaded(x):
    import threading
    thread = threading.Thread(target=torch.sin, args=(x,))
    thread.start()
    thread.join()
    return 2 * x
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "weather.py"
    path.write_text(TORCH_SCRIPT)
    return path


def crossings(folder: Path) -> list[dict]:
    (trace,) = folder.glob("*.pt.trace.json")
    found = [
        event for event in json.loads(trace.read_text())["traceEvents"] if event.get("name", "").startswith("weather.")
    ]
    return [event for event in found if event["cat"] == "user_annotation"]


def test_chosen_calls_are_named_in_the_trace(run, script, tmp_path) -> None:
    actions = ("forward", "call=fails", "train", "forward", "train")
    run(f"load={script}", *actions, TORCH_PROFILE="prof", TORCH_PROFILE_CALLS="2-4")
    names = [event["name"] for event in crossings(tmp_path / "prof")]
    assert names == ["weather.fails", "weather.ftn_pytorch_train", "weather.ftn_pytorch_forward"]
    (table,) = (tmp_path / "prof").glob("*.txt")
    assert table.stem == "diagnosis_program.rank0"
    text = table.read_text()
    assert text.startswith("calls 2 to 4 of this program\n")
    assert (
        "weather.ftn_pytorch_train" in text and "aten::addmm" in text and "Input Shapes" in text and "CPU Mem" in text
    )


def test_operators_lie_inside_their_call(run, script, tmp_path) -> None:
    run(f"load={script}", "forward", "train", TORCH_PROFILE="prof", TORCH_PROFILE_CALLS="2")
    (call,) = crossings(tmp_path / "prof")
    (trace,) = (tmp_path / "prof").glob("*.pt.trace.json")
    events = json.loads(trace.read_text())["traceEvents"]
    (product,) = (event for event in events if event.get("name") == "aten::addmm")
    assert call["ts"] <= product["ts"] and product["ts"] + product["dur"] <= call["ts"] + call["dur"]
    assert [1, 1] in product["args"]["Input Dims"]


def test_a_program_that_ends_before_the_last_call_has_a_trace(run, script, tmp_path) -> None:
    run(f"load={script}", "forward", "forward", "forward", TORCH_PROFILE="prof", TORCH_PROFILE_CALLS="2-1000")
    assert len(crossings(tmp_path / "prof")) == 2
    (table,) = (tmp_path / "prof").glob("*.txt")
    assert table.read_text().startswith("calls 2 to 3 ")


def test_ranks_write_files_of_their_own(run, script, tmp_path) -> None:
    rank = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}
    run(f"load={script}", "forward", TORCH_PROFILE="prof", TORCH_PROFILE_CALLS="1", environment=rank)
    assert (tmp_path / "prof" / "diagnosis_program.rank3.txt").is_file()


@pytest.mark.parametrize(
    "variables, text",
    [
        ({"TORCH_PROFILE": "file/prof"}, "nothing is profiled: NotADirectoryError: "),
        ({"TORCH_PROFILE": "/proc/prof"}, "nothing is profiled: "),
        (
            {"TORCH_PROFILE": "prof", "TORCH_PROFILE_CALLS": "5-3"},
            "CALLS=5-3: write the first and the last call, such as",
        ),
        ({"TORCH_PROFILE": "prof", "TORCH_PROFILE_CALLS": "all"}, "CALLS=all: write the first and the last call"),
        ({"TORCH_PROFILE": "prof"}, "nothing is in {prof}, since the program has made 2 calls. "),
    ],
)
def test_what_cannot_be_profiled_is_a_warning_and_the_calls_go_on(run, script, tmp_path, variables, text) -> None:
    (tmp_path / "file").touch()
    done = run(f"load={script}", "warnings", "forward", "forward", **variables)
    assert done.stdout.count("forward FTN_PYTORCH_OK") == 2
    assert text.format(prof=tmp_path / "prof") in done.stderr


def test_scripts_without_torch_are_left_alone(run, tmp_path) -> None:
    plain = tmp_path / "plain.py"
    plain.write_text("import numpy\ndef ftn_pytorch_forward(x): return 2 * x\n")
    done = run(f"load={plain}", "forward", TORCH_PROFILE="prof", TORCH_PROFILE_CALLS="1")
    assert "forward FTN_PYTORCH_OK" in done.stdout and not (tmp_path / "prof").exists()
