# SPDX-License-Identifier: MIT
"""Checkpoints of scripts that train a LightningModule: a restart goes on as if there had been none."""

import gc
import re
from pathlib import Path

import pytest
import torch

import program
from ftn_pytorch.kit import Online
from test_kit_online import Net, batch, make, pl

MODULE = """
import torch
import lightning.pytorch as pl


class Model(pl.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(3, width), torch.nn.BatchNorm1d(width), torch.nn.Dropout(0.2), torch.nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, number):
        x, target = batch
        loss = torch.nn.functional.mse_loss(self(x), target)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]
"""

TRAINING = """
from ftn_pytorch.kit import Online

torch.manual_seed(0)
online = Online(Model(8), steps_per_epoch=10, gradient_clip_val=1.0, callbacks=[
    pl.callbacks.EarlyStopping("loss", patience=PATIENCE, mode="max")], **OPTIONS)


def ftn_pytorch_forward(x):
    return online(x)


def ftn_pytorch_train(x, target):
    return online.step(x, target)
"""

GLOBAL = MODULE + TRAINING.replace("Online(Model(8),", "Online(model,").replace(
    "online =", "model = Model(8)\nonline ="
)
IMPORTED = "import torch\nimport lightning.pytorch as pl\nfrom closure_models import Model\n" + TRAINING

# The script of the documentation, with epochs of ten steps
PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()
SCRIPT = next(block for block in re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL) if "pl.LightningModule" in block)
SCRIPT = SCRIPT.replace("torch.nn.Linear(5", "torch.nn.Dropout(0.2), torch.nn.Linear(3").replace("% 100", "% 10")


def train(runner, first, last):
    step, forward = (program.function(runner, f"ftn_pytorch_{name}") for name in ("train", "forward"))
    for number in range(first, last):
        x, target = batch(number)
        completed, loss = step(x, target)
        yield completed, torch.as_tensor(loss).item(), forward(x)[0].sum().item()


@pytest.mark.parametrize("script", [GLOBAL, IMPORTED, SCRIPT], ids=["global", "imported", "by hand"])
@pytest.mark.parametrize("last", [20, 25], ids=["end of an epoch", "within an epoch"])
def test_a_restart_goes_on_bit_for_bit(load, write, tmp_path, script, last):
    write("closure_models.py", MODULE)
    script = script.replace("PATIENCE", "99").replace("OPTIONS", "{}")
    place = str(tmp_path / "checkpoints")
    whole = list(train(load(script, name="whole.py"), 0, 45))
    runner = load(script, name="first.py")
    found = list(train(runner, 0, last))
    program.checkpoint(runner, place, keep=2, step=last)
    list(train(runner, last, last + 3))  # that the restart takes back
    del runner
    gc.collect()
    runner = load(script, name="second.py")
    assert program.restore(runner, place) == last
    torch.randn(3)  # nobody else's random numbers matter
    assert program.restore(runner, place) == last
    found += train(runner, last, 45)
    assert found == whole


class Plateau(Net):
    """Its rate follows the mean of an epoch, which Lightning does not save."""

    def training_step(self, batch, number):
        loss = super().training_step(batch, number)
        self.log("mean", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=0, factor=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "mean"}}


def test_means_of_an_epoch_cover_the_batches_since_a_restart():
    """What is promised in place of bit for bit: the docs name both."""

    def steps(online, first, last):
        losses = [float(online.step(*batch(number))[1]) for number in range(first, last)]
        return losses, online.trainer.optimizers[0].param_groups[0]["lr"], online.trainer.callback_metrics

    whole, restarted = make(Plateau, steps_per_epoch=10), make(Plateau, steps_per_epoch=10)
    assert steps(whole, 0, 21)[1] == 0.01 / 2, "the loss falls, which this schedule takes for bad"
    online = make(Plateau, steps_per_epoch=10)
    steps(online, 0, 15)
    restarted.load_state_dict(online.state_dict())
    losses, rate, metrics = steps(restarted, 15, 21)
    assert float(metrics["mean"]) == pytest.approx(sum(losses[:5]) / 5) and rate == 0.01
    assert steps(restarted, 21, 31)[1] == 0.01 / 2, "from the next epoch on"


