# SPDX-License-Identifier: MIT
"""A script that is only tried leaves the files of a run as they are; see also tests/diagnosis/test_check.py."""

import os

import pytest

import ftn_pytorch
from ftn_pytorch import Checkpoint
from ftn_pytorch.kit import Log, Replay
from ftn_pytorch.system import trial

torch = pytest.importorskip("torch")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("before", [None, "0", "1"])
def test_a_trial_ends_as_it_began(monkeypatch, before):
    monkeypatch.delenv("FTN_PYTORCH_TRIAL", raising=False)
    if before is not None:
        monkeypatch.setenv("FTN_PYTORCH_TRIAL", before)
    with pytest.raises(ValueError), trial.begun():
        assert trial.is_on()
        raise ValueError
    assert trial.is_on() == (before == "1") and os.environ.get("FTN_PYTORCH_TRIAL") == before


def test_parts_that_write_files_write_none(folder):
    with trial.begun():
        log, replay, checkpoint = (
            Log("run/log.csv", tensorboard="run"),
            Replay(10),
            Checkpoint(kept={"a": torch.ones(2)}),
        )
        for step in range(3):
            log.write(step, loss=1.0)
            replay.add(torch.ones(1, 2))
            checkpoint.write("run/checkpoints")
        log.flush()
        checkpoint.save("net.pt")
        replay.export("samples.npz")
        assert log.state_dict()["step"] == 2
    assert os.listdir(folder) == []


def test_a_script_saves_no_recording(folder, extension):
    @ftn_pytorch.recorded
    def double(x):
        return 2 * x

    for _ in range(9):
        double(torch.ones(3))
    with trial.begun():
        path = ftn_pytorch.save_recording("net.ftr", {"double": double}, {})
    assert path == str(folder / "net.ftr") and os.listdir(folder) == []
    ftn_pytorch.save_recording("net.ftr", {"double": double}, {})
    assert os.listdir(folder) == ["net.ftr"]


def test_a_training_of_lightning_writes_none(folder):
    pl = pytest.importorskip("lightning.pytorch")
    from ftn_pytorch.kit import Online

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(2, 1)

        def training_step(self, batch, number):
            loss = self.net(batch).square().mean()
            self.log("loss", loss)
            self.logger.experiment.add_scalar("number", number)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    with trial.begun():
        saves = pl.callbacks.ModelCheckpoint("kept", every_n_train_steps=1)
        online = Online(Net(), logger=pl.loggers.CSVLogger("run", flush_logs_every_n_steps=1), callbacks=saves)
        losses = [float(online.step(torch.ones(4, 2))[1]) for _ in range(5)]
        online.stop()
    assert losses[-1] < losses[0] and os.listdir(folder) == []
