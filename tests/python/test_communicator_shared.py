# SPDX-License-Identifier: MIT
"""What ftn_pytorch_shared does to files, and what it refuses. Restarts over ranks: test_shared_mpi.f90."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ftn_pytorch import Checkpoint
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.ranks.communicator import Communicator
from played_mpi import FIRST_OF_TWO, LONE, SECOND_OF_TWO, words_of

torch = pytest.importorskip("torch")

SCRIPT = """
import torch

torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.Adam(net.parameters())
buffer = [torch.ones(1)]
ftn_pytorch_shared = ["net"]
"""


def objects_of(folder):
    return sorted(Checkpoint.read(str(folder))["objects"])


@pytest.fixture
def two(mpi, load, monkeypatch):
    """two(text, folder): two ranks, as threads, that have loaded a script and write a checkpoint, and their errors."""
    texts, both = ["", ""], threading.Barrier(2, timeout=600)

    def gather(self, text, *, purpose):
        texts[self.rank] = text
        both.wait()
        found = list(texts)
        both.wait()
        return found

    monkeypatch.setattr(Communicator, "gather", gather)

    def two(text, folder, before=lambda first, second: None):
        runners = load(text, communicator=FIRST_OF_TWO), load(text, communicator=SECOND_OF_TWO)
        before(*runners)
        with ThreadPoolExecutor(2) as threads:
            written = [threads.submit(runner.checkpoint, f"{folder}/rank%r", 3, 1) for runner in runners]
        return runners, [each.exception() for each in written]

    return two


def test_the_file_of_rank_0_holds_what_is_shared(two, tmp_path):
    (_, second), failures = two(SCRIPT, tmp_path)
    assert failures == [None, None]
    assert objects_of(tmp_path / "rank0") == ["buffer/0", "net", "optimizer"]
    # An optimizer that is not shared may train a network that is: nothing is lost
    assert objects_of(tmp_path / "rank1") == ["buffer/0", "optimizer"]
    assert Checkpoint.read(str(tmp_path / "rank1"))["shared"] == ["net"]
    second.checkpoint(f"{tmp_path}/one", 3, 1)
    second.save(f"{tmp_path}/file%r.ckpt")
    assert objects_of(tmp_path / "one") == objects_of(tmp_path / "file1.ckpt") == ["buffer/0", "net", "optimizer"]


def test_ranks_wait_for_each_other_without_the_lock(two, tmp_path):
    """A thread of another rank may need it for the step that a thread of this one waits for."""
    runners, failures = two(SCRIPT, tmp_path)
    assert failures == [None, None]
    with ThreadPoolExecutor(2) as threads:
        restored = [threads.submit(each.restore, f"{tmp_path}/rank%r") for each in runners]
    assert [each.result() for each in restored] == [1, 1]


def test_without_a_communicator_a_rank_holds_all(load, tmp_path, monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "1")
    load(SCRIPT).checkpoint(f"{tmp_path}/rank%r", 3, 1)
    assert objects_of(tmp_path / "rank1") == ["buffer/0", "net", "optimizer"]


def test_a_part_is_no_whole(two, load, tmp_path, fails, monkeypatch):
    two(SCRIPT, tmp_path)
    alone = load(SCRIPT)
    with fails("FORMAT", "the file has no 'net', which that of rank 0 has: load with communicator="):
        alone.restore(f"{tmp_path}/rank1")
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setenv("PMI_RANK", "3")
    with fails("NO_CHECKPOINT", "rank3 does not exist", "a file that ranks of a node share: load with communicator="):
        alone.restore(f"{tmp_path}/rank%r")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("ftn_pytorch_shared = 'net'", ["it must be a list of names"]),
        ("net = 1\nftn_pytorch_shared = ['net', 'nett']", ["names nett, which it does not define"]),
        (
            "net = 1\nftn_pytorch_shared = ['net']\ndef ftn_pytorch_save(f): ...\ndef ftn_pytorch_restore(f): ...",
            ["ftn_pytorch_save, which decides by itself"],
        ),
    ],
)
def test_refused_at_load(load, fails, text, pieces):
    with fails("SCRIPT", "ftn_pytorch_shared", *pieces):
        load(text)


def test_refused_at_the_first_write(two, tmp_path):
    _, failures = two(SCRIPT.replace('["net"]', '["net", "torch"]'), tmp_path)
    for failure in failures:
        assert failure.status == "SCRIPT"
        assert "names torch, which is not kept in checkpoints: it is none of net, optimizer" in failure.text


@pytest.mark.parametrize(
    ("shared", "change", "where"),
    [
        ("net", "net.weight.data[0, 0] += 1e-7", "net/weight"),
        ("net", "net.eval()", "net"),
        ("net", "net.bias.requires_grad_(False)", "net"),
        ("optimizer", "optimizer.param_groups[0]['lr'] = 2e-3", "optimizer"),
        ("numbers", "numbers['array'][1] = 5", "numbers"),
        ("numbers", "numbers['new'] = 3", "numbers"),
        ("numbers", "numbers['new'] = open", "numbers"),
    ],
)
def test_ranks_that_differ_write_nothing(two, tmp_path, shared, change, where):
    text = f"""{SCRIPT}
import numpy

numbers = {{"array": numpy.zeros(3)}}
ftn_pytorch_shared = ["{shared}"]

