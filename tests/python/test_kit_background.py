# SPDX-License-Identifier: MIT
"""Training in a thread beside the caller: its numbers, its queue, its failures, checkpoints, and the end."""

import gc
import threading
import time
import weakref

import pytest
import torch

import ftn_pytorch
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.kit import Background

PATIENCE = 600.0


class Training:
    """A network and its step, which may be told to wait or to fail."""

    def __init__(self, record=False):
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2, fused=True)
        self.may_go, self.fails, self.learnt = threading.Event(), False, []
        self.may_go.set()
        net, optimizer = self.net, self.optimizer

        def train(x, target):
            loss = (net(x) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        self.train = ftn_pytorch.recorded(train) if record else train

    def step(self, x, target):
        assert self.may_go.wait(PATIENCE)
        if self.fails:
            raise ValueError("a bad sample")
        self.learnt.append(float(x[0, 0]))
        return self.train(x, target)


def batch(i):
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(i))
    x[0, 0] = i
    return x, x.sum(1, keepdim=True)


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values()))


@pytest.mark.parametrize("record", [False, True])
def test_the_numbers_are_those_of_training_without(record, request):
    if record:
        request.getfixturevalue("extension")
    plain, beside = Training(), Training(record)
    background = Background(beside.step, beside.net)
    for i in range(30):
        loss = plain.step(*batch(i))
        background.submit(*batch(i))
    background.flush()
    assert not record or beside.train.recording.is_ready
    assert background.loss == float(loss) and background.steps == 30
    assert same(plain.net, background.published)
    assert not any(parameter.requires_grad for parameter in background.published.parameters())


def test_samples_are_copied():
    training = Training()
    background = Background(training.step, training.net)
    training.may_go.clear()
    x, target = batch(7)
    background.submit(x, target)
    x[:] = -1
    training.may_go.set()
    background.flush()
    assert training.learnt == [7.0]


def test_weights_are_published_at_calls_only():
    training = Training()
    background = Background(training.step, training.net)
    first = {name: value.clone() for name, value in background.published.state_dict().items()}
    background.submit(*batch(0))
    until(lambda: background.steps == 1)
    assert all(torch.equal(first[name], value) for name, value in background.published.state_dict().items())
    background.publish()
    assert same(background.published, training.net)


@pytest.mark.parametrize("asks", [lambda each: each.publish(), lambda each: each.submit(*batch(0))])
def test_after_a_burst_the_weights_are_those_of_its_last_step(asks):
    training = Training()
    background = Background(training.step, training.net)
    training.may_go.clear()
    for i in range(12):
        background.submit(*batch(i))
    training.may_go.set()
    until(lambda: background.steps == 12)
    learnt = [each.detach().clone() for each in training.net.parameters()]
    training.may_go.clear()
    asks(background)
    assert all(map(torch.equal, learnt, background.published.parameters()))
    training.may_go.set()


def test_the_call_does_not_wait_for_the_step():
    training = Training()
    background = Background(training.step, training.net)
    training.may_go.clear()
    assert background.submit(*batch(0)) == (False, float("inf"))
    assert background.steps == 0
    training.may_go.set()
    background.flush()
    assert background.submit(*batch(1))[1] == background.loss < float("inf")


def test_a_step_may_tell_that_it_has_finished():
    background = Background(lambda x: (torch.tensor(True), x.sum()))
    background.submit(torch.ones(3))
    background.flush()
    assert (background.is_completed, background.loss) == (True, 3.0)


@pytest.mark.parametrize("returned", [(1.0, True), "much", (False, 1.0, 2.0)])
def test_what_else_a_step_returns_is_refused(returned):
    background = Background(lambda: returned)
    background.submit()
    with pytest.raises(FtnPytorchError, match="must be its loss or") as failure:
        background.flush()
    assert failure.value.status == "RESULT_TYPE"


def test_a_full_queue_may_block():
    training = Training()
    background = Background(training.step, queue=2)
    training.may_go.clear()
    for i in range(3):
        background.submit(*batch(i))
        if i == 0:
            until(lambda: not background._queue)
    threading.Timer(0.2, training.may_go.set).start()
    background.submit(*batch(3))
    background.flush()
    assert training.learnt == [0.0, 1.0, 2.0, 3.0] and background.dropped == 0


