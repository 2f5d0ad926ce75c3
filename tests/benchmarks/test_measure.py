# SPDX-License-Identifier: MIT
"""The processes that measure: what they answer becomes rows, and one that fails is one line of the result."""

import dataclasses
import shutil
import sys

import pytest
from harness.turns import QUICK
from harness.worker import Unavailable, Worker
from paths.measure import Setting, linked_file, measure_case, measure_starts, open_size
from paths.memory import memory_of


def measure(setting, *paths, sizes=(32,)):
    return measure_case("mlp", sizes, paths, setting, QUICK, lambda text: None)


def test_times_and_ratios_come_from_the_answers(document):
    script = next(row for row in document["results"] if row["path"] == "script")
    assert script["call_us"]["median"] == 10.1 and script["load_ms"] == 2
    assert script["ratio"] == pytest.approx(1.01)
    assert script["difference_us"] == pytest.approx(0.1)


def test_starts_are_processes_of_their_own(setting):
    outcome = measure_starts("mlp", 32, ["script", "python"], setting, 3)
    assert [row["path"] for row in outcome.cold] == ["script", "python"]
    row = outcome.cold[0]
    assert (row["load_ms"], row["first_call_ms"]) == (2, 1) and row["start_ms"] > 0
    assert row["total_ms"]["samples"] == 3
    assert row["total_ms"]["min"] == pytest.approx(row["start_ms"] + 3)
    assert row["peak_mib"] > row["dirty_mib"] > 0.1 and row["private_mib"] >= row["dirty_mib"]
    assert row["has_python"]


def test_what_cannot_start_is_a_line_of_the_result_once(setting):
    outcome = measure_starts("mlp", 32, ["copy", "pt2", "script"], setting, 3)
    assert [row["path"] for row in outcome.cold] == ["script"]
    assert [(line["path"], line["reason"]) for line in outcome.unavailable] == [
        ("copy", "the process ended with code 1: out of luck"),
        ("pt2", "no compiler"),
    ]


def test_a_wrong_first_result_is_no_start(setting):
    outcome = measure_starts("mlp", 32, ["direct"], setting, 3)
    assert outcome.cold == [] and [row["path"] for row in outcome.wrong] == ["direct"]


def test_a_process_runs_on_its_core_from_the_beginning(setting):
    program = "import os; print('>> started 0', *os.sched_getaffinity(0), flush=True); input()"
    worker = Worker([sys.executable, "-c", program], {}, setting.core)
    assert worker.description == str(setting.core)
    worker.close()


def write_process(folder, maps):
    """A folder of /proc with 3 MiB at most, 2 MiB private."""
    folder.mkdir()
    (folder / "status").write_text("Name:\tx\nVmHWM:\t 3072 kB\nThreads:\t1\n")
    (folder / "smaps_rollup").write_text(
        "1000-2000 ---p 00000000 00:00 0 [rollup]\nRss: 3000 kB\nPrivate_Clean: 512 kB\nPrivate_Dirty: 1536 kB\n"
    )
    (folder / "maps").write_text("".join(f"1000-2000 r-xp 00000000 00:00 0 {name}\n" for name in maps))
    return folder


@pytest.mark.parametrize(
    "mapped, expected",
    [
        ("/usr/lib/libpython3.11.so.1.0", True),
        ("/usr/bin/python3.11", True),
        ("/opt/python3.11/site-packages/torch/lib/libtorch_cpu.so", False),
        ("[heap]", False),
    ],
)
def test_memory_is_that_of_proc(mapped, expected, tmp_path):
    memory = memory_of(write_process(tmp_path / "process", ["/usr/lib/libc.so.6", mapped]))
    assert (memory.peak, memory.private, memory.dirty) == (3 << 20, 2 << 20, 3 << 19)
    assert memory.has_python == expected


@pytest.mark.parametrize("missing", ["VmHWM", "Private_Dirty"])
def test_memory_that_the_system_does_not_tell_is_not_guessed(missing, tmp_path):
    folder = write_process(tmp_path / "process", [])
    for name in ("status", "smaps_rollup"):
        lines = (folder / name).read_text().splitlines()
        (folder / name).write_text("\n".join(line for line in lines if missing not in line))
    with pytest.raises(Unavailable, match=f"its memory is not known: .*{missing}"):
        memory_of(folder)


@pytest.mark.parametrize(
    "path, reason",
    [
        ("onnx", "there is no such thing"),
        ("copy", "the process ended with code 1: out of luck"),
        ("compiled", "the process ended with code 1: out of luck"),
        ("torchscript", "the process answered: garbled"),
    ],
)
def test_a_worker_that_fails_is_a_line_of_the_result_and_the_others_are_measured(setting, path, reason):
    outcome = measure(setting, path, "python", "script", sizes=(32, 256))
    assert outcome.unavailable == [{"case": "mlp", "size": size, "path": path, "reason": reason} for size in (32, 256)]
    assert [(row["size"], row["path"]) for row in outcome.results] == [
        (32, "python"),
        (32, "script"),
        (256, "python"),
        (256, "script"),
    ]


def test_a_size_whose_models_could_not_be_written_is_a_line_of_the_result(setting):
    outcome = measure(setting, "python", "script", sizes=(512, 32))
    assert [(line["size"], line["path"]) for line in outcome.unavailable] == [(512, "python"), (512, "script")]
    assert outcome.unavailable[0]["reason"].startswith("models.py failed")
    assert {row["size"] for row in outcome.results} == {32}


def test_a_run_without_plain_python_has_no_ratios(setting):
    (row,) = measure(setting, "script").results
    assert "ratio" not in row and row["call_us"]["min"] == 10.1


def test_a_program_that_cannot_be_started_is_a_line_of_the_result(setting, monkeypatch):
    monkeypatch.setattr(type(setting), "command", lambda self, case, path: ["./there-is-no-such-program"])
    (line,) = measure(setting, "script").unavailable
    assert "there-is-no-such-program" in line["reason"]


def test_a_worker_that_has_ended_has_no_memory(setting):
    worker = Worker(setting.command("mlp", "copy"), {})
    assert memory_of(worker.pid).peak > 0
    with pytest.raises(Unavailable, match="out of luck"):
        open_size(worker, 1)
    with pytest.raises(Unavailable, match="its memory is not known"):
        memory_of(worker.pid)
    assert not worker.is_running()
    worker.pin(0)
    worker.close()


def test_a_program_that_says_nothing_is_no_worker():
    with pytest.raises(Unavailable, match="ended with code 3: it said nothing"):
        Worker([sys.executable, "-c", "raise SystemExit(3)"], {})


def test_a_driver_of_another_library_is_linked_with_that(setting, tmp_path):
    """Otherwise its column would have the times of the library whose modules have the same names."""
    assert linked_file(sys.executable, "libc.so").startswith("/") and linked_file(sys.executable, "libc") is not None
    assert linked_file(sys.executable, "libftorch.so") is None
    real = Setting(**{**dataclasses.asdict(setting), "driver": tmp_path / "bench_driver"})
    assert real.refusal("mlp", "ftorch", 32) == "the benchmark was built without FTorch"
    shutil.copy(sys.executable, tmp_path / "bench_driver_ftorch")
    outcome = measure_starts("mlp", 32, ["ftorch"], real, 1)
    assert outcome.cold == []
    assert [line["reason"] for line in outcome.unavailable] == [
        "bench_driver_ftorch is not linked with libftorch.so, so another library would be measured: build it again"
    ]
