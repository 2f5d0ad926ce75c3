# SPDX-License-Identifier: MIT
"""One process that loads for all ranks of a node: its start, and its end. Calls: tests/fortran/test_node_mpi.f90."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from mpi_environment import MPI_ENVIRONMENT

from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.kit import Normaliser
from ftn_pytorch.ranks import communicator, node, own_rank


@pytest.fixture
def program(build_dir):
    """A rank that loads, prints the process of its worker, and waits."""
    found = build_dir / "tests" / "fortran" / "test_node_mpi"
    if not found.exists():
        pytest.skip("no MPI with module mpi_f08 is here")
    return found


@pytest.fixture
def environment():
    return {
        **os.environ,
        "FPT_TEST_SCRIPTS": str(Path(__file__).parents[1] / "fortran" / "scripts"),
        **MPI_ENVIRONMENT,
    }


def is_there(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def parent_of(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_nothing_outlives_a_rank_that_is_killed(program, environment, tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment["FTN_PYTORCH_RECORD"] = str(tmp_path / "calls")
    cores = {min(os.sched_getaffinity(0))}
    command = ["taskset", "-c", str(*cores), program, "alone"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, text=True, **pipes) as rank:
        try:
            worker = int(rank.stdout.readline())
            loader = parent_of(worker)
            assert parent_of(loader) == rank.pid
            assert all(map(is_there, (worker, loader)))
            for link in ("cwd", "fd/0", "fd/1", "fd/2"):
                assert os.readlink(f"/proc/{worker}/{link}") == os.readlink(f"/proc/{rank.pid}/{link}")
            assert os.sched_getaffinity(worker) == os.sched_getaffinity(rank.pid) == cores
        finally:
            rank.send_signal(signal.SIGKILL)
        latest = time.monotonic() + 60
        while any(map(is_there, (worker, loader))) and time.monotonic() < latest:
            time.sleep(0.05)
        assert not is_there(worker)
        assert not is_there(loader)
        assert 'FTN_PYTORCH_RECORD has no effect on what is loaded with per="node"' in rank.stderr.read()
    assert not (tmp_path / "calls").exists()
    assert not list(Path("/dev/shm").glob("*ftn_pytorch*"))


def children_of(process):
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_a_worker_of_a_saved_model_has_the_threads_of_its_rank(program, environment, tmp_path):
    """Who loads for all ranks has one thread, since threads do not survive a fork."""
    if not next(program.parents[2].glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("there is no build with a direct path")
    torch.jit.trace(torch.nn.Tanh(), torch.ones(2, 1)).save(tmp_path / "net.pt")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}

    def threads(asked, variable):
        found = {**environment, "OMP_NUM_THREADS": str(variable)}
        with subprocess.Popen([program, "computes", str(asked)], env=found, cwd=tmp_path, text=True, **pipes) as rank:
            assert rank.stdout.readline() == "computed\n"
            ((worker,),) = [children_of(loader) for loader in children_of(rank.pid) if children_of(loader)]
            count = len(os.listdir(f"/proc/{worker}/task"))
            rank.communicate()
        return count

    assert threads(0, 1) == 1, "of the variable"
    assert threads(0, 3) == threads(3, 1) >= 3, "as many as the program can ask for"
    assert threads(0, "") == threads(len(os.sched_getaffinity(0)), 1), "one for each core"


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_rank_asks_little_of_file_systems(program, environment, build_dir, tmp_path):
    """The rank and its worker, without the process that loads for all of them. Files of the MPI do not count."""
    trace = tmp_path / "trace"
    command = ["strace", "-ff", "-qq", "-e", "trace=%file", "-e", "signal=none", "-o", trace, program, "alone"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, text=True, **pipes) as tracer:
        worker = int(tracer.stdout.readline())
        loader = parent_of(worker)
        rank = parent_of(loader)
        os.kill(rank, signal.SIGKILL)
    folders = (str(build_dir), str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix, str(tmp_path))

    def asked(process):
        paths = re.findall(r'^[^"\n]+"(/[^"]+)"', Path(f"{trace}.{process}").read_text(), re.MULTILINE)
        return [path for path in paths if path.startswith(folders)]

    assert len(asked(loader)) > 1000
    assert len(asked(rank)) + len(asked(worker)) < 100


def test_while_a_script_is_loaded_there_is_no_rank():
    """What needs none works: sizes, and parts of the kit that learn by themselves."""
    ours = node.NodeCommunicator(5, 3)
    normaliser = Normaliser(2)
    with communicator.of_module(ours):
        assert own_rank.world_size() == 3 and not own_rank.is_known()
        normaliser.update(torch.ones(4, 2))
        with pytest.raises(FtnPytorchError, match="there is no rank while it is loaded"):
            own_rank.rank()
        ours.become(2)
        assert own_rank.rank() == 2
    assert normaliser.count == 4