def test_going_back_in_the_same_process(load, tmp_path):
    script = GLOBAL.replace("PATIENCE", "99").replace("OPTIONS", "{}")
    runner = load(script)
    place = str(tmp_path / "checkpoints")
    program.checkpoint(runner, place, step=0)
    first = list(train(runner, 0, 15))
    program.checkpoint(runner, place, step=15)
    second = list(train(runner, 15, 30))
    assert program.restore(runner, place, step=15) == 15
    assert list(train(runner, 15, 30)) == second
    assert program.restore(runner, place, step=0) == 0
    assert list(train(runner, 0, 15)) == first


def test_callbacks_and_the_end_are_restored(load, tmp_path):
    script = GLOBAL.replace("PATIENCE", "2").replace("OPTIONS", "{}")
    place = str(tmp_path / "checkpoints")
    whole = list(train(load(script, name="whole.py"), 0, 60))
    end = [completed for completed, _, _ in whole].index(True)
    assert end == 29, "the loss falls, which this callback takes for bad"
    for last in (20, 35):
        runner = load(script, name="first.py")
        list(train(runner, 0, last))
        program.checkpoint(runner, place, keep=1, step=last)
        runner = load(script, name="second.py")
        program.restore(runner, place)
        assert list(train(runner, last, 60)) == whole[last:]


def test_gradients_that_are_added_up_are_restored(load, tmp_path):
    script = GLOBAL.replace("PATIENCE", "99").replace("OPTIONS", "{'accumulate_grad_batches': 4}")
    place = str(tmp_path / "checkpoints")
    whole = list(train(load(script, name="whole.py"), 0, 30))
    runner = load(script, name="first.py")
    list(train(runner, 0, 13))
    program.checkpoint(runner, place, keep=1, step=13)
    runner = load(script, name="second.py")
    program.restore(runner, place)
    assert list(train(runner, 13, 30)) == whole[13:]


def test_a_checkpoint_of_another_module_is_refused_and_nothing_changes(load, tmp_path, fails):
    script = IMPORTED.replace("from closure_models import Model", MODULE)
    script = script.replace("PATIENCE", "99").replace("OPTIONS", "{}")
    place = str(tmp_path / "checkpoints")
    other = load(script.replace("Model(8)", "Model(9)"), name="other.py")
    list(train(other, 0, 3))
    program.checkpoint(other, place, keep=1, step=3)
    whole = list(train(load(script, name="whole.py"), 0, 12))
    runner = load(script, name="ours.py")
    found = list(train(runner, 0, 7))
    random = torch.get_rng_state()
    with fails("FORMAT", "of another module", "size mismatch"):
        program.restore(runner, place)
    assert torch.equal(torch.get_rng_state(), random)
    assert found + list(train(runner, 7, 12)) == whole


def test_checkpoints_of_lightning_itself_still_go_to_files(tmp_path):
    saving = pl.callbacks.ModelCheckpoint(tmp_path, every_n_train_steps=5, save_top_k=-1)
    online = make(steps_per_epoch=5, callbacks=[saving])
    for number in range(10):
        online.step(*batch(number))
    files = sorted(each.name for each in tmp_path.iterdir())
    assert len(files) == 2
    again = Net.load_from_checkpoint(tmp_path / files[-1])
    for one, other in zip(again.state_dict().values(), online.module.state_dict().values()):
        assert torch.equal(one, other)


def test_averaged_weights_of_lightning_go_on(load, tmp_path):
    script = GLOBAL.replace("PATIENCE", "99").replace("OPTIONS", "{}")
    script = script.replace("callbacks=[", "callbacks=[pl.callbacks.EMAWeightAveraging(), ")
    place = str(tmp_path / "checkpoints")

    def averages(runner):
        program.checkpoint(runner, place, keep=1, step=40)
        return program.call(runner, "averages")

    script += "\n\ndef averages():\n    return online.state_dict()['trainer']['state_dict']\n"
    whole = load(script, name="whole.py")
    expected = list(train(whole, 0, 20))
    runner = load(script, name="first.py")
    list(train(runner, 0, 12))
    program.checkpoint(runner, place, keep=1, step=12)
    runner = load(script, name="second.py")
    program.restore(runner, place)
    assert list(train(runner, 12, 20)) == expected[12:]


def test_state_before_the_first_step():
    torch.manual_seed(0)
    online, other = Online(Net()), Online(Net())
    other.load_state_dict(online.state_dict())
    x = batch(0)[0]
    assert torch.equal(online(x), other(x))
