# SPDX-License-Identifier: MIT
"""Start and exit, threads, MPI ranks, and the way back to the Fortran program."""

import atexit
import gc
import inspect
import os
import sys
import threading
import time
import types

import numpy
import pytest

import program
from ftn_pytorch.system import launcher, log, process

RANKS = [size_or_rank for pair in launcher._RANKS for size_or_rank in pair]
TRAIN = "ftn_pytorch_train"
SCRIPT = "def ftn_pytorch_forward(x): pass\ndef ftn_pytorch_train(x, target): return False, 0.0\n"


@pytest.fixture
def host(monkeypatch):
    """The library's own module, which in a plain Python is not there."""
    module = types.ModuleType("_ftn_pytorch")
    module.warnings = []
    module.version = lambda: "0.1.0"
    module.inherit = lambda descriptor, stays_open: None  # for locks of other tests, which end at any moment
    module.warn = module.warnings.append
    module.log_level = lambda: 0
    module.runner_in_call = lambda: None
    monkeypatch.setitem(sys.modules, "_ftn_pytorch", module)
    return module


@pytest.fixture(autouse=True)
def without_launcher(monkeypatch):
    for name in (*RANKS, *launcher._LOCAL_SIZES, "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(launcher, "cores_of_ranks", lambda count: [])


# ---- warnings


def test_warnings_go_to_the_program(host):
    process.warn("look out")
    assert host.warnings == ["look out"]


def test_warnings_of_a_plain_python_are_warnings():
    with pytest.warns(process.FtnPytorchWarning, match="look out"):
        process.warn("look out")


def test_warning_with_the_name_of_a_file_of_another_encoding_can_be_encoded(host):
    process.warn(os.fsdecode(b"caf\xe9.py"))
    assert host.warnings == ["caf\\udce9.py"]


def test_what_all_ranks_have_alike_is_told_by_one(host, monkeypatch):
    """The others have it in their logs, once as well."""
    lines = []
    host.log_level, host.log = lambda: 1, lambda level, text: lines.append(text)
    for rank, warnings, logged in (("0", ["f is slow"], []), ("1", ["f is slow"], ["f is slow"])):
        monkeypatch.setenv("PMI_SIZE", "2")
        monkeypatch.setenv("PMI_RANK", rank)
        monkeypatch.setattr(process, "_state", process._State())
        log.job_warning("f is slow")
        assert (host.warnings, lines) == (warnings, logged)


def test_version_of_the_library_is_known_inside_it_alone(host, monkeypatch):
    assert process.library_version() == "0.1.0"
    monkeypatch.setitem(sys.modules, "_ftn_pytorch", None)
    assert process.library_version() is None


# ---- ranks that train on their own


def train(runner):
    program.first_call(runner, TRAIN, (numpy.ones(1), numpy.ones(1)), {})


@pytest.mark.parametrize(("size", "rank"), launcher._RANKS)
def test_first_rank_is_warned_once_of_training_alone(load, host, monkeypatch, size, rank):
    monkeypatch.setenv(size, "4")
    monkeypatch.setenv(rank, "0")
    runner = load(SCRIPT)
    program.first_call(runner, "ftn_pytorch_forward", (1,), {})
    assert host.warnings == []
    train(runner)
    train(load(SCRIPT, name="other.py"))
    (text,) = host.warnings
    assert "4 MPI ranks" in text
    assert "network of its own" in text


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"},
        {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2"},
        {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
        {"PMI_SIZE": "many", "PMI_RANK": "0"},
    ],
    ids=["no launcher", "one rank", "another rank", "program of a batch script", "not a number"],
)
def test_no_warning_without_a_lone_first_rank(load, host, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    train(load(SCRIPT))
    assert host.warnings == []


@pytest.mark.parametrize("module", ["mpi4py.MPI", "horovod.torch"])
def test_no_warning_where_the_script_can_pass_messages(load, host, monkeypatch, module):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setitem(process.sys.modules, module, types.ModuleType(module))
    train(load(SCRIPT))
    assert host.warnings == []


def test_no_warning_in_a_group(load, host, monkeypatch, tmp_path):
    distributed = pytest.importorskip("torch.distributed")
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        train(load(SCRIPT))
        assert host.warnings == []
    finally:
        distributed.destroy_process_group()
    train(load(SCRIPT))
    assert len(host.warnings) == 1


# ---- threads


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    yield torch
    torch.set_num_threads(before)


def test_number_of_threads_is_set_at_once_where_torch_is_there(torch):
    program.set_threads(3)
    assert torch.get_num_threads() == 3


def test_number_of_threads_is_remembered_until_a_script_imports_torch(write, python):
    pytest.importorskip("torch")
    path = write("model.py", "import torch\n")
    code = """
        import program, sys
        program.set_threads(3)
        assert "torch" not in sys.modules
        program.load(sys.argv[1])
        print(sys.modules["torch"].get_num_threads())
    """
    assert python(code, path) == "3\n"


@pytest.mark.parametrize("n", [0, -1])
def test_number_of_threads_below_one_is_refused(fails, n):
    with fails("ARGUMENT", str(n), "at least 1"):
        program.set_threads(n)


@pytest.mark.filterwarnings("ignore:.*ranks of this node compute with")
@pytest.mark.parametrize(
    ("environment", "threads"),
    [
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 4),
        ({"MPI_LOCALNRANKS": "3"}, 2),
        ({"SLURM_STEP_TASKS_PER_NODE": "4(x2),3", "SLURM_NODEID": "1"}, 2),
        ({"SLURM_STEP_TASKS_PER_NODE": "4(x2),2", "SLURM_NODEID": "2"}, 4),
        ({"SLURM_STEP_TASKS_PER_NODE": "4,3"}, 2),
        ({"SLURM_STEP_TASKS_PER_NODE": "2,4", "SLURM_NODEID": "7"}, 2),
        ({"SLURM_STEP_TASKS_PER_NODE": "4,many"}, None),
        ({"MV2_COMM_WORLD_LOCAL_SIZE": "4"}, 2),
        ({"MPI_LOCALNRANKS": "two", "MV2_COMM_WORLD_LOCAL_SIZE": "4"}, 2),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "100"}, 1),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMP_NUM_THREADS": "5"}, None),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, None),
        ({}, None),
    ],
)
def test_ranks_of_a_node_share_its_cores(load, torch, monkeypatch, environment, threads):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(process, "cores", lambda: 8)
    torch.set_num_threads(7)
    load("import torch\n")
    assert torch.get_num_threads() == (threads or 7)


