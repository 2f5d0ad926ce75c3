# SPDX-License-Identifier: MIT
"""Threads of ranks on one node: bound ranks keep their cores, NumPy's OpenBLAS gets a share, too many are told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ftn_pytorch
from ftn_pytorch.host import launcher, openblas, process

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
        ([cores(0, 16)], 4, 4),  # each rank has a script for a parent, or others are yet to be started
        ([], 4, 4),
    ],
)
def test_bound_ranks_keep_their_cores(monkeypatch, ranks, count, share):
    monkeypatch.setattr(launcher, "cores", lambda: ranks[0] if ranks else cores(0, 16))
    monkeypatch.setattr(launcher, "cores_of_ranks", lambda: ranks)
    monkeypatch.setenv(LAUNCHED, str(count))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert process.share() == share == process.threads()


LAUNCHER = """
import os, subprocess, sys
def started(core):
    bind = lambda: os.sched_setaffinity(0, {core})
    return subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, preexec_fn=bind)
ranks = [started(int(core)) for core in sys.argv[2:]]
for rank in ranks:
    rank.communicate(b"all are there")
"""
RANK = """
import sys
from ftn_pytorch.host import launcher
sys.stdin.read()
print(launcher.cores_of_ranks() if launcher.cores() == {int(sys.argv[1])} else "another core")
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be bound here")
def test_cores_of_ranks_are_those_that_the_launcher_has_bound_them_to(python):
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    seen = python(LAUNCHER, RANK.replace("sys.argv[1]", str(first)), first, last).splitlines()
    assert str([{first}, {last}]) in seen


def test_nothing_is_told_without_a_parent(monkeypatch):
    for parent in (0, 1 << 30):
        monkeypatch.setattr(os, "getppid", lambda parent=parent: parent)
        assert launcher.cores_of_ranks() == []


@pytest.mark.parametrize(
    ("environment", "rank"),
    [({}, 0), ({"MPI_LOCALRANKID": "3"}, 3), ({"SLURM_LOCALID": "x", "LOCAL_RANK": "2"}, 2)],
)
def test_number_on_the_node(environment, rank):
    assert launcher.local_rank(environment) == rank


def test_the_core_knows_the_same_launchers():
    source = (Path(ftn_pytorch.__file__).parents[2] / "src" / "base" / "rank.cpp").read_text()
    listed = source.partition("local_variables[] = {")[2].partition("}")[0]
    assert [name.strip(' \n"') for name in listed.split(",")] == list(launcher._LOCAL_RANKS)


BLAS = """
import json, os, sys
import numpy
from ftn_pytorch import _embed
from ftn_pytorch.host import launcher, openblas, process
launcher.cores, launcher.cores_of_ranks = lambda: set(range(12)), list
openblas.set_threads(6)
openblas._known.clear()
_embed.on_start({"adopted": sys.argv[1]})
process.settle_threads()
first = openblas.threads()
if sys.argv[2:]:
    _embed.set_threads(int(sys.argv[2]))
print(json.dumps([first, openblas.threads()]))
"""


def blas(*arguments, **environment):
    """Threads of NumPy's OpenBLAS, of 6, after a load, and after set_threads."""
    names = (*openblas.VARIABLES, LAUNCHED)
    kept = {name: value for name, value in os.environ.items() if name not in names}
    package = str(Path(ftn_pytorch.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", BLAS, *arguments],
        env={**kept, "PYTHONPATH": package, **environment},
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
    monkeypatch.setattr(launcher, "cores_of_ranks", list)
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


def test_the_doctor_tells_it(crowded, recwarn):
    torch = pytest.importorskip("torch")
    from ftn_pytorch.diagnosis import doctor

    crowded(4, 4)
    finding = doctor._threads(torch)
    assert finding.verdict == doctor.NOTE and "a rank has 2 core(s)" in finding.found
    assert "set OMP_NUM_THREADS=2" in finding.cure
    crowded(4, 2)
    assert doctor._threads(torch).verdict == doctor.OK
