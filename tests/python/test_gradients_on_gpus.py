# SPDX-License-Identifier: MIT
"""Steps of ranks whose gradients are averaged by NCCL: a rank that ends, and ranks that share a GPU."""

import os
import subprocess
import sys
import textwrap

import pytest

import program

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

BEGIN = """
    import os, sys
    import torch
    from torch import distributed
    from ftn_pytorch import average_gradients, recorded
    from ftn_pytorch.errors import FtnPytorchError
    from ftn_pytorch.ranks import communicator

    communicator.TIMEOUT = 10.0
    rank = int(sys.argv[1])
    torch.cuda.set_device(rank % int(sys.argv[3]))
    distributed.init_process_group("nccl", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 8).cuda()
"""

RECORDED = """
    optimizer = torch.optim.Adam(net.parameters(), capturable=True)

    @recorded
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        average_gradients(net)
        optimizer.step()
        return loss.detach()

    x = torch.full((4, 8), 1.0 + rank, device="cuda")
    for _ in range(20):
        step(x)
    (variant,) = step.recording._ready
    print(type(variant.runner).__name__, len(variant.runner._graphs), flush=True)
    if rank == 1:
        os._exit(3)
    try:
        while True:
            step(x).item()
    except FtnPytorchError as failure:
        print(failure.status, failure, flush=True)
    os._exit(0)
"""


SHARED = """
    net(torch.ones(2, 8, device="cuda")).sum().backward()
    try:
        average_gradients(net)
    except FtnPytorchError as failure:
        print(failure.status, failure, flush=True)
    os._exit(0)
"""


def run(code, tmp_path, gpus):
    """Two ranks: exit code and lines of each."""
    build = os.environ.get("FTN_PYTORCH_BUILD_DIR", "")
    environment = {**os.environ, "PYTHONPATH": program.PYTHONPATH, "ftn_pytorch_ROOT": build}
    command = [sys.executable, "-c", textwrap.dedent(BEGIN) + textwrap.dedent(code)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), tmp_path / "store", str(gpus)], stdout=subprocess.PIPE, env=environment, text=True
        )
        for rank in range(2)
    ]
    try:
        texts = [rank.communicate(timeout=120)[0].splitlines() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    return [(rank.returncode, lines) for rank, lines in zip(ranks, texts)]


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_rank_that_has_ended_ends_the_step_of_the_other(tmp_path, extension):
    (_, lines), other = run(RECORDED, tmp_path, gpus=2)
    assert other == (3, ["GraphReplay 1"])
    assert lines[0] == "GraphReplay 1"
    assert lines[1].startswith("PYTHON ") and "has waited 10 s for them" in lines[1]


def test_ranks_that_share_a_gpu_are_told_how_to_get_their_own(tmp_path):
    for _, (line,) in run(SHARED, tmp_path, gpus=1):
        assert line.startswith("DEVICE average_gradients: two ranks use the same GPU") and "cuda:local" in line
