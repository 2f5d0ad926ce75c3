# SPDX-License-Identifier: MIT
"""A LightningModule on two ranks: one network, by average_gradients in a hook of the module."""

import pytest
import torch

from test_gradients import run

pytest.importorskip("lightning")

RANK = """
    import sys
    import torch
    import lightning.pytorch as pl
    from ftn_pytorch import average_gradients
    from ftn_pytorch.kit import Online

    rank, size = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)


    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()

        def training_step(self, x, number):
            return (self.net(x) - x.sum(1, keepdim=True)).square().mean()

        def on_before_optimizer_step(self, optimizer):
            average_gradients(self)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-2)


    torch.manual_seed(0)
    online = Online(Model())
    x = torch.randn(8, 3, dtype=torch.float64)[rank::size]
    for _ in range(20):
        online.step(x)
    print([parameter.tolist() for parameter in online.module.parameters()])
    online.stop()
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_ranks_are_one(tmp_path):
    one, two = run(1, tmp_path, RANK), run(2, tmp_path, RANK)
    for a, b in zip(one, two):
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=0, atol=1e-12)
