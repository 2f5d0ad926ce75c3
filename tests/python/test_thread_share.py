# SPDX-License-Identifier: MIT
"""Threads of ranks on one node: bound ranks keep their cores, NumPy's OpenBLAS gets a share, too many are told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ftn_pytorch
import program
from ftn_pytorch.system import launcher, openblas, process

LAUNCHED = "OMPI_COMM_WORLD_LOCAL_SIZE"


def cores(begin, end):
    return set(range(begin, end))


@pytest.mark.parametrize(
    ("ranks", "count", "share"),
    [
        ([cores(16 * each, 16 * each + 16) for each in range(4)], 4, 16),  # bound to a quarter
        ([cores(0, 64)] * 4, 4, 16),  # not bound
        ([cores(0, 32)] * 2 + [cores(32, 64)] * 2, 4, 16),  # bound to one of two sockets
        ([cores(0, 16)] * 4, 4, 4),  # not bound, in a container of 16, whatever the launcher may use
        ([cores(0, 48)] * 3, 3, 16),
        ([cores(0, 6), cores(4, 10)], 2, 5),  # two cores are shared
        ([cores(each, each + 1) for each in range(64)], 64, 1),
        ([cores(0, 2)] * 4, 4, 1),
        ([cores(0, 6)], 1, 6),
        ([cores(0, 6)] * 3, 1, 6),  # no job: the parent is a shell with other children
        ([cores(0, 16)], 4, 4),  # others are yet to be started
        ([], 4, 4),
    ],
)
def test_bound_ranks_keep_their_cores(monkeypatch, ranks, count, share):
    monkeypatch.setattr(launcher, "cores", lambda: ranks[0] if ranks else cores(0, 16))
    monkeypatch.setattr(launcher, "cores_of_ranks", lambda count: ranks)
    monkeypatch.setenv(LAUNCHED, str(count))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert process.share() == share == process.threads()


LAUNCHER = """
import os, subprocess, sys
def started(core):
    bind = lambda: os.sched_setaffinity(0, {core})
    command = [*eval(sys.argv.pop(1)), sys.executable, "-c", sys.argv[1]]
    return subprocess.Popen(command, stdin=subprocess.PIPE, preexec_fn=bind)
ranks = [started(int(core)) for core in sys.argv[2:]]
for rank in ranks:
    rank.communicate(b"all are there")
"""
RANK = """
import sys
from ftn_pytorch.system import launcher
sys.stdin.read()
print(launcher.cores_of_ranks(2) if launcher.cores() == {int(sys.argv[1])} else "another core")
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be bound here")
@pytest.mark.parametrize("script", [[], ["sh", "-c", '"$@"; true', "of each rank"]], ids=["alone", "in a script"])
def test_cores_of_ranks_are_those_that_the_launcher_has_bound_them_to(python, script):
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    program = LAUNCHER.replace("eval(sys.argv.pop(1))", repr(script))
    seen = python(program, RANK.replace("sys.argv[1]", str(first)), first, last).splitlines()
    assert str([{first}, {last}]) in seen


def test_nothing_is_told_without_a_parent(monkeypatch):
    for parent in (0, 1 << 30):
        monkeypatch.setattr(os, "getppid", lambda parent=parent: parent)
        assert launcher.cores_of_ranks(2) == []


@pytest.mark.parametrize(
    ("environment", "rank"),
    [({}, 0), ({"MPI_LOCALRANKID": "3"}, 3), ({"SLURM_LOCALID": "x", "LOCAL_RANK": "2"}, 2)],
)
def test_number_on_the_node(environment, rank):
    assert launcher.local_rank(environment) == rank