def submit_behind_a_long_step(background, training, count):
    training.may_go.clear()
    background.submit(*batch(0))
    until(lambda: not background._queue)
    for i in range(1, count):
        background.submit(*batch(i))
    training.may_go.set()
    background.flush()
    assert background.submitted == count and background.steps + background.dropped == count


def test_a_full_queue_may_drop():
    training = Training()
    background = Background(training.step, queue=2, when_full="drop")
    submit_behind_a_long_step(background, training, 8)
    assert training.learnt == [0.0, 1.0, 2.0]


def test_a_full_queue_may_be_thinned():
    training = Training()
    background = Background(training.step, queue=4, when_full="subsample")
    submit_behind_a_long_step(background, training, 40)
    learnt = training.learnt[1:]
    assert 2 <= len(learnt) <= 4 and max(learnt) >= 20, "those that are learnt are spread over the time"


def test_a_failure_reaches_the_next_call_once_with_its_traceback():
    training = Training()
    background = Background(training.step, training.net)
    training.fails = True
    background.submit(*batch(0))
    until(lambda: background._failure)
    with pytest.raises(FtnPytorchError, match="ValueError: a bad sample") as failure:
        background.submit(*batch(1))
    assert failure.value.status == "PYTHON" and "in step" in failure.value.text
    training.fails = False
    background.submit(*batch(2))
    background.flush()
    assert training.learnt == [2.0]


def test_a_failure_that_comes_while_a_call_looks_for_one_is_not_lost():
    class Watched(Background):
        """While a call looks for a failure, a step fails, if it can."""

        @property
        def _failure(self):
            found = vars(self).get("kept")
            if self.submitted == 1 and threading.current_thread() is threading.main_thread():
                training.may_go.set()
                self.failed.wait(0.5)
            return found

        @_failure.setter
        def _failure(self, failure):
            self.kept = failure
            if failure is not None:
                training.fails = False
                self.failed.set()

    training = Training()
    training.fails = True
    training.may_go.clear()
    background = Watched(training.step, training.net)
    background.failed = threading.Event()
    background.submit(*batch(0))
    with pytest.raises(FtnPytorchError, match="ValueError: a bad sample"):
        background.submit(*batch(1))
        background.flush()


def test_the_deterministic_mode_is_one_step_behind():
    plain, beside = Training(), Training()
    background = Background(beside.step, beside.net, deterministic=True)
    previous = float("inf")
    for i in range(20):
        assert background.submit(*batch(i)) == (False, previous)
        if i:
            assert same(background.published, plain.net)
        previous = float(plain.step(*batch(i)))


def test_a_restart_goes_on_bit_for_bit(tmp_path):
    def run(first, last, restored=None, kept=None):
        training = Training()
        background = Background(training.step, training.net, deterministic=True)
        checkpoint = ftn_pytorch.Checkpoint(net=training.net, optimizer=training.optimizer, background=background)
        if restored:
            checkpoint.restore(str(restored))
        told = [background.submit(*batch(i))[1] for i in range(first, last)]
        if kept:
            checkpoint.save(str(kept))
        told.append(float(background.published(torch.ones(1, 3)).sum()))
        background.stop()
        return told

    whole = run(0, 20)
    first = run(0, 10, kept=tmp_path / "ten")
    assert first[:-1] + run(10, 20, restored=tmp_path / "ten") == whole


def test_samples_that_wait_are_kept(tmp_path):
    training = Training()
    background = Background(training.step, training.net)
    checkpoint = ftn_pytorch.Checkpoint(net=training.net, optimizer=training.optimizer, background=background)
    with ftn_pytorch.lock():  # no step begins
        for i in range(3):
            background.submit(*batch(i))
        checkpoint.save(str(tmp_path / "waiting"))
    background.flush()
    again = Training()
    restored = Background(again.step, again.net)
    ftn_pytorch.Checkpoint(net=again.net, optimizer=again.optimizer, background=restored).restore(
        str(tmp_path / "waiting")
    )
    restored.flush()
    assert again.learnt == [0.0, 1.0, 2.0] and same(again.net, training.net)


