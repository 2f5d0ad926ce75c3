# SPDX-License-Identifier: MIT
"""The log of a training: rows by step, never twice, also after a restart."""

import os
import re
import resource
import signal
from pathlib import Path

import pytest
import torch

from ftn_pytorch.kit import Log
from ftn_pytorch.kit.log import line
from ftn_pytorch.system.process import FtnPytorchWarning


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "run" / "log.csv")


def lines(path):
    with open(path) as file:
        return file.read().splitlines()


def written(path, steps, **values):
    log = Log(path)
    for step in steps:
        log.write(step, **(values or {"loss": 1 / step}))
    return log


def test_rows(path):
    log = Log(Path(path))
    log.write(1, loss=torch.tensor(0.5), lr=1e-3, count=7)
    log.write(2, loss=float("nan"), lr=torch.tensor(0.1, dtype=torch.float64), count=torch.tensor(8))
    log.flush()
    assert lines(path) == ["step,loss,lr,count", "1,0.5,0.001,7", "2,nan,0.1,8.0"]


def test_columns_may_come_later_and_be_left_out(path):
    log = Log(path)
    log.write(1, loss=1.0)
    log.write(2, score=3.0, loss=2.0)
    log.write(3, score=4.0)
    log.flush()
    assert lines(path) == ["step,loss,score", "1,1.0,", "2,2.0,3.0", "3,,4.0"]


def test_a_restart_cuts_the_file_at_the_restored_step(path):
    log = written(path, [1, 2, 3])
    state = log.state_dict()
    for step in (4, 5, 17):
        log.write(step, loss=step, other=1)
    del log
    with open(path, "a") as file:
        file.write("18,0.")  # killed within a row
    again = Log(path)
    again.load_state_dict(state)
    assert len(lines(path)) == 8, "not before there is a row to write"
    again.write(10, loss=10.0)
    again.flush()
    assert [each.split(",")[:2] for each in lines(path)[1:]] == [
        ["1", "1.0"],
        ["2", "0.5"],
        ["3", repr(1 / 3)],
        ["10", "10.0"],
    ]


def test_going_back_in_the_same_process_cuts_it_too(path):
    log = written(path, [1, 2])
    state = log.state_dict()
    log.write(3, loss=3.0)
    log.load_state_dict(state)
    log.write(3, loss=4.0)
    log.flush()
    assert lines(path)[2:] == ["2,0.5", "3,4.0"]


def test_a_new_run_keeps_the_old_file(path):
    written(path, [1, 2, 3]).flush()
    written(path, [1]).flush()
    assert lines(path) == ["step,loss", "1,1.0"]
    assert len(lines(path + ".abandoned")) == 4
    written(path, [1, 2]).flush()
    assert lines(path + ".abandoned.2") == ["step,loss", "1,1.0"]
    assert len(lines(path + ".abandoned")) == 4, "what was kept stays"


@pytest.mark.parametrize("before", [2, 5])
def test_a_second_phase_may_count_from_one(path, before):
    """Its rows are those of a run that was not interrupted, wherever the checkpoint was."""
    steps = [1, 2, 3, 1, 2, 3, 4]
    whole = path + ".whole"
    written(whole, steps).flush()
    log = written(path, steps[:before])
    state = log.state_dict()
    for step in steps[before:-1]:
        log.write(step, loss=-1.0)
    del log
    again = Log(path)
    again.load_state_dict(state)
    assert again.state_dict() == state, "a checkpoint before the next row"
    for step in steps[before:]:
        again.write(step, loss=1 / step)
    again.flush()
    assert lines(path) == lines(whole)


@pytest.mark.parametrize("known", [{"step": 2, "rows": 2, "runs": {}}, {"step": 2, "rows": 9, "runs": {}}, {"step": 2}])
def test_a_checkpoint_of_an_earlier_version(path, known):
    """It has no digest, the first ones no count of rows: nothing is lost that comes before the step."""
    written(path, [1, 2, 3, 4, 5, 6]).flush()
    again = Log(path)
    again.load_state_dict({"runs": {}, **known})
    again.write(3, loss=0.0)
    again.flush()
    assert lines(path) == ["step,loss", "1,1.0", "2,0.5", "3,0.0"]