# What srun tells the sixth of ten ranks, the second one of its node, with cyclic distribution, and what is added
SRUN = {
    "SLURM_JOB_ID": "99",
    "SLURM_STEP_ID": "0",
    "SLURM_NTASKS": "10",
    "SLURM_STEP_NUM_TASKS": "10",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2),2",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "2",
    "SLURM_CPUS_PER_TASK": "6",
}
PMIX = {"PMIX_RANK": "5", "PMIX_NAMESPACE": "slurm.pmix.99.0"}
PMI2 = {"PMI_RANK": "5", "PMI_SIZE": "10", "PMI_JOBID": "99.0"}
# mpirun and mpiexec start a process of their own on each node by srun
OF_DAEMON = {**SRUN, "SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_TASKS_PER_NODE": "1(x3)", "SLURM_PROCID": "2"}
OF_DAEMON = {**OF_DAEMON, "SLURM_LOCALID": "0", "SLURM_CPUS_PER_TASK": "24"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "10",
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
HYDRA = {"PMI_SIZE": "10", "PMI_RANK": "5", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


@pytest.mark.parametrize(
    ("environment", "share", "job"),
    [
        (SRUN, 6, "SLURM_JOB_ID.99.0"),
        ({**SRUN, **PMIX}, 6, "PMIX_NAMESPACE.slurm.pmix.99.0"),
        ({**SRUN, **PMI2}, 6, "SLURM_JOB_ID.99.0"),
        ({**SRUN, "SLURM_CPUS_PER_TASK": "100"}, 24, "SLURM_JOB_ID.99.0"),
        ({name: value for name, value in SRUN.items() if name != "SLURM_CPUS_PER_TASK"}, 12, "SLURM_JOB_ID.99.0"),
        ({**OF_DAEMON, **OPEN_MPI, "OMPI_MCA_ess_base_jobid": "7"}, 12, "OMPI_MCA_ess_base_jobid.7"),
        ({**OF_DAEMON, **HYDRA}, 12, "SLURM_JOB_ID.99.0"),
        (HYDRA, 12, None),
    ],
    ids=["srun", "srun pmix", "srun pmi2", "srun more", "srun no cores", "mpirun", "mpiexec", "mpiexec of PBS"],
)
def test_what_launchers_tell(monkeypatch, environment, share, job):
    """By variables alone: whether the cores of the other ranks are told is another matter."""
    for name in os.environ:
        if name.startswith(("OMPI_", "PMI", "SLURM_", "MPI_", "OMP_NUM_THREADS")):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(launcher, "cores", lambda: cores(0, 24))
    monkeypatch.setattr(launcher, "cores_of_ranks", lambda count: [])
    assert launcher.launched_rank_and_size() == (5, 10)
    assert (launcher.local_rank(os.environ), launcher.local_ranks(os.environ)) == (1, 2)
    assert process.share() == share
    assert job is None or launcher.job() == job


def test_the_core_knows_the_same_launchers():
    source = (Path(ftn_pytorch.__file__).parents[2] / "src" / "base" / "rank.cpp").read_text()
    listed = source.partition("local_variables[] = {")[2].partition("}")[0]
    assert [name.strip(' \n"') for name in listed.split(",")] == list(launcher._LOCAL_RANKS)


BLAS = """
import ctypes, json, os, sys
import numpy, program
from ftn_pytorch.system import launcher, openblas, process

def threads():
    getters = [(library, name % "get") for library in map(ctypes.CDLL, openblas._loaded()) for name in openblas._NAMES]
    return [getattr(library, name)() for library, name in getters if hasattr(library, name)]

launcher.cores, launcher.cores_of_ranks = lambda: set(range(12)), lambda count: []
openblas.set_threads(6)
openblas._known.clear()
program.on_start({"adopted": sys.argv[1]})
process.settle_threads()
first = threads()
if sys.argv[2:]:
    program.set_threads(int(sys.argv[2]))
print(json.dumps([first, threads()]))
"""


def blas(*arguments, **environment):
    """Threads of NumPy's OpenBLAS, of 6, after a load, and after set_threads."""
    names = (*openblas.VARIABLES, LAUNCHED)
    kept = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", BLAS, *arguments],
        env={**kept, "PYTHONPATH": program.PYTHONPATH, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module", autouse=True)
def _numpy_has_openblas():
    pytest.importorskip("numpy")
    if not openblas._loaded():
        pytest.skip("NumPy has another BLAS, or one of the system")


def test_openblas_gets_the_share_of_a_rank():
    assert blas("0", **{LAUNCHED: "4"}) == [[3], [3]]


def test_openblas_gets_the_number_of_set_threads():
    assert blas("0", "2") == [[6], [2]]


@pytest.mark.parametrize(
    "environment",
    [{}, {LAUNCHED: "1"}, {LAUNCHED: "2"}, *({LAUNCHED: "4", name: "6"} for name in openblas.VARIABLES)],
)
def test_openblas_keeps_its_number(environment):
    """Of one rank, where the share is as large, and where a variable says how many."""
    assert blas("0", **environment) == [[6], [6]]


def test_openblas_of_an_adopted_interpreter_belongs_to_its_program():
    assert blas("1", **{LAUNCHED: "4"}) == [[6], [6]]


@pytest.fixture
def crowded(monkeypatch):
    """crowded(ranks, threads, rank): settled, with 8 cores."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    monkeypatch.setattr(launcher, "cores", lambda: set(range(8)))
    monkeypatch.setattr(launcher, "cores_of_ranks", lambda count: [])
    monkeypatch.setattr(process, "_state", process._State())

    def crowded(ranks, threads, rank=0):
        monkeypatch.setenv(LAUNCHED, str(ranks))
        monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", str(rank))
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
        torch.set_num_threads(threads)
        process.settle_threads()

    yield crowded
    torch.set_num_threads(before)


def test_too_many_threads_are_told_once(crowded):
    with pytest.warns(process.FtnPytorchWarning) as warned:
        crowded(4, 4)
        process._state.threads_settled = False
        crowded(4, 4)
    (one,) = warned
    assert "4 ranks of this node compute with 4 threads each, and a rank has 2 core(s)" in str(one.message)
    assert "OMP_NUM_THREADS=2" in str(one.message)


@pytest.mark.parametrize(("ranks", "threads", "rank"), [(4, 2, 0), (1, 16, 0), (4, 4, 1), (16, 1, 0)])
def test_no_warning(crowded, recwarn, ranks, threads, rank):
    crowded(ranks, threads, rank)
    assert not recwarn.list


def test_first_ranks_of_other_nodes_leave_it_to_rank_0(crowded, recwarn, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "8")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "4")
    crowded(4, 4)
    assert not recwarn.list


def test_the_doctor_tells_it(crowded, recwarn):
    torch = pytest.importorskip("torch")
    from ftn_pytorch.diagnosis import doctor

    crowded(4, 4)
    finding = doctor._threads(torch)
    assert finding.verdict == doctor.NOTE and "a rank has 2 core(s)" in finding.found
    assert "set OMP_NUM_THREADS=2" in finding.cure
    crowded(4, 2)
    assert doctor._threads(torch).verdict == doctor.OK
