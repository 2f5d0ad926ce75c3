# SPDX-License-Identifier: MIT
"""Processes that share a GPU through MPS, NVIDIA's service: what they compute, and who knows that it runs."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

import program

pytest.importorskip("torch")

from devices import GPU  # noqa: E402
from ftn_pytorch.system import shared_gpu  # noqa: E402

CONTROL = shutil.which("nvidia-cuda-mps-control")
pytestmark = [GPU, pytest.mark.skipif(CONTROL is None, reason="nvidia-cuda-mps-control is not here")]

RANKS = 3
CODE = """
    import torch
    from ftn_pytorch import recorded

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)).cuda()
    optimizer = torch.optim.Adam(net.parameters(), fused=True)

    @recorded
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step(torch.full((256, 16), 0.1 * call, device="cuda")).item() for call in range(40)]
    (variant,) = step.recording._ready
    print(bool(variant.runner._graphs), losses)
"""


@pytest.fixture
def mps(tmp_path):
    """Environment of processes that find a service of their own."""
    environment = {
        **os.environ,
        "PYTHONPATH": program.PYTHONPATH,
        "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "pipes"),
        "CUDA_MPS_LOG_DIRECTORY": str(tmp_path / "logs"),
    }
    (tmp_path / "pipes").mkdir()
    (tmp_path / "logs").mkdir()
    # With fewer GPUs than the driver has, torch finds fewer than it has counted
    of_all_gpus = {name: value for name, value in environment.items() if name != "CUDA_VISIBLE_DEVICES"}
    subprocess.run([CONTROL, "-d"], env=of_all_gpus, check=True, timeout=60)
    yield environment
    subprocess.run([CONTROL], input=b"quit\n", env=environment, timeout=60)


def losses(environment, ranks):
    environment = {**environment, "ftn_pytorch_ROOT": os.environ.get("FTN_PYTORCH_BUILD_DIR", "")}
    command = [sys.executable, "-c", textwrap.dedent(CODE)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) for _ in range(ranks)]
    return [process.communicate(timeout=300)[0] for process in processes]


def test_ranks_of_mps_compute_what_one_alone_computes(mps, extension):
    alone = {name: value for name, value in mps.items() if not name.startswith("CUDA_MPS_")}
    (expected,) = losses(alone, 1)
    assert expected.startswith("True [")
    assert losses(mps, RANKS) == [expected] * RANKS


def test_the_service_is_seen_while_it_runs(mps):
    gpus = len(os.listdir("/proc/driver/nvidia/gpus"))
    ranks = {f"OMPI_COMM_WORLD_{name}": str(gpus + 1) for name in ("SIZE", "LOCAL_SIZE")}
    mps.update(ranks, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_LOCAL_RANK="0", CUDA_VISIBLE_DEVICES="")
    assert shared_gpu.turns(mps) == ""
    subprocess.run([CONTROL], input=b"quit\n", env=mps, check=True, timeout=60)
    assert "wait for each other" in shared_gpu.turns(mps)