@pytest.mark.parametrize("other", [[1, 2, 3, 1, 9], [2, 3], range(1, 100), []])
def test_rows_of_another_run_are_kept(path, other):
    state = written(path, [1, 2, 3, 1, 2]).state_dict()
    os.unlink(path)
    written(path, other, loss=7.0).flush()
    again = Log(path)
    again.load_state_dict(state)
    if other:
        with pytest.warns(FtnPytorchWarning, match=r"not those of the run .* this file is now .*log.csv.abandoned"):
            again.write(3, loss=0.25)
        assert len(lines(path + ".abandoned")) == 1 + len(other)
    else:
        again.write(3, loss=0.25)
    again.flush()
    assert lines(path) == ["step,loss", "3,0.25"]


def test_a_run_goes_on_with_its_rows_where_columns_have_come_since(path):
    log = written(path, [1, 2])
    state = log.state_dict()
    log.write(3, score=1.0, loss=1.0)
    log.write(4, other=1.0)
    del log
    again = Log(path)
    again.load_state_dict(state)
    again.write(3, loss=0.25)
    later = again.state_dict()
    del again
    assert lines(path) == ["step,loss,score,other", "1,1.0,,", "2,0.5,,", "3,0.25,,"]
    last = Log(path)
    last.load_state_dict(later)
    last.write(4, loss=0.5)
    last.flush()
    assert lines(path)[3:] == ["3,0.25,,", "4,0.5,,"]


@pytest.mark.parametrize("first", [1, 3, 60])
def test_a_run_without_a_checkpoint_begins_anew_from_any_step(path, first):
    written(path, range(2, 50)).flush()
    written(path, [first, first + 1], loss=7.0).flush()
    assert lines(path) == ["step,loss", f"{first},7.0", f"{first + 1},7.0"]
    assert len(lines(path + ".abandoned")) == 49


def test_a_file_has_one_writer(path, fails):
    first, second = written(path, [1, 2]), Log(path)
    with fails("LOCKED", f"Log: {path} is being written by this process itself", "%r"):
        second.write(1, loss=-1.0)
    first.write(3, loss=0.5)
    del first
    assert lines(path) == ["step,loss", "1,1.0", "2,0.5", "3,0.5"]
    second.write(1, loss=-1.0)
    second.flush()
    assert lines(path) == ["step,loss", "1,-1.0"] and len(lines(path + ".abandoned")) == 4


def test_a_file_has_one_process_that_writes(path, python, fails):
    log = written(path, [1])
    with pytest.raises(AssertionError, match="FTN_PYTORCH_ERR_LOCKED|is being written by process"):
        python(f"from ftn_pytorch.kit import Log; Log({path!r}).write(1, loss=2.0)")
    log.flush()
    assert lines(path) == ["step,loss", "1,1.0"]


def test_a_script_that_was_freed_leaves_its_log_to_the_next(load, tmp_path):
    text = f"""
        from ftn_pytorch.kit import Log
        log = Log({str(tmp_path / "log.csv")!r})
        def ftn_pytorch_train(step):
            log.write(int(step), loss=1.0)
            return False, 1.0
    """
    for _ in range(2):
        runner = load(text)
        runner.bind("ftn_pytorch_train", 0)[0](1)
        del runner
    assert sorted(each.name for each in tmp_path.glob("log.csv*")) == ["log.csv", "log.csv.abandoned"]


def test_what_a_killed_run_was_writing_is_removed(path, python):
    program = f"""
        import os, signal
        from ftn_pytorch.kit import Log
        log = Log({path!r})
        log.write(1, loss=1.0)
        os.replace = lambda one, other: os.kill(os.getpid(), signal.SIGKILL)
        try:
            log.write(2, score=1.0)
        finally:
            os._exit(0)
    """
    with pytest.raises(AssertionError):
        python(program)
    folder = os.path.dirname(path)
    assert len(os.listdir(folder)) == 3 and [name for name in os.listdir(folder) if name.endswith(".csv")] == [
        "log.csv"
    ]
    written(path, [1, 2]).flush()
    assert sorted(os.listdir(folder)) == ["log.csv", "log.csv.abandoned"]


def test_another_file_is_not_touched(path, write, fails):
    other = write("mine.csv", "time,loss\n1,2\n")
    with fails("FORMAT", "mine.csv", "step"):
        Log(other).write(1, loss=1.0)
    assert lines(other) == ["time,loss", "1,2"]


