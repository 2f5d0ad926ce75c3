# SPDX-License-Identifier: MIT
"""What a Log tells trackers of experiments: each step once, also after a restart."""

import sys
import types

import pytest
import torch

from ftn_pytorch.kit import Log


def test_packages_that_are_missing_are_named(monkeypatch, tmp_path, fails):
    for name, options in (("tensorboard", str(tmp_path)), ("wandb", {}), ("mlflow", {})):
        monkeypatch.setitem(sys.modules, name, None)
        with fails("IMPORT", f"pip install {name}"):
            Log(**{name: options})
    with fails("ARGUMENT", "comet"):
        Log(comet={})


def test_tensorboard_has_each_step_once(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = Log(tensorboard=str(tmp_path))
    for step in (1, 2):
        log.write(step, loss=step)
    state = log.state_dict()
    log.write(3, loss=30.0)
    log.flush()
    again = Log(tensorboard=str(tmp_path))
    again.load_state_dict(state)
    again.write(3, loss=3.0)
    again.flush()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(1, 1), (2, 2), (3, 3)]


class Recorded:
    """What stands in for wandb, and for mlflow: notes what it is called with."""

    def __init__(self):
        self.calls = []

    def init(self, **options):
        self.calls.append(options)
        return types.SimpleNamespace(id=options.get("id", "run7"), log=self.log, define_metric=self.define_metric)

    def define_metric(self, name, step_metric):
        self.calls.append((name, step_metric))

    def log(self, values):
        self.calls.append(values)

    def start_run(self, **options):
        self.calls.append(options)
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=options.get("run_id", "run8")))

    def log_metrics(self, values, step, run_id):
        self.calls.append((step, values, run_id))


def test_a_restart_goes_on_with_the_runs_of_trackers(monkeypatch):
    wandb, mlflow = Recorded(), Recorded()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)

    def make():
        return Log(wandb={"project": "closure"}, mlflow={"run_name": "a"})

    log = make()
    log.write(1, loss=torch.tensor(0.5))
    again = make()
    again.load_state_dict(log.state_dict())
    again.write(2, loss=0.25)
    assert wandb.calls == [
        {"project": "closure"},
        ("*", "step"),
        {"step": 1, "loss": 0.5},
        {"project": "closure", "id": "run7", "resume": "allow"},
        ("*", "step"),
        {"step": 2, "loss": 0.25},
    ]
    assert mlflow.calls == [
        {"run_name": "a"},
        (1, {"loss": 0.5}, "run8"),
        {"run_name": "a", "run_id": "run8"},
        (2, {"loss": 0.25}, "run8"),
    ]


class Kept:
    def __init__(self):
        self.rows = []

    def log(self, values, step):
        self.rows.append((step, values))


def test_any_object_that_logs_gets_the_numbers():
    run = Kept()
    log = Log(tracker=run)
    log.write(1, loss=2.0)
    log.load_state_dict(log.state_dict())
    log.write(2, loss=1.0, lr=0.1)
    assert run.rows == [(1, {"loss": 2.0}), (2, {"loss": 1.0, "lr": 0.1})]


def test_an_object_that_does_not_log_is_refused(fails):
    with fails("ARGUMENT", "Log(tracker=...): dict has no function log"):
        Log(tracker={})