def change():
    {change}
"""
    _, failures = two(text, tmp_path, lambda first, second: second._module.change())
    for failure in failures:
        assert failure.status == "FORMAT"
        assert f"ftn_pytorch_shared names what is not the same on all ranks: rank 1 differs from rank 0 in {where}" in (
            failure.text
        )
    assert not list(tmp_path.glob("rank*"))


MADE = """
import types
import torch

torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
first, history, table = [], [], None
last = row = one = optimizer = schedule = held = None

def change():
    global last, table, row, one, optimizer, schedule, held
    history.extend([[1.0], [2.0]])
    last = history[1]
    table = torch.zeros(3, 2)
    row, one = table[1], torch.zeros(2)
    held = types.SimpleNamespace(one=one)
    optimizer = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)

def has_two_ways():
    row.add_(1)
    one.add_(1)
    ways = last is history[1], held.one is one, schedule is None or schedule.optimizer is optimizer
    return [*ways, table[1].tolist() == [1, 1]]
"""


@pytest.mark.parametrize(
    "pair", [("history", "last"), ("table", "row"), ("one", "held"), ("held", "one"), ("optimizer", "schedule")]
)
def test_what_a_call_has_made_is_shared_by_all_its_names_or_by_none(two, tmp_path, pair):
    """Of two names of one object one would be put back from the file of rank 0, and the other from another file."""

    def change(first, second):
        second._module.first.extend([[0.0]] * 2)  # what has a label comes first on one rank
        first._module.change()
        second._module.change()

    for place, shared in enumerate((pair[:1], pair, [])):
        text = f"{MADE}\nftn_pytorch_shared = {['net', *shared]}"
        runners, failures = two(text, tmp_path / str(place), change)
        if len(shared) == 1:
            told = f"names {pair[0]}, and does not name {pair[1]}, which leads to the same object or to the same"
            assert [(each.status, told in each.text) for each in failures] == [("SCRIPT", True)] * 2
            continue
        assert failures == [None, None]
        runners[1]._module.change()
        with ThreadPoolExecutor(2) as threads:
            restored = [threads.submit(each.restore, f"{tmp_path}/{place}/rank%r") for each in runners]
        assert [each.result() for each in restored] == [1, 1]
        assert all(all(each._module.has_two_ways()) for each in runners)


def test_new_ranks_need_shared_names(mpi, load, tmp_path, fails):
    text = SCRIPT.replace("ftn_pytorch_shared", "other")
    load(text, communicator=LONE).checkpoint(f"{tmp_path}/rank%r", 3, 1)
    runner = load(text, communicator=FIRST_OF_TWO)
    mpi.from_others = [*words_of("[null, [], {}]"), *words_of("[null, [], null]")]
    with fails("FORMAT", "written by 1 ranks, and there are 2", 'ftn_pytorch_shared = ["net"]'):
        runner.restore(f"{tmp_path}/rank%r")


def test_steps_of_a_run_that_was_given_up_are_set_aside(load, tmp_path):
    runner = load(SCRIPT)
    for step in (1, 2, 3):
        runner.checkpoint(str(tmp_path / "c"), 9, step)
    runner.restore(str(tmp_path / "c"), step=1)
    runner.checkpoint(str(tmp_path / "c"), 9, 5)
    names = sorted(path.name for path in (tmp_path / "c").glob("checkpoint*"))
    assert [name[-14:] for name in names] == ["000000001.ckpt", "ckpt.abandoned", "ckpt.abandoned", "000000005.ckpt"]


def test_hooks_of_a_script_restore_together_as_well(mpi, load, tmp_path):
    text = """
    numbers = [1]

    def ftn_pytorch_save(name):
        with open(name, "w") as file:
            file.write(str(numbers[0]))

    def ftn_pytorch_restore(name):
        with open(name) as file:
            numbers[0] = int(file.read())
    """
    runner = load(text, communicator=LONE)
    runner.checkpoint(f"{tmp_path}/rank%r", 3, 7)
    again = load(text.replace("[1]", "[2]"), communicator=LONE)
    assert again.restore(f"{tmp_path}/rank%r") == 7
    assert again._module.numbers == [1]
    (tmp_path / "rank0" / "checkpoint-000000000007.ckpt").unlink()
    with pytest.raises(FtnPytorchError, match="nor do the folders of the other ranks"):
        again.restore(f"{tmp_path}/rank%r")


def test_a_rank_with_a_hook_and_without_its_folder_waits_for_nobody(mpi, load, tmp_path, fails):
    """The others restore together, and would wait for it."""
    runner = load(
        """
        def ftn_pytorch_save(name): ...
        def ftn_pytorch_restore(name): raise AssertionError(name)
        """,
        communicator=FIRST_OF_TWO,
    )
    (tmp_path / "rank1").mkdir()
    mpi.from_others = words_of('[null, [], {"7": [2, null, []]}]')
    with fails("NO_CHECKPOINT", "there is no step that all ranks have. Steps of rank 0: none; rank 1: 7"):
        runner.restore(f"{tmp_path}/rank%r")
    (tmp_path / "other1x").mkdir()
    with fails("PYTHON", "other0"):  # by its hook: no rank has a folder
        runner.restore(f"{tmp_path}/other%r")
