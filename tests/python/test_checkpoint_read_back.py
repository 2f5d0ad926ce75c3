# SPDX-License-Identifier: MIT
"""A file counts when it has been read: what cannot be read is an error of save, and the older files stay."""

import collections
import os

import pytest

import ftn_pytorch
import program
from ftn_pytorch.checkpoint import Checkpoint, file, folder
from ftn_pytorch.saved import saved_recording
from played_mpi import LONE

torch = pytest.importorskip("torch")


@pytest.fixture
def other_bytes(monkeypatch):
    """The disk gives back another byte than it was given."""

    def damaged(descriptor, real=os.fsync):
        real(descriptor)
        if os.fstat(descriptor).st_size > 500 and os.path.isfile(f"/proc/self/fd/{descriptor}"):
            os.pwrite(descriptor, b"\xff\xfe\xfd\xfc", 300)

    return lambda: monkeypatch.setattr(os, "fsync", damaged)


def names(path):
    return sorted(entry.name for entry in path.iterdir() if entry.name != ".lock")


@pytest.mark.parametrize("values", [{"text": "x" * 3000}, {"tensor": torch.zeros(100)}])
def test_other_bytes_are_an_error_of_save_and_the_older_files_stay(tmp_path, fails, other_bytes, values):
    checkpoint = Checkpoint(values=values)
    path = tmp_path / "state"
    checkpoint.save(str(path))
    checkpoint.write(str(tmp_path / "run"), keep=1)
    before = path.read_bytes()
    other_bytes()
    for write in (
        lambda: checkpoint.save(str(path)),
        lambda: checkpoint.write(str(tmp_path / "run"), keep=1),
    ):
        with fails("FILE", "cannot be written: what was written is damaged: its content does not agree", "elsewhere"):
            write()
    assert path.read_bytes() == before
    assert names(tmp_path) == ["run", "state"] and names(tmp_path / "run") == [folder.name_of(1)]


def local_class():
    class Local:
        pass

    return Local()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({torch.nn.ReLU(): torch.nn.Linear(1, 1)}, "cannot be understood: torch.ReLU stands in a set, or as a key"),
        ([{local_class()}], "cannot be understood: .*<locals>.Local stands in a set, or as a key"),
    ],
)
def test_what_no_restart_could_read_is_an_error_of_save(tmp_path, value, why):
    checkpoint = Checkpoint(net=torch.nn.Linear(1, 1), value=[1])
    checkpoint.write(str(tmp_path), keep=1)
    text = f"cannot be written, since no restart could read it: what was written {why}"
    with pytest.raises(ftn_pytorch.errors.FtnPytorchError, match=text) as caught:
        checkpoint.of({"net": torch.nn.Linear(1, 1), "value": value}).write(str(tmp_path), keep=1)
    assert caught.value.status == "RESULT_TYPE" and "The older file stays" in str(caught.value)
    assert names(tmp_path) == [folder.name_of(1)]


class Told:
    """Its methods say that they were called."""

    calls = []

    def __init__(self, value):
        self.value = value

    def __del__(self):
        self.calls.append("del")

    def __eq__(self, other):
        self.calls.append("eq")
        return self is other

    def __hash__(self):
        return id(self)


def test_nothing_of_the_script_runs_while_a_file_is_read_back(tmp_path):
    held = collections.deque([Told(1), {"a": Told(torch.ones(2))}])
    checkpoint = Checkpoint(held=held, beside=[{Told(2)}])
    Told.calls.clear()
    checkpoint.save(str(tmp_path / "state"))
    assert Told.calls == [] and held[0].value == 1


def test_a_class_that_nothing_finds_is_kept_where_its_object_stays(tmp_path):
    held = local_class()
    held.n = 1
    path = Checkpoint(held=[held]).save(str(tmp_path / "state"))
    held.n = 2
    Checkpoint(held=[held]).restore(path)
    assert held.n == 1


def test_what_a_hook_has_written_is_read_back_as_well(tmp_path, fails, load, other_bytes):
    runner = load(
        """
        def ftn_pytorch_save(name):
            with open(name, "w") as file:
                file.write("x" * 3000)
        def ftn_pytorch_restore(name): ...
        """
    )
    runner.checkpoint(str(tmp_path / "run"), 1, 1)
    other_bytes()
    with fails("FILE", "what was written is damaged"):
        runner.checkpoint(str(tmp_path / "run"), 1, 2)
    assert names(tmp_path / "run") == [folder.name_of(1)]


def test_a_file_system_that_maps_no_files_is_read(tmp_path, monkeypatch):
    load, ways = torch.load, []

    def loaded(source, **options):
        ways.append(bool(options.get("mmap")))
        if options.get("mmap"):
            raise RuntimeError("unable to mmap")
        return load(source, **options)

    monkeypatch.setattr(torch, "load", loaded)
    Checkpoint(net=torch.nn.Linear(1, 1)).save(str(tmp_path / "state"))
    assert ways == [True, False]


def test_the_state_of_another_rank_in_a_file_is_read_back(tmp_path, fails):
    """One rank writes the file of others, whose bytes it has been sent."""
    checkpoint = Checkpoint(net=torch.nn.Linear(1, 1))
    encoded = checkpoint._encoded("", checkpoint._collector())
    whole = tmp_path / "whole"
    file.write(str(whole), *checkpoint._content_of(1, encoded))
    for part, status in ((whole.read_bytes(), None), (whole.read_bytes()[:-9], "FILE")):
        content = checkpoint._content_of(1, encoded, {"parts": [1]}, {"1": part})
        place = tmp_path / str(status)

        def write(content=content, place=place):
            file.write(str(place), *content, read=checkpoint._check)

        if status is None:
            write()
        else:
            with fails(status, "the state of rank 1 in what was written is damaged: the end of it is missing"):
                write()
            assert not place.exists()


def test_a_saved_recording_is_read_as_a_program_reads_it(tmp_path, fails, load, monkeypatch, extension, other_bytes):
    runner = load(
        """
        import torch
        net = torch.nn.Linear(2, 1)
        def ftn_pytorch_forward(x): return net(x).detach()
        """,
        record=True,
    )
    forward = program.function(runner, "ftn_pytorch_forward")
    for _ in range(20):
        forward(torch.ones(3, 2))
    path = tmp_path / "net.ftr"
    runner.save(str(path))
    before = path.read_bytes()

    def refuse(*_, **__):
        raise ftn_pytorch.errors.FtnPytorchError("FORMAT", "an operator is another one")

    with monkeypatch.context() as patched:
        patched.setattr(saved_recording, "opened", refuse)
        with fails("RESULT_TYPE", "no restart could read it: an operator is another one"):
            runner.save(str(path))
    other_bytes()
    with fails("FILE", "what was written is damaged"):
        runner.save(str(path))
    assert path.read_bytes() == before


def test_ranks_that_write_together_have_no_checkpoint_of_what_one_cannot_read(tmp_path, fails, mpi, load, other_bytes):
    text = "import torch\nnet = torch.nn.Linear(8, 8)\nftn_pytorch_shared = ['net']\n"
    runner = load(text, communicator=LONE)
    runner.checkpoint(f"{tmp_path}/rank%r", 1, 1)
    other_bytes()
    with fails("FILE", "what was written is damaged"):
        runner.checkpoint(f"{tmp_path}/rank%r", 1, 2)
    assert names(tmp_path / "rank0") == [folder.name_of(1)]
