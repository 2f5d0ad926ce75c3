# SPDX-License-Identifier: MIT
"""Training and evaluation mode of saved models, whatever mode they were saved in."""

import warnings

import pytest

import program
from ftn_pytorch.script.conventions import FORWARD, TRAIN

torch = pytest.importorskip("torch")

X = torch.rand(64, 1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(1, affine=False)
        self.dropout = torch.nn.Dropout(0.5)
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.dropout(self.norm(x)) * self.weight


def write(path, kind, training):
    net = Net().train(training)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "pickle":
            torch.save(net, path)
        else:
            torch.jit.save(torch.jit.script(net), path)
    return str(path)


def load(path, **options):
    return program.load_model(path, weights_only=False, **options)


def call(runner, name, *args):
    return program.call(runner, name, *args)


def expected(mean=0.0, variance=1.0):
    return (X - mean) / (variance + 1e-5) ** 0.5


@pytest.mark.parametrize("kind", ["torchscript", "pickle"])
@pytest.mark.parametrize("saved", [True, False])
def test_the_same_number_for_the_same_input(tmp_path, kind, saved):
    runner = load(write(tmp_path / "net.pt", kind, saved))
    assert runner.backend == kind
    for _ in range(3):
        torch.testing.assert_close(call(runner, FORWARD, X), expected())
    program.reload(runner)
    torch.testing.assert_close(call(runner, FORWARD, X), expected())


@pytest.mark.parametrize("kind", ["torchscript", "pickle"])
@pytest.mark.parametrize("saved", [True, False])
def test_training_mode_where_it_is_asked_for(tmp_path, kind, saved):
    runner = load(write(tmp_path / "net.pt", kind, saved), training=True)
    for _ in range(2):
        assert not torch.equal(call(runner, FORWARD, X), call(runner, FORWARD, X))
        program.reload(runner)


@pytest.mark.parametrize("training", [True, False])
def test_training_is_in_training_mode_and_leaves_the_mode_of_predictions(tmp_path, fails, training):
    runner = load(write(tmp_path / "net.pt", "torchscript", False), training=training)
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.0)
    losses = {call(runner, TRAIN, X, torch.zeros(64, 1))[1] for _ in range(3)}
    assert len(losses) == 3, "with dropout"
    with fails("SHAPE", "broadcasting"):
        call(runner, TRAIN, X, torch.zeros(64))
    assert torch.equal(call(runner, FORWARD, X), call(runner, FORWARD, X)) != training


def test_a_step_updates_statistics_and_save_keeps_the_mode_of_predictions(tmp_path):
    runner = load(write(tmp_path / "net.pt", "torchscript", True))
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.0)
    call(runner, TRAIN, X, torch.zeros(64, 1))
    trained = expected(0.1 * X.mean(), 0.9 + 0.1 * X.var())
    torch.testing.assert_close(call(runner, FORWARD, X), trained)
    program.save(runner, str(tmp_path / "trained.pt"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = torch.jit.load(tmp_path / "trained.pt")
    assert not written.training
    torch.testing.assert_close(written(X), trained)


def test_a_frozen_model_has_no_mode(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.freeze(torch.jit.script(Net().eval())).save(tmp_path / "net.pt")
    for training in (False, True):
        torch.testing.assert_close(call(load(str(tmp_path / "net.pt"), training=training), FORWARD, X), expected())


def test_files_without_modes_refuse_training_mode(tmp_path, fails):
    exported = torch.export.export(Net().eval(), (X,))
    torch.export.save(exported, tmp_path / "net.pt2")
    with fails("ARGUMENT", "a program of torch.export", "leave out training="):
        load(str(tmp_path / "net.pt2"), training=True)
    load(str(tmp_path / "net.pt2"), training=False)
    (tmp_path / "model.py").write_text("def ftn_pytorch_forward(x): return x\n")
    with fails("ARGUMENT", "sets the mode of its networks itself"):
        load(str(tmp_path / "model.py"), training=True)