def test_a_full_disk_is_told(fails):
    log = Log("/dev/full")
    with fails("FILE", "/dev/full", "No space left"):
        log.write(1, loss=1.0)
        log.flush()
    with fails("FILE", "/dev/full", "No space left"):
        log.load_state_dict({"step": None, "runs": {}})


def test_what_is_buffered_is_written_at_the_end_of_the_process(python, path):
    python(f"from ftn_pytorch.kit import Log; log = Log({path!r}); log.write(1, loss=2.0); log.write(2, loss=3.0)")
    assert lines(path) == ["step,loss", "1,2.0", "2,3.0"]


def test_a_log_needs_neither_torch_nor_the_library(python):
    code = "import sys; from ftn_pytorch.kit import Log; Log(); print({'torch', '_ftn_pytorch'} & set(sys.modules))"
    assert python(code) == "set()\n"


def test_ranks_have_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    written(str(tmp_path / "log%r.csv"), [1]).flush()
    assert [each.name for each in tmp_path.iterdir()] == ["log3.csv"]


def test_a_line_for_a_person(capsys):
    told = line(300, {"loss": 0.123456, "lr": 1e-3}, (100, 50.0), 60.0, 4300)
    assert re.fullmatch(
        r"step 300 of 4300  loss 0.1235  lr 0.001  20 steps/s  ends in 0:03:20, \d\d ... \d\d:\d\d", told
    )
    assert line(300, {}, (100, 50.0), 60.0, None) == "step 300  20 steps/s"
    assert "days" in line(2, {}, (1, 0.0), 1.0, 10**6)
    log = Log(console=0.0)
    log.write(1, loss=1.0)
    log.write(2, loss=0.5)
    assert re.match(r"step 2  loss 0.5  .* steps/s\n", capsys.readouterr().err)


@pytest.fixture
def little_room():
    """little_room(bytes): files may not become larger from now on; None ends that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def little_room(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (before[0] if size is None else size, before[1]))

    yield little_room
    little_room(None)
    signal.signal(signal.SIGXFSZ, ignored)


def test_rows_that_found_no_room_are_written_when_there_is_some(path, little_room, fails):
    log = written(path, range(1, 100))
    log.flush()
    little_room(os.path.getsize(path) + 10)
    for step in range(100, 110):
        log.write(step, loss=1 / step)
    with fails("FILE", path, "File too large"):
        log.flush()
    with fails("FILE", path, "File too large"):
        log.write(110, loss=1 / 110, other=1)
    assert sorted(os.listdir(os.path.dirname(path))) == [".log.csv.lock", "log.csv"]
    little_room(None)
    log.write(111, loss=1 / 111, other=2)
    log.flush()
    assert lines(path) == ["step,loss,other", *(f"{n},{1 / n!r}," for n in range(1, 110)), f"111,{1 / 111!r},2"]


def test_rows_that_are_lost_at_the_end_are_told(path, little_room):
    log = written(path, range(1, 100))
    log.flush()
    little_room(os.path.getsize(path) + 10)
    for step in range(100, 110):
        log.write(step, loss=1 / step)
    with pytest.warns(FtnPytorchWarning, match="log.csv cannot be written: File too large"):
        del log
    little_room(None)  # pytest writes its own output before the fixture ends


@pytest.mark.parametrize("place", ["file/log.csv", "folder", "/proc/none/log.csv"])
def test_a_place_that_cannot_be_written_is_told(place, tmp_path, fails):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with fails("FILE", place, "cannot be written"):
        Log(str(tmp_path / place)).write(1, loss=1.0)


def test_what_is_no_number_is_refused_by_name(path, fails):
    log = written(path, [1])
    for wrong in ("high", None, torch.zeros(2)):
        with fails("ARGUMENT", "loss is no number"):
            log.write(2, loss=wrong)
    for wrong in (1.5, "2", torch.tensor(2.5)):
        with fails("ARGUMENT", "the step is"):
            log.write(wrong, loss=1.0)
    for wrong in ("a,b", 'a"b', "a\nb", ""):
        with fails("ARGUMENT", repr(wrong), "column"):
            log.write(2, **{wrong: 1.0})
    log.write(torch.tensor(2), loss=0.5)
    log.flush()
    assert lines(path) == ["step,loss", "1,1.0", "2,0.5"]