def test_a_failure_that_was_not_told_yet_is_kept(tmp_path):
    training = Training()
    background = Background(training.step, training.net)
    checkpoint = ftn_pytorch.Checkpoint(net=training.net, optimizer=training.optimizer, background=background)
    training.fails = True
    background.submit(*batch(0))
    background._wait()
    checkpoint.save(str(tmp_path / "failed"))
    with pytest.raises(FtnPytorchError):
        background.flush()
    checkpoint.restore(str(tmp_path / "failed"))
    with pytest.raises(FtnPytorchError, match=r"(?s)a step failed: ValueError: a bad sample.*line") as failure:
        background.submit(*batch(1))
    assert failure.value.status == "PYTHON"
    background.flush()


def test_a_checkpoint_comes_between_steps_of_a_busy_thread(tmp_path):
    """Each step leaves samples for another one, until the checkpoints are written or for very long."""
    training, is_over = Training(), threading.Event()

    def step(*samples):
        if background.steps < 100_000 and not is_over.is_set():
            background._queue.append((samples, {}))
        return training.step(*samples)

    background = Background(step, training.net)
    checkpoint = ftn_pytorch.Checkpoint(net=training.net, optimizer=training.optimizer, background=background)
    background.submit(*batch(0))
    for i in range(5):
        checkpoint.save(str(tmp_path / f"file{i}"))
    with ftn_pytorch.lock():
        waited = len(background._queue)
        is_over.set()
    background.flush()
    assert waited == 1, "the thread did not keep the checkpoints waiting until all was learnt"


def test_a_file_of_another_network_is_refused(tmp_path):
    training = Training()
    Background(training.step, training.net).published  # noqa: B018
    ftn_pytorch.Checkpoint(background=Background(training.step, training.net)).save(str(tmp_path / "one"))
    other = Background(training.step, torch.nn.Linear(2, 2))
    with pytest.raises(FtnPytorchError, match=r"the network float32 \[2, 2\], float32 \[2\]") as failure:
        ftn_pytorch.Checkpoint(background=other).restore(str(tmp_path / "one"))
    assert failure.value.status == "FORMAT"


def test_weights_lose_no_digits():
    """The copy that predicts is made once; the network may be converted after that."""
    net = torch.nn.Linear(3, 1)
    background = Background(lambda x, target: net(x.double()).mean().detach(), net, deterministic=True)
    background.published  # noqa: B018
    net.double()
    background.submit(*batch(1))
    with pytest.raises(FtnPytorchError, match="weights float64 .* that predicts, float32") as failure:
        background.submit(*batch(2))
    assert failure.value.status == "DTYPE"


@pytest.mark.parametrize("given", [{"when_full": "wait"}, {"queue": 0}, {"queue": 2.5}])
def test_wrong_settings_are_refused(given):
    with pytest.raises(FtnPytorchError, match="valid are|at least 1"):
        Background(lambda: None, **given)


def test_without_a_network_there_is_nothing_to_predict_with():
    with pytest.raises(FtnPytorchError, match="no network"):
        Background(lambda: None).published  # noqa: B018


def test_an_idle_thread_ends_and_comes_back(monkeypatch):
    monkeypatch.setattr("ftn_pytorch.kit.background._IDLE", 0.01)
    training = Training()
    background = Background(training.step, training.net)

    def until_its_thread_has_ended(background, number):
        with ftn_pytorch.lock():  # no step begins, so the thread is there
            background.submit(*batch(number))
            thread = background._thread
        background.flush()
        thread.join(PATIENCE)
        assert not thread.is_alive()

    until_its_thread_has_ended(background, 0)
    until_its_thread_has_ended(background, 1)
    assert training.learnt == [0.0, 1.0]
    gone = weakref.ref(background)
    del background
    gc.collect()
    assert gone() is None


def test_the_program_ends_in_the_middle_of_training(python):
    program = """
        import torch
        from ftn_pytorch.kit import Background

        net = torch.nn.Linear(1000, 1000)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)

        def step(x):
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        background = Background(step, net, queue=10_000)
        for i in range(10_000):
            background.submit(torch.ones(10, 1000))
    """
    assert python(program) == ""
