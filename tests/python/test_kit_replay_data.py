# SPDX-License-Identifier: MIT
"""A Replay, and the file of one, as data of Lightning."""

import numpy as np
import pytest
import torch

import program
from ftn_pytorch.kit import Replay

pl = pytest.importorskip("lightning.pytorch")

from ftn_pytorch.kit import ReplayData  # noqa: E402


class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.net(x)

    def _loss(self, batch):
        x, target = batch
        return torch.nn.functional.mse_loss(self(x), target)

    def training_step(self, batch, number):
        return self._loss(batch)

    def validation_step(self, batch, number):
        self.log("held_out", self._loss(batch))

    def test_step(self, batch, number):
        self.log("test", self._loss(batch))

    def predict_step(self, batch, number):
        return self(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def filled(held_out=0.25, capacity=1000):
    replay = Replay(capacity, held_out=held_out)
    for number in range(20):
        x = torch.randn(10, 2, generator=torch.Generator().manual_seed(number))
        replay.add(x, x.sum(1, keepdim=True) + 1)
    return replay


def trainer(**options):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return pl.Trainer(accelerator="cpu", devices=1, enable_model_summary=False, **quiet, **options)


@pytest.fixture(params=["live", "npz"])
def source(request, tmp_path):
    """source(replay): the same samples, as they are, or as the file of an earlier run."""

    def source(replay):
        if request.param == "live":
            return replay
        path = str(tmp_path / "samples.npz")
        replay.export(path)
        return path

    return source


@pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers")
def test_a_module_is_trained_validated_tested_and_predicts(source):
    replay = filled()
    data, module = ReplayData(source(replay), 16), Line()
    runs = trainer(max_epochs=30, profiler="simple")
    runs.fit(module, data)
    assert runs.global_step == 30 * 10, "150 samples in batches of 16"
    for found in (runs.validate(module, data, verbose=False), runs.test(module, data, verbose=False)):
        assert list(found[0].values())[0] < 1e-5
    predicted = torch.cat(runs.predict(module, data))
    inputs, targets = replay.held_out[:]
    assert torch.equal(predicted, module(inputs).detach())
    assert torch.allclose(predicted, targets, atol=0.02)


def test_training_draws_each_sample_once_in_an_order_of_its_own(source):
    replay = filled()
    data = ReplayData(source(replay), 16, seed=3)
    torch.manual_seed(0)
    epochs = [torch.cat([x for x, _ in data.train_dataloader()]) for _ in range(2)]
    torch.manual_seed(1)
    again = ReplayData(source(replay), 16, seed=3)
    assert torch.equal(torch.cat([x for x, _ in again.train_dataloader()]), epochs[0])
    other = ReplayData(source(replay), 16)
    other.load_state_dict(again.state_dict())
    assert torch.equal(torch.cat([x for x, _ in other.train_dataloader()]), epochs[1])
    assert not torch.equal(*epochs)
    for each in epochs:
        assert sorted(each[:, 0].tolist()) == sorted(replay[:][0][:, 0].tolist())


def test_without_held_out_samples(source):
    replay = filled(held_out=0)
    data = ReplayData(source(replay), 64)
    assert data.val_dataloader() == []
    assert torch.equal(torch.cat([x for x, _ in data.test_dataloader()]), replay[:][0])


def test_workers_serve_batches():
    replay = filled()
    data = ReplayData(replay, 16, num_workers=1, multiprocessing_context="fork")
    assert sum(len(x) for x, _ in data.train_dataloader()) == len(replay)


def test_files_that_do_not_fit(tmp_path, fails):
    path = str(tmp_path / "samples.npz")
    with fails("FILE", "samples.npz"):
        ReplayData(path)
    (tmp_path / "samples.npz").write_text("no archive")
    with fails("FILE", "samples.npz"):
        ReplayData(path)
    np.savez(path, x=np.zeros((3, 2)), y=np.zeros(4))
    with fails("FORMAT", "x, y have [3, 4] samples"):
        ReplayData(path)
    with fails("FORMAT", "has the arrays x, y, and not z"):
        ReplayData(path, names=["x", "z"])
    assert len(ReplayData(path, names=["y"]).training) == 4
    with fails("ARGUMENT", "samples.txt"):
        ReplayData(str(tmp_path / "samples.txt"))
    with fails("ARGUMENT", "no samples"):
        ReplayData(Replay(10))


@pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers")
def test_the_trained_module_is_exported(tmp_path):
    module, x, script = Line(), torch.randn(4, 2), str(tmp_path / "line.pt")
    trainer(max_epochs=1).fit(module, ReplayData(filled(), 16))
    torch.jit.trace(module.net, x).save(script)
    with torch.inference_mode():
        assert torch.equal(program.call(program.load_model(script), "ftn_pytorch_forward", x), module(x))