def test_a_single_rank_keeps_more_threads_than_it_has_cores(load, torch, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1")
    monkeypatch.setattr(process, "cores", lambda: 2)
    torch.set_num_threads(7)
    load("import torch\n")
    assert torch.get_num_threads() == 7


@pytest.mark.parametrize(("ranks", "threads"), [("1", 6), ("4", 1), ("2", 3), (None, 6)])
def test_other_pools_get_the_share_of_a_rank(monkeypatch, ranks, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(process, "cores", lambda: 6)
    if ranks:
        monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", ranks)
    assert process.threads() == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    assert process.threads() == 5


def test_smaller_number_that_the_script_set_stays(load, torch, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
    monkeypatch.setattr(process, "cores", lambda: 8)
    load("import torch\ntorch.set_num_threads(3)\n")
    assert torch.get_num_threads() == 3


def test_share_of_the_cores_is_given_once(load, torch, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
    monkeypatch.setattr(process, "cores", lambda: 8)
    load("import torch\n")
    torch.set_num_threads(5)
    load("import torch\n")
    assert torch.get_num_threads() == 5


def test_adopted_interpreter_keeps_its_threads(load, torch, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
    monkeypatch.setattr(process, "cores", lambda: 8)
    program.on_start({"adopted": "1"})
    torch.set_num_threads(7)
    load("import torch\n")
    assert torch.get_num_threads() == 7


# ---- start and exit


def test_lines_reach_a_pipe_as_they_are_written(python):
    code = """
        import os, program
        program.on_start({"adopted": "%s"})
        print("written")
        os._exit(0)
    """
    assert python(code % 0) == "written\n"
    assert python(code % 1) == ""


def test_start_needs_no_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    program.on_start({"adopted": "0"})
    program.on_start({"adopted": "1"})


def test_workers_are_started_with_python(monkeypatch):
    from multiprocessing import spawn

    monkeypatch.setattr(spawn, "_python_exe", b"/simulation")
    program.on_start({"adopted": "0"})
    assert os.fsdecode(spawn.get_executable()) == sys.executable


EXIT = """
    import atexit, os, program, sys, threading
    program.on_start({"adopted": "%s"})
    atexit.register(print, "exit function")
    sys.stdout.reconfigure(line_buffering=False)
    print("text")
    threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
    program.at_exit()
    os._exit(0)
"""


def test_exit_waits_for_threads_runs_exit_functions_and_flushes(python):
    """One that goes on when the main thread has nothing more to do."""
    assert python(EXIT % 0) == "text\nthread\nexit function\n"


def test_exit_of_an_adopted_interpreter_only_flushes(python):
    assert python(EXIT % 1) == "text\n"


def test_exit_does_not_raise(monkeypatch, host):
    def fail():
        raise SystemExit(3)

    monkeypatch.setattr(threading, "_shutdown", fail)
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: None)
    monkeypatch.setattr(sys, "stdout", None)
    program.at_exit()
    (text,) = host.warnings
    assert "asked Python to exit" in text


class _Slow:
    """What takes a while when it is collected, and lets other threads run."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0.0001)


def test_threads_make_syntax_trees():
    source, failures = inspect.getsource(inspect), []

    def make():
        for _ in range(5):
            garbage = [_Slow() for _ in range(20)]
            del garbage
            try:
                process.parse(source)
            except SystemError as failure:
                failures.append(failure)

    before = gc.get_threshold()
    gc.set_threshold(50, 5, 5)
    try:
        threads = [threading.Thread(target=make) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        gc.set_threshold(*before)
    assert not failures
