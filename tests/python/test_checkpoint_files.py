# SPDX-License-Identifier: MIT
"""Checkpoint files and folders: damage, places that cannot be written, what is kept, and two writers at once."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import ftn_pytorch
from ftn_pytorch.checkpoint import Checkpoint, content, file, folder
from ftn_pytorch.system import process

IS_ROOT = os.geteuid() == 0


@pytest.fixture
def values():
    return {"step": 0}


@pytest.fixture
def checkpoint(values):
    return Checkpoint(values=values)


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def of_steps(*steps):
    return [folder.name_of(step) for step in steps]


# ---- damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "state"
    Checkpoint(values={"text": "x" * 3000}).save(str(path))
    return path.read_bytes()


@pytest.mark.parametrize("left", [0.05, 0.1, 0.5, 0.9, 0.99, 0.999, 1 - 1e-9])
def test_a_file_that_was_cut_off_is_corrupt(tmp_path, fails, whole, checkpoint, values, left):
    (tmp_path / folder.name_of(1)).write_bytes(whole[: int(left * len(whole))])
    with fails("CORRUPT", folder.name_of(1)):
        checkpoint.restore(str(tmp_path))
    assert values == {"step": 0}


def test_every_flipped_byte_is_noticed(tmp_path, fails, whole, checkpoint, values):
    path = tmp_path / "state"
    for place in [*range(60, len(whole), 37), *range(len(whole) - 72, len(whole))]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with fails("CORRUPT", str(path), "is damaged"):
            checkpoint.restore(str(path))
    assert values == {"step": 0}


def test_data_behind_the_end_is_noticed(tmp_path, fails, whole, checkpoint):
    (tmp_path / "state").write_bytes(whole + b"\n")
    with fails("CORRUPT", "the end of it"):
        checkpoint.restore(str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("content", "looks"),
    [(b"", "is empty"), (b"PK\x03", "is a zip archive, as torch.save"), (b"CDF\x01 netCDF", "begins with b'CDF")],
)
def test_a_foreign_file_is_told_as_such(tmp_path, fails, checkpoint, content, looks):
    (tmp_path / "state").write_bytes(content)
    with fails("FORMAT", "is no checkpoint of ftn_pytorch", looks):
        checkpoint.restore(str(tmp_path / "state"))


def test_damage_falls_back_only_when_asked(tmp_path, fails, checkpoint, values):
    for step in (1, 2, 3, 4):
        values["step"] = step
        checkpoint.write(str(tmp_path), keep=4)
    (tmp_path / folder.name_of(4)).write_bytes(b"foreign")
    newest = tmp_path / folder.name_of(3)
    newest.write_bytes(newest.read_bytes()[:-10])
    with fails("FORMAT", folder.name_of(4), "is no checkpoint", "fallback uses the one of step 3"):
        checkpoint.restore(str(tmp_path))
    assert values["step"] == 4
    with pytest.warns(process.FtnPytorchWarning) as warned:
        assert checkpoint.restore(str(tmp_path), fallback=True) == 2
    assert values["step"] == 2
    assert [name in str(warning.message) for name, warning in zip(of_steps(4, 3), warned)] == [True, True]
    for step in (1, 2):
        (tmp_path / folder.name_of(step)).write_bytes(b"")
    with fails("CORRUPT", "holds no checkpoint that is whole", *of_steps(1, 2, 3, 4)):
        checkpoint.restore(str(tmp_path), fallback=True)


def test_nothing_to_restore_has_a_status_of_its_own(tmp_path, fails, checkpoint):
    with fails("NO_CHECKPOINT", "missing does not exist"):
        checkpoint.restore(str(tmp_path / "missing"))
    with fails("NO_CHECKPOINT", "holds no checkpoint"):
        checkpoint.restore(str(tmp_path))
    checkpoint.write(str(tmp_path), step=7)
    with fails("NO_CHECKPOINT", "of step 5, but of 7"):
        checkpoint.restore(str(tmp_path), step=5)
    for step, held in ((None, "no step"), (3, "step 3")):
        path = checkpoint.save(str(tmp_path / "state"), step=step)
        with fails("NO_CHECKPOINT", f"state holds {held}, and step 4 is asked for"):
            checkpoint.restore(path, step=4)
    assert checkpoint.restore(path, step=3) == 3
    with fails("FILE", "is empty"):
        checkpoint.restore(" ")


# ---- places that cannot be written


def test_folders_are_made_when_they_are_first_known(tmp_path, fails, checkpoint):
    checkpoint.write(str(tmp_path / "a" / "b" / "rank%r"))
    assert names(tmp_path / "a" / "b") == ["rank0"]
    with fails("NO_CHECKPOINT", "c/rank0 does not exist"):
        checkpoint.restore(str(tmp_path / "c" / "rank%r"))
    assert names(tmp_path / "c") == []
    (tmp_path / "file").write_text("")
    warns = pytest.warns(process.FtnPytorchWarning, match="/file/d cannot be made in .*/file: Not a directory: nothing")
    with warns, fails("NO_CHECKPOINT", "does not exist"):
        checkpoint.restore(str(tmp_path / "file" / "d" / "rank%r"))


def test_places_that_cannot_be_written_are_told(tmp_path, fails, checkpoint):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "closure.py").write_text("gain = 2")
    for name, piece in [
        ("no/folder/state", "there is no folder"),
        ("folder", "it is a folder"),
        ("file/state", "there is no folder"),
        ("pipe", "no regular file"),
        ("closure.py", "there is a script; name another file"),
        ("x" * 300, "File name too long"),
    ]:
        with fails("FILE", "cannot be written", piece):
            checkpoint.save(str(tmp_path / name))
    assert (tmp_path / "closure.py").read_text() == "gain = 2"
    with fails("FILE", "is a file"):
        checkpoint.write(str(tmp_path / "file"))
    with fails("FILE", "file/steps/rank0 cannot be made in", "/file: Not a directory"):
        checkpoint.write(str(tmp_path / "file" / "steps" / "rank%r"))
    assert names(tmp_path) == ["closure.py", "file", "folder", "pipe"]


@pytest.mark.skipif(IS_ROOT, reason="root may write everywhere")
def test_a_folder_without_permission_is_told(tmp_path, fails, checkpoint):
    tmp_path.chmod(0o500)
    with fails("FILE", "Permission denied"):
        checkpoint.save(str(tmp_path / "state"))


def test_a_file_that_is_protected_against_writing_stays(tmp_path, fails, checkpoint, monkeypatch):
    path = tmp_path / "state"
    path.write_text("precious")
    path.chmod(0o444)
    # root may write it all the same
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with fails("FILE", "protected against writing"):
        checkpoint.save(str(path))
    assert path.read_text() == "precious"
    assert names(tmp_path) == ["state"]


def limited(code, tmp_path, bytes_allowed):
    """Output of a process whose files cannot grow beyond a size, which fails in the same calls as a full disk."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_allowed, bytes_allowed))

    environment = {**os.environ, "PYTHONPATH": str(Path(ftn_pytorch.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("module", ["torch", "numpy"])
def test_a_disk_that_is_full_leaves_the_old_file_whole(tmp_path, module):
    code = f"""
import {module}
from ftn_pytorch import Checkpoint
values = {{"small": {module}.ones(1), "step": 1}}
Checkpoint(values=values).save("state")
values.update(big={module}.ones(1_000_000), step=2)
try:
    Checkpoint(values=values).save("state")
except Exception as failure:
    print(failure.status, failure)
"""
    output = limited(code, tmp_path, 100_000)
    assert output.startswith("FILE") and "cannot be written: File too large" in output
    assert names(tmp_path) == ["state"]
    assert Checkpoint.read(str(tmp_path / "state"))["objects"]["values"]["step"] == 1


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_an_error_of_the_system_leaves_the_old_file_whole(tmp_path, fails, checkpoint, values, monkeypatch, call):
    path = tmp_path / "state"
    checkpoint.save(str(path))
    before, values["step"] = path.read_bytes(), 1

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, refuse)
    with fails("FILE", "cannot be written: No space left on device"):
        checkpoint.save(str(path))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert names(tmp_path) == ["state"]


def test_permissions_are_those_of_the_umask_or_of_the_file_before(tmp_path, checkpoint):
    old = os.umask(0o027)
    try:
        path = Path(checkpoint.save(str(tmp_path / "state")))
        assert path.stat().st_mode & 0o777 == 0o640
        path.chmod(0o604)
        checkpoint.save(str(path))
        assert path.stat().st_mode & 0o777 == 0o604
        checkpoint.write(str(tmp_path / "folder"))
        assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750
    finally:
        os.umask(old)


def test_a_link_stays_a_link(tmp_path, checkpoint, values):
    (tmp_path / "link").symlink_to("target")
    checkpoint.save(str(tmp_path / "link"))
    assert names(tmp_path) == ["link", "target"] and (tmp_path / "link").is_symlink()


def test_a_file_is_on_disk_before_it_gets_its_name_and_the_name_before_save_returns(tmp_path, checkpoint, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (calls.append(name), real(*args))[1])
    checkpoint.save(str(tmp_path / "state"))
    assert calls == ["fsync", "replace", "fsync"]


# ---- folders


def test_the_newest_are_kept_and_names_sort_by_step(tmp_path, checkpoint):
    (tmp_path / "checkpoint-notes.ckpt").write_text("not one of ours")
    for step in (8, 9, 10, 99, 100):
        checkpoint.write(str(tmp_path), keep=2, step=step)
    assert names(tmp_path) == [".lock", *of_steps(99, 100), "checkpoint-notes.ckpt"]
    checkpoint.write(str(tmp_path), keep=1)
    assert names(tmp_path) == [".lock", *of_steps(101), "checkpoint-notes.ckpt"]


def test_a_checkpoint_that_cannot_be_written_removes_none(tmp_path, fails, checkpoint, values):
    checkpoint.write(str(tmp_path), keep=1)
    values["bad"] = object()
    with fails("RESULT_TYPE"):
        checkpoint.write(str(tmp_path), keep=1)
    assert names(tmp_path) == [".lock", *of_steps(1)]


@pytest.mark.parametrize(
    ("keep", "step", "piece"), [(0, None, "keep is 0"), (2.5, None, "keep is 2.5"), (3, -5, "step is -5")]
)
def test_wrong_numbers_are_refused(tmp_path, fails, checkpoint, keep, step, piece):
    with fails("ARGUMENT", piece):
        checkpoint.write(str(tmp_path), keep=keep, step=step)


def test_a_run_that_starts_again_in_an_old_folder_is_refused(tmp_path, fails, checkpoint):
    checkpoint.write(str(tmp_path), step=50)
    with fails("ARGUMENT", folder.name_of(50), "is later than step 10", "another folder"):
        checkpoint.write(str(tmp_path), step=10)
    assert names(tmp_path) == [".lock", *of_steps(50)]


def test_a_run_that_goes_back_sets_the_later_ones_aside(tmp_path, checkpoint, values):
    for step in (10, 20, 30):
        values["step"] = step
        checkpoint.write(str(tmp_path), step=step)
    assert checkpoint.restore(str(tmp_path), step=10) == 10 and values["step"] == 10
    values["step"] = 15
    checkpoint.write(str(tmp_path), step=15)
    assert names(tmp_path) == [".lock", *of_steps(10, 15), *(f"{name}.abandoned" for name in of_steps(20, 30))]
    assert checkpoint.restore(str(tmp_path)) == 15


def test_a_run_that_was_given_up_is_never_replaced_by_another(tmp_path, checkpoint, values):
    for branch in (1, 2, 3):
        values["step"] = branch
        if branch > 1:
            checkpoint.restore(str(tmp_path), step=10)
            values["step"] = branch
        else:
            checkpoint.write(str(tmp_path), step=10)
        checkpoint.write(str(tmp_path), step=20)
    (name,) = of_steps(20)
    for ending, branch in (("", 3), (".abandoned", 1), (".abandoned.2", 2)):
        assert Checkpoint.read(str(tmp_path / f"{name}{ending}"))["objects"]["values"]["step"] == branch


def test_what_killed_writers_left_is_removed_and_nothing_else(tmp_path, checkpoint):
    left = [f".{folder.name_of(3)}.4711.part", f".{folder.name_of(4)}.4711~hook.part"]
    others = [f".{folder.name_of(3)}.x.part", ".notes.4711.part"]
    for name in left + others:
        (tmp_path / name).write_text("")
    checkpoint.write(str(tmp_path), step=5)
    assert names(tmp_path) == sorted([".lock", *others, *of_steps(5)])
    (tmp_path / ".state.12.part").write_text("")
    (tmp_path / ".state.12.13.part").write_text("of a file state.12")
    checkpoint.save(str(tmp_path / "state"))
    assert ".state.12.part" not in names(tmp_path) and ".state.12.13.part" in names(tmp_path)


def test_descriptions_of_files_that_have_none(tmp_path):
    (tmp_path / "short").write_bytes(b"x")
    assert file.description(str(tmp_path / "short")) is None
    assert file.description(str(tmp_path / "missing")) is None


def test_trees_of_another_file_bring_their_arrays_and_no_others():
    mine = {"net": "of before", "n": {"~": "array", "at": "n"}}
    state = {"objects": mine, "config": {}, "random": {"~": "array", "at": "random"}}
    found = ({"step": 1}, state, {"n": "my n", "random": "my random", "net": "my net"}, {})
    trees = {"net": {"~": "tensor", "at": "net", "gradient": {"~": "tensor", "at": "taken away"}}}
    about, state, arrays, _ = content.joined(found, trees, {"net": "of rank 0", "random": "of rank 0"})
    assert about == {"step": 1} and arrays == {"n": "my n", "random": "my random", "net": "of rank 0"}
    assert list(state["objects"].items()) == [("n", mine["n"]), ("net", trees["net"])], "their labels come last"
