# SPDX-License-Identifier: MIT
"""Recorded steps of ranks with a GPU each, whose gradients are averaged by NCCL: a rank that ends."""

import os
import subprocess
import sys
import textwrap

import pytest

import program

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")

CODE = """
    import os, sys
    import torch
    from torch import distributed
    from ftn_pytorch import average_gradients, recorded
    from ftn_pytorch.errors import FtnPytorchError
    from ftn_pytorch.ranks import communicator

    communicator.TIMEOUT = 10.0
    rank = int(sys.argv[1])
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 8).cuda()
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
    print(type(variant.replay).__name__, len(variant.replay._graphs), flush=True)
    if rank == 1:
        os._exit(3)
    try:
        while True:
            step(x).item()
    except FtnPytorchError as failure:
        print(failure.status, failure, flush=True)
    os._exit(0)
"""


def test_a_rank_that_has_ended_ends_the_step_of_the_other(tmp_path, extension):
    build = os.environ.get("FTN_PYTORCH_BUILD_DIR", "")
    environment = {**os.environ, "PYTHONPATH": program.PYTHONPATH, "ftn_pytorch_ROOT": build}
    command = [sys.executable, "-c", textwrap.dedent(CODE)]
    ranks = [
        subprocess.Popen([*command, str(rank), tmp_path / "store"], stdout=subprocess.PIPE, env=environment)
        for rank in range(2)
    ]
    try:
        texts = [rank.communicate(timeout=120)[0].decode().splitlines() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert texts[1] == ["GraphReplay 1"] and ranks[1].returncode == 3
    assert texts[0][0] == "GraphReplay 1"
    assert texts[0][1].startswith("PYTHON ") and "has waited 10 s for them" in texts[0][1]
