# SPDX-License-Identifier: MIT
"""Training in a process beside the caller: a Background of a script or a program, and the option of load."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import ftn_pytorch

torch = pytest.importorskip("torch")
background_process = pytest.importorskip("ftn_pytorch.kit.background_process")

PATIENCE = 600.0
SCRIPT = """
    import os
    import torch
    from ftn_pytorch.kit import Background

    def ftn_pytorch_setup(width=8):
        global net, optimizer, background, steps
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        steps = 0
        background = Background(step, net, process=True, deterministic=True)

    def step(x, target, *, fails=False):
        global steps
        if fails:
            raise ValueError(f"a bad sample in {os.getpid()}")
        steps += 1
        loss = (net(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return steps >= 20, loss

    def predict(x):
        return background.published(x)
"""
HOOKS = """
    def ftn_pytorch_train(x, target, fails=False):
        return step(x, target, fails=fails)

    @torch.no_grad()
    def ftn_pytorch_forward(x):
        return net(x)
"""
PLAIN = SCRIPT + HOOKS
SLOW = """
def ftn_pytorch_train(seconds):
    time.sleep(seconds)
    return False, seconds

def ftn_pytorch_forward(x):
    return net(x)
"""


def batch(i):
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(i))
    return x, x.sum(1, keepdim=True)


def hook(runner, name):
    return runner.bind(name, 0)[0]


@pytest.fixture
def beside(load):
    """beside(text, config): the runner of a script with background=True, deterministic."""
    made = []

    def beside(text=PLAIN, config=None):
        runner = load(text, config, background=True)
        runner._background._deterministic, runner._background._size = True, 1
        made.append(runner)
        return runner

    yield beside
    for runner in made:
        runner._background.stop()


def trained(runner, count):
    """Losses of a synchronous training, and what it predicts then."""
    losses = [float(hook(runner, "ftn_pytorch_train")(*batch(i))[1].detach()) for i in range(count)]
    return losses, hook(runner, "ftn_pytorch_forward")(torch.ones(2, 3))


def test_a_background_of_a_script_has_the_numbers_of_training_without(load):
    losses, prediction = trained(load(PLAIN), 30)
    runner = load(PLAIN)
    background = vars(runner._module)["background"]
    found = [background.submit(*batch(i)) for i in range(30)]
    assert [loss for _, loss in found[1:]] == losses[:-1]
    assert [done for done, _ in found] == [i >= 20 for i in range(30)]
    background.flush()
    assert background.loss == losses[-1]
    assert torch.equal(hook(runner, "predict")(torch.ones(2, 3)), prediction)
    assert torch.equal(vars(runner._module)["net"](torch.ones(2, 3)), prediction), "its own network shares the weights"
    assert vars(runner._module)["steps"] == 0, "nothing was trained here"
    background.stop()


def test_a_process_that_does_not_answer_is_told_of_once(beside, monkeypatch):
    runner = beside("import time\nimport torch\nnet = torch.nn.Linear(1, 1)\n" + SLOW)
    train = hook(runner, "ftn_pytorch_train")
    train(0.0)
    runner._background.flush()
    monkeypatch.setattr(background_process, "_PATIENCE", 0.05)
    with pytest.warns(ftn_pytorch.system.process.FtnPytorchWarning, match="has not answered for 0.05 s") as told:
        for _ in range(2):
            train(0.3)
        runner._background.flush()
    assert len(told) == 1 and runner._background.loss == 0.3, "the wait goes on"


def test_the_option_has_the_numbers_of_training_without(load, beside):
    losses, prediction = trained(load(PLAIN, {"width": 5}), 20)
    runner = beside(config={"width": 5})
    train = hook(runner, "ftn_pytorch_train")
    before = hook(runner, "ftn_pytorch_forward")(torch.ones(2, 3))
    found = [train(*batch(i))[1] for i in range(20)]
    assert found[0] == float("inf") and found[1:] == losses[:-1]
    assert not torch.equal(hook(runner, "ftn_pytorch_forward")(torch.ones(2, 3)), before)
    runner._background.flush()
    assert torch.equal(hook(runner, "ftn_pytorch_forward")(torch.ones(2, 3)), prediction)


def test_after_a_burst_the_weights_are_those_of_its_last_step(load, beside):
    _, prediction = trained(load(PLAIN), 12)
    runner = load(PLAIN, background=True)
    background = runner._background
    with ftn_pytorch.lock():  # no step begins
        for i in range(12):
            hook(runner, "ftn_pytorch_train")(*batch(i))
    end = time.monotonic() + PATIENCE
    while background.steps < 12:
        assert time.monotonic() < end
        time.sleep(0.01)
    background.publish()
    assert torch.equal(hook(runner, "ftn_pytorch_forward")(torch.ones(2, 3)), prediction)
    background.stop()


def test_numbers_that_the_program_draws_change_none_of_a_process(load):
    losses, _ = trained(load(RANDOM), 10)
    runner = load(RANDOM)
    background = vars(runner._module)["background"]
    found = []
    for i in range(10):
        found.append(background.submit(*batch(i))[1])
        torch.rand(7)
    background.flush()
    assert found[1:] == losses[:-1]
    background.stop()


def test_a_restart_goes_on_bit_for_bit(load, beside, fails, tmp_path):
    losses, prediction = trained(load(PLAIN), 20)
    first = beside()
    for i in range(10):
        hook(first, "ftn_pytorch_train")(*batch(i))
    first.save(str(tmp_path / "ten"))
    second = beside()
    second.restore(str(tmp_path / "ten"))
    found = [hook(second, "ftn_pytorch_train")(*batch(i))[1] for i in range(10, 20)]
    assert found[1:] == losses[10:-1]
    second._background.flush()
    assert torch.equal(hook(second, "ftn_pytorch_forward")(torch.ones(2, 3)), prediction)


RANDOM = PLAIN.replace("torch.nn.Tanh()", "torch.nn.Dropout(0.3)")


def test_a_run_goes_on_without_the_option(load, beside, tmp_path):
    losses, prediction = trained(load(RANDOM), 20)
    first = beside(RANDOM)
    for i in range(10):
        hook(first, "ftn_pytorch_train")(*batch(i))
    first._background.flush()
    first.checkpoint(str(tmp_path / "run"), 3, 10)
    second = load(RANDOM)
    assert second.restore(str(tmp_path / "run")) == 10
    assert vars(second._module)["steps"] == 10
    found = [float(hook(second, "ftn_pytorch_train")(*batch(i))[1].detach()) for i in range(10, 20)]
    assert found == losses[10:]


def test_a_run_goes_on_with_the_option(load, beside, tmp_path):
    losses, _ = trained(load(RANDOM), 20)
    first = load(RANDOM)
    for i in range(10):
        hook(first, "ftn_pytorch_train")(*batch(i))
    first.checkpoint(str(tmp_path / "run"), 3, 10)
    trained(first, 1)
    before = vars(first._module)["net"][0].weight.clone()
    second = beside(RANDOM)
    for i in range(3):
        hook(second, "ftn_pytorch_train")(*batch(i))
    assert second.restore(str(tmp_path / "run")) == 10
    net = vars(second._module)["net"]
    first.restore(str(tmp_path / "run"))
    assert torch.equal(net[0].weight, vars(first._module)["net"][0].weight) and not torch.equal(net[0].weight, before)
    train = hook(second, "ftn_pytorch_train")
    found = [train(*batch(10)), *(train(*batch(i))[1] for i in range(11, 20))]
    assert found[0] == (False, float("inf")) and found[1:] == losses[10:-1]
    second._background.flush()
    assert second._background.loss == losses[-1] and second._background.steps == 10
    second.checkpoint(str(tmp_path / "later"), 3, 20)
    assert first.restore(str(tmp_path / "later")) == 20 and vars(first._module)["steps"] == 20


def test_before_the_first_step_and_with_samples_that_wait(load, beside, tmp_path):
    runner = beside()
    runner.save(str(tmp_path / "none"))
    plain = load(PLAIN)
    plain.restore(str(tmp_path / "none"))
    assert vars(plain._module)["steps"] == 0
    with ftn_pytorch.lock():
        hook(runner, "ftn_pytorch_train")(*batch(0))
        runner.save(str(tmp_path / "waiting"))
    with pytest.warns(ftn_pytorch.system.process.FtnPytorchWarning, match="1 sets of samples waited to be learnt"):
        plain.restore(str(tmp_path / "waiting"))


def test_a_file_that_does_not_fit_changes_nothing_with_the_option(load, beside, fails, tmp_path):
    load(PLAIN, {"width": 5}).save(str(tmp_path / "narrow"))
    runner = beside()
    train = hook(runner, "ftn_pytorch_train")
    train(*batch(0))
    runner._background.flush()
    loss, before = runner._background.loss, vars(runner._module)["net"][0].weight.clone()
    with fails("FORMAT", "narrow"):
        runner.restore(str(tmp_path / "narrow"))
    assert torch.equal(vars(runner._module)["net"][0].weight, before)
    train(*batch(0))
    runner._background.flush()
    assert runner._background.loss < loss and runner._background.steps == 2


def test_shapes_may_change_and_a_failure_comes_with_the_traceback_of_the_process(load, beside, fails):
    plain, runner = load(PLAIN), beside()
    for count in (16, 3, 16, 5):
        x, target = (each[:count] for each in batch(count))
        loss = hook(plain, "ftn_pytorch_train")(x, target)[1].item()
        hook(runner, "ftn_pytorch_train")(x, target=target)
        runner._background.flush()
        assert runner._background.loss == loss
    train = hook(runner, "ftn_pytorch_train")
    train(*batch(0), fails=True)
    with fails("PYTHON", "ValueError: a bad sample in", "model.py", "in step"):
        train(*batch(1))
    train(*batch(2))
    runner._background.flush()
    assert runner._background.steps == 5


def test_the_end_of_the_process_is_told_and_a_restore_goes_on(beside, fails, tmp_path):
    runner = beside()
    train = hook(runner, "ftn_pytorch_train")
    train(*batch(0))
    runner._background.flush()
    before = hook(runner, "ftn_pytorch_forward")(torch.ones(2, 3))
    runner.save(str(tmp_path / "one"))
    os.kill(runner._background._remote._process.pid, signal.SIGKILL)
    train(*batch(1))
    with fails("PYTHON", "the process that trains has ended (exit code -9)"):
        runner._background.flush()
    assert torch.equal(hook(runner, "ftn_pytorch_forward")(torch.ones(2, 3)), before), "the weights are as they were"
    with fails("PYTHON", "its optimizer is lost"):
        runner.save(str(tmp_path / "two"))
    runner.restore(str(tmp_path / "one"))
    train(*batch(1))
    runner._background.flush()
    assert runner._background.steps == 2


def test_a_reload_starts_anew_and_the_process_ends_with_the_runner(load):
    runner = load(PLAIN, background=True)
    hook(runner, "ftn_pytorch_train")(*batch(0))
    runner._background.flush()
    child = runner._background._remote._process
    runner.reload()
    assert child.exitcode == 0
    with ftn_pytorch.lock():  # no step begins, so the thread is there
        assert hook(runner, "ftn_pytorch_train")(*batch(0))[1] == float("inf")
        thread = runner._background._thread
    runner._background.flush()
    assert runner._background.steps == 1
    child = runner._background._remote._process
    thread.join(PATIENCE)
    del runner
    gc.collect()
    child.join(PATIENCE)
    assert child.exitcode == 0


def test_a_background_made_too_late_is_refused(load, fails):
    runner = load(
        """
        import torch
        from ftn_pytorch.kit import Background

        def begin():
            global background
            background = Background(begin, torch.nn.Linear(1, 1), process=True)
            background.submit()
            background.flush()
        """,
        name="late.py",
    )
    with fails("ARGUMENT", "makes no Background(process=True) while it is loaded"):
        hook(runner, "begin")()


@pytest.mark.parametrize(
    "text, piece",
    [
        ("import torch\ndef ftn_pytorch_forward(x): return x", "that have ftn_pytorch_train"),
        ("import numpy\ndef ftn_pytorch_train(x, t): return False, 0.0", "train with torch on the host"),
        (
            "import torch\ndef ftn_pytorch_train(x, t): return False, 0.0\ndef ftn_pytorch_save(file): pass",
            "ftn_pytorch_save would run here",
        ),
    ],
)
def test_scripts_that_cannot_are_refused(load, fails, text, piece):
    with fails("ARGUMENT", "cannot train in the background", piece):
        load(text, background=True)


def test_a_script_whose_network_depends_on_chance_gets_that_of_its_caller(load, beside):
    """What the script makes in the other process is replaced before the first step."""
    text = textwrap.dedent(PLAIN).replace("torch.manual_seed(0)", "torch.seed()")
    runner = beside(text)
    weights = [each.clone() for each in vars(runner._module)["net"].parameters()]
    plain = load(text)
    with torch.no_grad():
        for mine, given in zip(vars(plain._module)["net"].parameters(), weights):
            mine.copy_(given)
    losses, prediction = trained(plain, 5)
    for i in range(5):
        hook(runner, "ftn_pytorch_train")(*batch(i))
    runner._background.flush()
    assert runner._background.loss == losses[-1]
    assert torch.equal(hook(runner, "ftn_pytorch_forward")(torch.ones(2, 3)), prediction)


def test_a_program_without_fortran(tmp_path):
    program = """
        import torch
        from ftn_pytorch.kit import Background

        torch.manual_seed(0)
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5)

        def step(x):
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        background = Background(step, net, process=True)

        if __name__ == "__main__":
            for i in range(50):
                background.submit(torch.eye(3))
            background.flush()
            print(background.steps, background.loss < 1e-3)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    package = str(Path(ftn_pytorch.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": package},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "50 True\n", "")


def test_the_process_beside_the_program_is_told_nothing_by_it(beside):
    runner = beside(PLAIN + "    import ftn_pytorch\n    step = lambda *samples, fails: ftn_pytorch.host()\n")
    hook(runner, "ftn_pytorch_train")(*batch(0))
    with pytest.raises(Exception, match=r"ftn_pytorch\.host is not known here"):
        runner._background.flush()
