# SPDX-License-Identifier: MIT
"""The closure as a LightningModule: one class that learns in the running model, and offline from what it has left."""

import lightning.pytorch as pl
import torch
from torch import nn

from ftn_pytorch.kit import Log, Normaliser, Replay


class Closure(pl.LightningModule):
    """Sub-grid tendency of X(k), (n,), from X(k-2), ..., X(k+2), (n, 5)."""

    def __init__(self, width=64, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.scale_x, self.scale_target = Normaliser(5), Normaliser(())
        self.net = nn.Sequential(
            nn.Linear(5, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1), nn.Flatten(0)
        )

    def learn_scales(self, x, target):
        for scale, samples in ((self.scale_x, x), (self.scale_target, target)):
            scale.update(samples)
            scale.freeze()

    def forward(self, x):
        return self.scale_target.denormalise(self.net(self.scale_x(x)))

    def unexplained(self, batch):
        """Share of the variance that the network leaves."""
        x, target = batch
        target = self.scale_target(target)
        return nn.functional.mse_loss(self.net(self.scale_x(x)), target) / target.var()

    def training_step(self, batch, number):
        loss = self.unexplained(batch)
        self.log("loss", loss)
        return loss

    def test_step(self, batch, number):
        self.log("test", self.unexplained(batch))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr, fused=True)
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)]


# What the program calls.

WARM_UP = 1600


def ftn_pytorch_setup(steps, folder):
    """steps: of the optimizer. folder: for samples and the log, which TensorBoard shows."""
    global closure, optimizer, schedule, replay, samples, log, steps_done, last_step
    torch.manual_seed(0)
    closure = Closure()
    (optimizer,), (schedule,) = closure.configure_optimizers()
    replay = Replay(2**17, held_out=0.1)
    samples = f"{folder}/samples.npz"
    log = Log(f"{folder}/log.csv", tensorboard=f"{folder}/log")
    steps_done, last_step = 0, steps


def ftn_pytorch_train(x, target):
    global steps_done
    replay.add(x, target)
    if replay.seen < WARM_UP:
        return False, 1.0
    if not closure.scale_x.frozen:
        closure.learn_scales(*replay[:])
    steps_done += 1
    optimizer.zero_grad()
    loss = closure.unexplained(replay.sample(256))
    loss.backward()
    optimizer.step()
    if steps_done % 500 == 0:
        schedule.step()
    log.write(steps_done, loss=loss)
    return steps_done == last_step, loss


@torch.inference_mode()
def ftn_pytorch_forward(x):
    return closure(x)


def export_samples():
    replay.export(samples)
