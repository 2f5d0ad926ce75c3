# SPDX-License-Identifier: MIT
"""Communicators of the program, with an MPI that is played. Real ones: test_ranks_mpi.f90, test_shared_mpi.f90. What
the library does with MPI: tests/cpp/base."""

import _thread
import contextlib
import ctypes
import datetime
import gc
import os
import resource
import socket
import sys
import time

import pytest

import ftn_pytorch
import program
from ftn_pytorch.ranks import communicator, failed_calls, own_rank, process_group
from ftn_pytorch.system import process
from played_mpi import FIRST_OF_TWO, LONE, SECOND_OF_TWO


def test_a_python_without_a_program(load, fails):
    with fails("ARGUMENT", "load(..., communicator=) needs the MPI of a program"):
        load("x = 1", communicator=0)


@pytest.mark.parametrize("handle", [LONE, 0])
def test_a_saved_model_has_no_ranks(write, fails, handle):
    torch = pytest.importorskip("torch")
    path = write("net.pt", "")
    torch.jit.script(torch.nn.Linear(1, 1)).save(path)
    with fails("ARGUMENT", "leave out communicator="):
        program.load_model(path, communicator=handle)


def test_rank_and_size_at_load_and_later(mpi, load, fails, monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "8")
    monkeypatch.setenv("PMI_RANK", "5")
    text = "import ftn_pytorch\nat_load = ftn_pytorch.rank(), ftn_pytorch.world_size()"
    numbers = lambda: (ftn_pytorch.rank(), ftn_pytorch.world_size())  # noqa: E731
    assert numbers() == (5, 8), "of the launcher"
    two = load(text, communicator=FIRST_OF_TWO)
    assert two.source()[2]["communicator"] is None, "a process beside this one is no rank"
    assert two._module.at_load == numbers() == (0, 2)
    again = load(text, communicator=FIRST_OF_TWO)
    assert numbers() == (0, 2), "two modules of one communicator"
    lone = load(text, communicator=LONE)
    assert lone._module.at_load == (0, 1)
    for ask in (
        ftn_pytorch.rank,
        ftn_pytorch.world_size,
        lambda: own_rank.with_rank("a%r"),
        process_group.init_process_group,
    ):
        with fails("ARGUMENT", "2 communicators", "keep the answer"):
            ask()
    assert own_rank.with_rank("a") == "a"
    assert own_rank.rank_and_size() == (5, 8), "what is only told need not be clear"
    lone.reload()
    assert lone._module.at_load == (0, 1)
    del two, again
    gc.collect()
    assert numbers() == (0, 1)
    del lone
    gc.collect()
    assert numbers() == (5, 8)


def test_a_load_that_fails_leaves_no_communicator(mpi, load, fails):
    with fails("SCRIPT", "xxx"):
        load("raise ValueError('xxx')", communicator=FIRST_OF_TWO)
    gc.collect()
    assert ftn_pytorch.world_size() == 1


@pytest.mark.parametrize("text", ["", "x", "abcd", "\N{GREEK SMALL LETTER ALPHA}/caf\udce9"])
def test_texts(mpi, text):
    ours = communicator.Communicator(FIRST_OF_TWO)
    data = text.encode("utf-8", "surrogateescape")
    padded = data + bytes(-len(data) % 4)
    words = [int.from_bytes(padded[i : i + 4], "little", signed=True) for i in range(0, len(padded), 4)]
    mpi.from_others = [[len(data)]] + ([words] if words else [])
    assert ours.gather(text, purpose="a test") == [text, text]


def test_a_module_that_is_loaded_again_knows_of_a_rank_that_did_not_come(mpi, load, fails, monkeypatch):
    """What was begun is still under way in MPI, and would be taken for what comes next."""
    monkeypatch.setattr(communicator, "_unfinished", [])
    text = "from ftn_pytorch import require_equal\ndef compare():\n    require_equal([])"
    first = load(text, communicator=FIRST_OF_TWO)
    communicator.current().timeout = 0.1
    with fails("PYTHON", "has waited 0.1 s in require_equal"):
        first._module.compare()
    del first
    gc.collect()
    again = load(text, communicator=FIRST_OF_TWO)
    mpi.pending = False
    with fails("PYTHON", "cannot be done any more"):
        again._module.compare()
    del again
    gc.collect()
    other = load(text, communicator=LONE)
    assert (ftn_pytorch.rank(), ftn_pytorch.world_size()) == (0, 1), "the one that can be used"
    other._module.compare()


def test_threads_of_the_script_make_no_calls_of_mpi(mpi, load, fails):
    pytest.importorskip("torch")
    text = """
        import concurrent.futures, torch, ftn_pytorch
        net = torch.nn.Linear(1, 1)
        def in_thread(name):
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                return pool.submit(getattr(ftn_pytorch, name), net).result()
    """
    runner = load(text, communicator=LONE)
    for name in ("average_gradients", "require_equal"):
        with fails("ARGUMENT", f"{name}: a thread of the script cannot call MPI", "ftn_pytorch_setup"):
            runner._module.in_thread(name)
    ftn_pytorch.init_process_group()
    try:
        runner._module.in_thread("average_gradients")
        runner._module.in_thread("require_equal")
    finally:
        sys.modules["torch"].distributed.destroy_process_group()
    # A thread of the program, which Python has not started
    ours, told = communicator.Communicator(LONE), []
    ask = ctypes.CFUNCTYPE(None)(lambda: told.extend(ours.gather("mine", purpose="a test")))
    _thread.start_new_thread(ask, ())
    end = time.monotonic() + 60
    while not told and time.monotonic() < end:
        time.sleep(0.001)
    assert told == ["mine"]


