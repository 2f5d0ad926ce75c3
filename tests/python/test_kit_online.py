# SPDX-License-Identifier: MIT
"""A LightningModule that is trained call by call: what Lightning does, and what a simulation must not feel of it."""

import gc
import math
import os
import threading
import weakref

import pytest
import torch

from ftn_pytorch.kit import Background, Online

pl = pytest.importorskip("lightning.pytorch")


class Net(pl.LightningModule):
    def __init__(self, lr=0.1, momentum=0.9):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, number):
        x, target = batch
        loss = torch.nn.functional.mse_loss(self(x), target)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=self.hparams.momentum)
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5), "interval": "epoch"}]


def batch(number):
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(number))
    return x, x.sum(1, keepdim=True)


def make(kind=Net, **options):
    torch.manual_seed(0)
    return Online(kind(), **options)


def by_hand(steps, steps_per_epoch):
    """The losses of the same training without Lightning."""
    torch.manual_seed(0)
    net = Net()
    (optimizer,), (schedule,) = net.configure_optimizers()
    for number in range(1, steps + 1):
        x, target = batch(number)
        loss = torch.nn.functional.mse_loss(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % steps_per_epoch == 0:
            schedule["scheduler"].step()
        yield loss.detach()


def test_steps_are_those_of_a_training_by_hand():
    online = make(steps_per_epoch=4)
    found = [online.step(*batch(number)) for number in range(1, 11)]
    assert [loss for _, loss in found] == list(by_hand(10, 4))
    assert not any(completed for completed, _ in found)
    assert online.trainer.global_step == 10
    assert online.trainer.current_epoch == 2


class Seen(pl.Callback):
    def __init__(self):
        self.hooks = []

    def on_train_start(self, trainer, module):
        self.hooks.append("start")

    def on_train_epoch_end(self, trainer, module):
        self.hooks.append(f"epoch {trainer.current_epoch}")

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.hooks.append(batch_idx)

    def on_train_end(self, trainer, module):
        self.hooks.append("end")


def test_callbacks_loggers_and_limits_are_lightnings(tmp_path):
    logger = pl.loggers.CSVLogger(tmp_path, flush_logs_every_n_steps=2)
    seen = Seen()
    online = make(steps_per_epoch=2, callbacks=seen, logger=logger, log_every_n_steps=1, max_steps=5)
    found = [online.step(*batch(number)) for number in range(5)]
    assert [completed for completed, _ in found] == [False] * 4 + [True]
    assert seen.hooks == ["start", 0, 1, "epoch 0", 0, 1, "epoch 1", 0, "epoch 2", "end"]
    assert online.step(*batch(7)) == found[-1], "nothing is learnt any more"
    rows = (tmp_path / "lightning_logs" / "version_0" / "metrics.csv").read_text().splitlines()
    assert len(rows) == 6


def test_a_callback_ends_the_training():
    stopping = pl.callbacks.EarlyStopping("loss", patience=1, mode="max", check_on_train_epoch_end=True)
    online = make(steps_per_epoch=2, callbacks=[stopping])
    steps = next(number for number in range(1, 100) if online.step(*batch(0))[0])
    assert steps == 2 * (stopping.stopped_epoch + 1)


def test_nothing_is_written_or_told(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = python(
        """
        import sys
        sys.stderr = sys.stdout
        sys.path.append(sys.argv[1])
        from test_kit_online import batch, make, Net
        Net.validation_step = lambda module, batch, number: None
        online = make()
        online.step(*batch(0))
        online.stop()
        online.step(*batch(0))
        online.load_state_dict(online.state_dict())
        online.step(*batch(0))
        """,
        os.path.dirname(__file__),
        warm=True,
    )
    assert told == ""
    assert os.listdir(tmp_path) == []


class Manual(Net):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, number):
        optimizer = self.optimizers()
        loss = super().training_step(batch, number)
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        return loss


def test_manual_optimization_and_accumulated_gradients():
    assert [make(Manual).step(*batch(1))[1]] == list(by_hand(1, 9))
    online = make(accumulate_grad_batches=3)
    before = online.module.net[0].weight.clone()
    assert online.step(*batch(1))[1] == pytest.approx(next(by_hand(1, 9)).item())
    online.step(*batch(2))
    assert torch.equal(online.module.net[0].weight, before)
    online.step(*batch(3))
    assert not torch.equal(online.module.net[0].weight, before)


class NoLoss(Net):
    def training_step(self, batch, number):
        return None


class EndsEpochs(Net):
    def on_train_batch_start(self, batch, number):
        return -1


def test_steps_without_a_loss():
    for kind in (NoLoss, EndsEpochs):
        online = make(kind)
        for number in range(3):
            completed, loss = online.step(*batch(number))
            assert not completed and math.isnan(loss)


class Fails(Net):
    fails = False

    def training_step(self, batch, number):
        if self.fails:
            raise ZeroDivisionError("of the user")
        return super().training_step(batch, number)


def test_a_failure_reaches_the_caller_and_the_next_step_goes_on(fails):
    online = make(Fails, steps_per_epoch=4)
    found = [online.step(*batch(number))[1] for number in (1, 2)]
    random = torch.get_rng_state()
    online.module.fails = True
    with fails("PYTHON", "ZeroDivisionError: of the user", "test_kit_online.py", "in training_step"):
        online.step(*batch(3))
    assert torch.equal(torch.get_rng_state(), random)
    online.module.fails = False
    found += [online.step(*batch(number))[1] for number in range(3, 9)]
    assert found == list(by_hand(8, 4)), "optimizer, scheduler and counts of epochs have survived"


class NoOptimizer(Net):
    configure_optimizers = pl.LightningModule.configure_optimizers


class NoStep(Net):
    training_step = pl.LightningModule.training_step


class BadOptimizer(Net):
    def configure_optimizers(self):
        return 7


class FailingOptimizer(Net):
    def configure_optimizers(self):
        raise KeyError("lr")


def test_what_lightning_cannot_train_is_told(fails):
    kinds = {NoOptimizer: "configure_optimizers", NoStep: "training_step", BadOptimizer: "Unknown configuration"}
    for kind, text in kinds.items():
        online = make(kind)
        for _ in range(2):
            with fails("ARGUMENT", f"Lightning cannot train {kind.__name__}", text):
                online.step(*batch(0))
        assert online(batch(0)[0]).shape == (16, 1), "the module is as usable as before"
        assert online.state_dict()["trainer"] is None
    with fails("PYTHON", "KeyError: 'lr'", "in configure_optimizers"):
        make(FailingOptimizer).step(*batch(0))
    with fails("ARGUMENT", "LightningModule", "Linear"):
        Online(torch.nn.Linear(1, 1))
    with fails("ARGUMENT", "steps_per_epoch is 0"):
        make(steps_per_epoch=0)
    with fails("PYTHON", "max_stepss"):
        make(max_stepss=3).step(*batch(0))
    with fails("ARGUMENT", "devices=1"):
        make(devices=2, strategy="ddp").step(*batch(0))


class Recursive(Net):
    def training_step(self, batch, number):
        self.online().step(*batch)


def test_a_step_within_a_step_is_refused(fails):
    online = make(Recursive)
    online.module.online = weakref.ref(online)
    with fails("ARGUMENT", "step was called by the step itself"):
        online.step(*batch(0))


def test_lightning_that_is_missing_is_told(python):
    told = python(
        """
        import sys
        sys.modules["lightning"] = None
        for name in ("Online", "ReplayData"):
            try:
                exec(f"from ftn_pytorch.kit import {name}")
            except Exception as failure:
                print(failure.status, failure)
        """
    )
    assert told.count("IMPORT") == 2
    assert told.count("python -m pip install lightning") == 2


@pytest.mark.parametrize(
    "launcher",
    [
        {"SLURM_NTASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "3", "SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "job",
         "SLURM_NTASKS_PER_NODE": "4", "SLURM_NODEID": "0", "SLURM_STEP_NUM_TASKS": "4"},
        {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "3"},
        {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "3", "NODE_RANK": "0", "GROUP_RANK": "0", "MASTER_ADDR": "a",
         "MASTER_PORT": "1", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "1"},
    ],
    ids=["srun", "mpirun", "torchrun"],
)  # fmt: skip
def test_each_rank_trains_by_itself_and_logs(launcher, tmp_path, python, monkeypatch):
    for name, value in launcher.items():
        monkeypatch.setenv(name, value)
    # In a fresh process: Lightning reads the variables when it is imported.
    told = python(
        """
        import os, sys, torch
        sys.path.append(sys.argv[1])
        before = dict(os.environ)
        from test_kit_online import batch, make, pl
        online = make(logger=pl.loggers.CSVLogger(sys.argv[2]), log_every_n_steps=1, max_steps=2)
        print(online.step(*batch(0))[0], online.step(*batch(1))[0], online.trainer.world_size)
        print(torch.distributed.is_initialized(), dict(os.environ) == before)
        """,
        os.path.dirname(__file__),
        tmp_path,
        warm=True,
    )
    assert told == "False True 1\nFalse True\n"
    assert (tmp_path / "lightning_logs" / "version_0" / "metrics.csv").exists()


def test_the_end_of_a_process_ends_the_training(python, tmp_path):
    told = python(
        """
        import sys
        sys.path.append(sys.argv[1])
        from test_kit_online import batch, make, pl, Seen
        seen = Seen()
        seen.on_train_end = lambda *given: print("the end")
        online = make(callbacks=[seen], logger=pl.loggers.CSVLogger(sys.argv[2]), log_every_n_steps=1)
        online.step(*batch(0))
        """,
        os.path.dirname(__file__),
        tmp_path,
    )
    assert told == "the end\n"
    rows = (tmp_path / "lightning_logs" / "version_0" / "metrics.csv").read_text()
    assert rows.startswith("epoch,loss,step\n0,"), "what the logger had was written"


def test_no_thread_is_left_of_what_is_gone():
    before = set(threading.enumerate())
    online = make(min_steps=100)
    online.step(*batch(0))
    started = set(threading.enumerate()) - before
    assert len(started) == 1
    del online
    gc.collect()
    assert not started & set(threading.enumerate())


def test_evaluation_between_steps():
    online = make()
    online.module.net[0].eval()
    online.step(*batch(0))
    x = batch(0)[0]
    found = online(x)
    assert torch.equal(found, online(x)), "no dropout"
    assert not found.requires_grad
    assert [each.training for each in online.module.net] == [False, True, True]
    online.step(*batch(0))


def test_the_samples_of_a_step_are_not_kept():
    online = make()
    x, target = batch(0)
    kept = weakref.ref(x)
    online.step(x, target)
    del x
    gc.collect()
    assert kept() is None


def test_a_background_makes_the_steps():
    online = make(steps_per_epoch=4)
    background = Background(online.step, online.module, deterministic=True)
    for number in range(1, 9):
        background.submit(*batch(number))
    background.flush()
    assert background.loss == list(by_hand(8, 4))[-1]
    x = batch(0)[0]
    background.published.eval()
    assert torch.equal(background.published(x), online(x))
    background.stop()


def test_interrupted_waiting_is_made_up_for(monkeypatch):
    online = make()
    online.step(*batch(1))

    def interrupted():
        monkeypatch.undo()
        online._handoff._owes_answer = True
        raise KeyboardInterrupt

    monkeypatch.setattr(online._handoff, "_answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        online.step(*batch(2))
    assert online.step(*batch(3))[1] == list(by_hand(3, 9))[-1]


def test_a_profiler_reports(caplog, monkeypatch):
    online = make(profiler="simple", max_steps=2)
    with caplog.at_level("INFO"):
        import logging

        monkeypatch.setattr(logging.getLogger("lightning.pytorch"), "propagate", True)
        online.step(*batch(0))
        online.step(*batch(0))
    assert "run_training_batch" in caplog.text
