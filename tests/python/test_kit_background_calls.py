# SPDX-License-Identifier: MIT
"""Who may call a Background in a thread, and where: with the lock, in a step, after a stop, in inference mode."""

import collections
import dataclasses
import os
import threading
import types

import pytest
import torch

import ftn_pytorch
import program
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.kit import Background

PATIENCE = 600.0
Pair = collections.namedtuple("Pair", "x y")


def training():
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, net


def test_who_holds_the_lock_need_not_wait_for_the_thread():
    """A hook that writes a checkpoint may flush."""
    inner = Background(lambda i: i, queue=1)

    def step(i):
        for k in range(3):
            inner.submit(k)
        return i

    outer = Background(step, queue=2)
    with ftn_pytorch.lock():
        for i in range(5):
            outer.submit(i)
        assert outer.steps == 3, "there was room for two"
        outer.flush()
        assert outer.steps == 5 and outer.loss == 4
        outer.submit(5)
        outer.stop()
    outer.flush()
    inner.flush()
    assert (outer.steps, inner.steps, inner.loss) == (6, 18, 2)


@pytest.mark.parametrize("call", ["submit", "flush"])
def test_a_step_that_would_wait_for_itself_is_told(call):
    background = Background(lambda: getattr(background, call)())
    background.submit()
    with pytest.raises(FtnPytorchError, match=f"{call} was called by the step itself") as failure:
        background.flush()
    assert failure.value.status == "ARGUMENT"


def test_a_stop_ends_the_queue_and_later_calls_go_on():
    learnt, may_go = [], threading.Event()

    def step(i):
        assert may_go.wait(PATIENCE)
        learnt.append(i)
        if i == 0:
            background.stop()
        return i

    background = Background(step, queue=2)
    with ftn_pytorch.lock():
        background.submit(0)
        background.submit(1)
        thread = background._thread
        may_go.set()
    thread.join(PATIENCE)
    assert learnt == [0], "a step may stop its own thread"
    background.submit(2)
    background.submit(3)  # a full queue, for which no thread is there
    background.flush()
    assert learnt == [0, 1, 2, 3]


def test_inference_mode_of_the_caller_is_not_that_of_training():
    step, net = training()
    background = Background(step, net)
    with torch.inference_mode():
        background.published(torch.ones(1, 3))
        background.submit(torch.ones(4, 3) + 1)
    background.flush()
    assert torch.equal(background.published(torch.ones(1, 3)), net(torch.ones(1, 3)))


def test_the_copy_is_made_before_the_first_step():
    step, net = training()
    before = net.weight.detach().clone()
    background = Background(step, net)
    background.submit(torch.ones(4, 3))
    while not background.steps:
        pass
    assert torch.equal(background.published.weight, before)


def test_the_deterministic_mode_returns_the_step_before_however_fast_the_thread_is(monkeypatch):
    work = Background._work

    def at_once(self):
        work(self)
        self._changed.wait_for(lambda: not (self._queue or self._busy))

    monkeypatch.setattr(Background, "_work", at_once)
    background = Background(lambda i: i, deterministic=True)
    assert [background.submit(i)[1] for i in range(3)] == [float("inf"), 0.0, 1.0]


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    more: dict


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: torch.Tensor


class Plain:
    def __init__(self, x):
        self.x = x


class Listed(list):
    pass


# Objects that hold a tensor, and the way to it
HOLDERS = {
    "dataclass": (lambda x: Batch(x, {}), lambda given: given.x),
    "dict in a dataclass": (lambda x: Batch(torch.zeros(3), {"x": [x]}), lambda given: given.more["x"][0]),
    "frozen dataclass": (Frozen, lambda given: given.x),
    "own class": (Plain, lambda given: given.x),
    "list of the user": (lambda x: Listed([x]), lambda given: given[0]),
    "namespace": (lambda x: types.SimpleNamespace(x=x), lambda given: given.x),
    "queue": (lambda x: collections.deque([x], 2), lambda given: given[0]),
    "ordered dict": (lambda x: collections.OrderedDict(x=x), lambda given: given["x"]),
    "default dict": (lambda x: collections.defaultdict(list, x=x), lambda given: given["x"]),
    "set": (lambda x: {x}, lambda given: next(iter(given))),
    "array of NumPy": (lambda x: x.numpy(), torch.as_tensor),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_samples_in_objects_are_copied(name):
    hold, take = HOLDERS[name]
    seen = []
    background = Background(lambda given: seen.append((type(given), take(given).tolist())) or 0.0)
    memory = torch.arange(3.0)
    given = hold(memory)
    with ftn_pytorch.lock():  # the step has to wait
        background.submit(given)
        memory.fill_(9)
    background.flush()
    assert seen == [(type(given), [0.0, 1.0, 2.0])]


def test_networks_among_samples_are_those_of_the_program_and_locks_are_refused(fails):
    net, seen = torch.nn.Linear(1, 1), []
    background = Background(lambda *given: seen.extend(given) or 0.0)
    background.submit(net, sum)
    background.flush()
    assert seen == [net, sum]
    with fails("ARGUMENT", "submit was given a _thread:lock, which cannot be copied", "pass its tensors"):
        background.submit(Plain(threading.Lock()))


def test_samples_in_a_named_tuple_are_copied():
    seen = []
    background = Background(lambda pair: seen.append(pair))
    with ftn_pytorch.lock():
        pair = Pair(torch.ones(2), [torch.ones(2)])
        background.submit(pair)
        pair.x.zero_()
        pair.y[0].zero_()
    background.flush()
    assert type(seen[0]) is Pair and float(seen[0].x.sum() + seen[0].y[0].sum()) == 4


def test_a_step_without_memory_has_the_status_of_it():
    def step():
        raise MemoryError

    background = Background(step)
    background.submit()
    with pytest.raises(FtnPytorchError, match="a step failed") as failure:
        background.flush()
    assert failure.value.status == "MEMORY"


def test_a_lazy_network_is_refused():
    background = Background(lambda: 0.0, torch.nn.LazyLinear(2))
    with pytest.raises(FtnPytorchError, match="call it once with a sample") as failure:
        background.submit()
    assert failure.value.status == "ARGUMENT"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_ends_while_a_step_runs(python):
    code = """
        import os
        import sys
        import threading
        from ftn_pytorch.kit import Background

        may_go = threading.Event()
        background = Background(lambda: may_go.wait() and 0.0)
        background.submit()
        while background._queue:
            pass
        background._changed.acquire()
        child = os.fork()
        background._changed.release()
        if not child:
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        may_go.set()
    """
    assert python(code) == "3\n"


def test_saved_models_are_refused(fails, tmp_path):
    path = str(tmp_path / "net.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(path)
    with fails("ARGUMENT", "is a saved model", "leave out background="):
        program.load_model(path, background=True)