def test_a_handle_that_mpi_gives_to_other_ranks(mpi):
    one, other = communicator.Communicator(LONE), communicator.Communicator(FIRST_OF_TWO)
    assert one.has(one.group()) and not one.has(other.group())


def test_no_communicator_no_group(fails):
    with fails("ARGUMENT", "init_process_group needs the communicator", "communicator=MPI_COMM_WORLD"):
        ftn_pytorch.init_process_group()


def test_a_group_of_one_rank(mpi, load):
    torch = pytest.importorskip("torch")
    text = """
        import torch, ftn_pytorch
        from ftn_pytorch import average_gradients, require_equal

        def ftn_pytorch_setup():
            ftn_pytorch.init_process_group()

        net = torch.nn.Linear(2, 1)

        def check():
            net(torch.ones(2)).backward()
            average_gradients(net, samples=3)
            require_equal(net)
            return net.weight.grad
    """
    runner = load(text, communicator=LONE)
    try:
        runner.reload()  # the group is there already
        assert runner._module.check().tolist() == [[1.0, 1.0]]
        assert torch.distributed.get_world_size() == 1
    finally:
        torch.distributed.destroy_process_group()


def test_a_group_has_room_for_its_connections(mpi, load, fails, monkeypatch):
    """torch ends the process by SIGABRT where files run out."""
    torch = pytest.importorskip("torch")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = load("import ftn_pytorch", communicator=LONE)  # its communicator counts as long as it lives
    few = len(os.listdir("/dev/fd")) + 3
    with monkeypatch.context() as little, fails("PYTHON", "connections to 1 rank", f"may have {few}", "ulimit -Hn"):
        little.setattr(resource, "getrlimit", lambda which: (few, few))
        ftn_pytorch.init_process_group()
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        ftn_pytorch.init_process_group()
        assert few < resource.getrlimit(resource.RLIMIT_NOFILE)[0] < few + 100
        torch.distributed.destroy_process_group()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    del held


def test_lone_ranks_with_a_communicator(mpi, load):
    pytest.importorskip("torch")
    plain = "def ftn_pytorch_train(x, target): return False, 0.0"
    runner = load(plain, communicator=FIRST_OF_TWO)
    forgotten = not any(name in sys.modules for name in own_rank._AVERAGES)
    if forgotten:
        with pytest.warns(process.FtnPytorchWarning, match="2 ranks of a communicator.*average_gradients"):
            runner.first_call("ftn_pytorch_train", (1, 1), {})
    joined = load(f"import ftn_pytorch\n{plain}", communicator=FIRST_OF_TWO)
    process._state.warnings.clear()
    joined.first_call("ftn_pytorch_train", (1, 1), {})


def text_of(words):
    return b"".join(word.to_bytes(4, "little", signed=True) for word in words).rstrip(b"\0").decode()


@pytest.mark.parametrize("name", ["node17.cluster", None])
def test_the_address_of_rank_0(mpi, monkeypatch, name):
    pytest.importorskip("torch")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    if name is not None:
        monkeypatch.setenv("MASTER_ADDR", name)
    limit = datetime.timedelta(seconds=10)
    mpi.from_others = [[0]]
    store = process_group._store(communicator.Communicator(FIRST_OF_TWO), limit)
    assert text_of(mpi.sent[1]) == f"{name or socket.gethostname()} {store.port}"


def test_a_rank_on_the_same_host_goes_by_localhost(mpi, monkeypatch):
    pytest.importorskip("torch")
    limit = datetime.timedelta(seconds=10)
    monkeypatch.setattr(socket, "gethostname", lambda: "a-name-that-nobody-resolves")
    mpi.from_others = [[0]]
    first = process_group._store(communicator.Communicator(FIRST_OF_TWO), limit)
    mpi.from_others = list(mpi.sent)
    second = process_group._store(communicator.Communicator(SECOND_OF_TWO), limit)
    first.set("key", "value")
    assert second.get("key") == b"value"


def test_calls_that_fail_before_they_average_are_counted_on_several_ranks_only(load, mpi):
    torch = pytest.importorskip("torch")

    class Calls:
        mine = torch.zeros(1)

        def position(self):
            return self.mine.clone()

        def is_at(self, position):
            return bool(self.mine == position)

        def count(self):
            self.mine += 1

    text = """
        from ftn_pytorch.ranks import failed_calls
        def ftn_pytorch_train(x, calls, fails):
            if fails < 1: raise ZeroDivisionError
            failed_calls.averaged(calls)
            calls.count()
            if fails < 2: raise ZeroDivisionError
            return False, 0.0
    """
    calls = Calls()
    train = program.function(load(text, communicator=FIRST_OF_TWO), "ftn_pytorch_train")
    for fails, counted in ((0, 0), (2, 2), (2, 3), (1, 4), (0, 5), (2, 6)):
        with contextlib.suppress(ZeroDivisionError):
            train(None, calls, fails)
        assert calls.mine == counted
    alone = program.function(load(text, name="alone.py", communicator=LONE), "ftn_pytorch_train")
    assert isinstance(train, failed_calls.Counted) and not isinstance(alone, failed_calls.Counted)
