# SPDX-License-Identifier: MIT
"""Training beside the simulation: a step that runs in a thread, on copies, while the caller goes on."""

from __future__ import annotations

import atexit
import copy
import functools
import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError, describe, require_count
from ..system import fair_lock, process
from .copies import own
from .outcome import outcome_of
from .publishing import Weights, parts_of
from .unrecorded import Number, unrecorded

_WHEN_FULL = ("block", "drop", "subsample")
# A thread that has nothing to do ends after so many seconds, because a thread keeps the script alive that it works for.
_IDLE = 1.0
_ADVICE = "call it outside of the recorded function, and record the step that it makes"


@unrecorded(_ADVICE, published="give it a name of the script before, which leads to it", use=None)
class Background:
    """Runs ``step`` on the samples that ``submit`` is given, in a thread, one after the other.

    ``step``: a function that trains on one set of samples and returns its loss, or ``(is_completed, loss)``.
    ``network``: a torch.nn.Module that ``step`` trains. Predict with ``published``, a copy of it, which takes the new
    weights in ``submit`` and in ``publish`` only: never in the middle of a prediction.

    ``queue``: how many sets of samples may wait. ``when_full``: ``submit`` waits for room ("block"), does without these
    samples ("drop"), or every second set that waits goes, and from then on every second one that comes ("subsample").
    ``deterministic``: ``submit`` waits until the samples of the call before are learnt and publishes them, so that the
    numbers do not depend on timing; one step still runs beside the simulation. A step in a thread draws from the same
    default generators as the program's calls: if both draw, use ``process=True``, or a ``torch.Generator`` for one.
    ``process``: the step runs in a process of its own, for steps that hold Python's interpreter lock for long.

    The thread holds ``ftn_pytorch.lock()`` during a step, so checkpoints are written and read between steps.
    """

    is_completed, loss = Number(), Number()
    """What the last step has returned; before the first one the loss is infinite."""
    submitted, steps, dropped = Number(), Number(), Number()
    """Sets of samples that have come, that were learnt, and that were not taken."""

    def __init__(
        self,
        step: Callable[..., Any],
        network: torch.nn.Module | None = None,
        *,
        queue: int = 16,
        when_full: str = "block",
        deterministic: bool = False,
        process: bool = False,
    ) -> None:
        if when_full not in _WHEN_FULL:
            raise FtnPytorchError("ARGUMENT", f"Background: when_full is {when_full!r}, valid are {list(_WHEN_FULL)}")
        require_count("Background: queue", queue)
        self._step, self._network = step, network
        trained = [] if network is None else [network]
        self._weights = Weights(lambda: parts_of(trained), lambda: parts_of([self.published] if trained else []))
        self._size, self._when_full, self._deterministic = 1 if deterministic else queue, when_full, deterministic
        self._queue: deque[tuple[tuple[Any, ...], dict[str, Any]]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy, self._stopped = False, False
        self._failure: FtnPytorchError | None = None
        self._stride = 1
        self.is_completed, self.loss = False, math.inf
        self.submitted, self.steps, self.dropped = 0, 0, 0
        self._remote: Any = None
        if process:
            from . import background_process

            self.local = step, trained
            """What the other process is to find here."""
            self.use(background_process.of_background(self, step, network), self._weights)
        stop, made_in = weakref.WeakMethod(self.stop), os.getpid()
        # A process that was forked has no thread, and perhaps a lock that nobody will give back.
        atexit.register(lambda: os.getpid() == made_in and (method := stop()) and method())

    def use(self, remote: Any, weights: Weights) -> None:
        """Have steps made by another process, see ``remote``."""
        self._remote, self._step, self._weights = remote, remote.step, weights

    @property
    def published(self) -> torch.nn.Module:
        """The copy of the network that predicts, made before the first step. It requires no gradients."""
        return self._published

    @functools.cached_property
    def _published(self) -> torch.nn.Module:
        if self._network is None:
            raise FtnPytorchError("ARGUMENT", "Background: there is nothing to publish, as it was given no network")
        if any(map(torch.nn.parameter.is_lazy, parts_of([self._network]))):
            raise FtnPytorchError(
                "ARGUMENT", "Background: the network has no shapes before its first forward: call it once with a sample"
            )
        # Tensors that inference mode makes can never be changed outside of it.
        with torch.inference_mode(False):
            return copy.deepcopy(self._network).requires_grad_(False)

    def submit(self, *samples: Any, **named: Any) -> tuple[bool, float]:
        """Have a step made with copies of these arguments; returns ``(is_completed, loss)`` of the latest one.

        Publishes what was learnt meanwhile. Raises what a step has raised since the last call, once, with its traceback
        (PYTHON); these samples are lost then, and the next call goes on.
        """
        self._refuse_in_step("submit")
        if self._deterministic:
            self._wait()
        self._raise_failure()
        if self._network is not None:
            self.published  # noqa: B018  before a step changes what is copied
        with torch.inference_mode(False):
            taken = own(samples), own(named)
        with self._changed:
            self.submitted += 1
            is_taken = self._admits()
            # What these samples lead to comes with a later call, however soon they are learnt. The weights come after
            # what is told of them, so they are never older.
            latest = self.is_completed, self.loss
            self.publish()
            if is_taken:
                self._queue.append(taken)
                self._work()
            else:
                self.dropped += 1
        return latest

    def publish(self) -> None:
        """Let ``published`` have the weights of the latest step that is done."""
        self._weights.publish()

    def flush(self) -> None:
        """Wait until all samples are learnt, and publish."""
        self._refuse_in_step("flush")
        self._wait()
        self._raise_failure()
        with fair_lock.lock():
            self._weights.offer()
            self._weights.publish()

    def stop(self) -> None:
        """End the step that runs, and make no more; the end of the program does it, without the samples that wait."""
        with self._changed:
            thread = self._thread
            self._stopped = thread is not None
            self._changed.notify_all()
        # Who holds the lock is in a step, or there is none, and the thread waits for the lock.
        if thread is not None and not fair_lock.lock().is_mine():
            thread.join()
        if self._remote is not None:
            self._remote.stop()

    def _admits(self) -> bool:
        """Whether samples that come now are taken; the condition is held."""
        if self._when_full == "block" and len(self._queue) >= self._size:
            if fair_lock.lock().is_mine():
                self._learn_here(self._size - 1)
            while len(self._queue) >= self._size:
                self._work()
                self._changed.wait_for(lambda: len(self._queue) < self._size or self._thread is None)
        is_full = len(self._queue) >= self._size
        if self._when_full == "subsample":
            if is_full:
                every_second = list(self._queue)[::2]
                self.dropped += len(self._queue) - len(every_second)
                self._queue = deque(every_second)
                self._stride *= 2
            elif not self._queue:
                self._stride = max(1, self._stride // 2)
            return len(self._queue) < self._size and self.submitted % self._stride == 0
        return not is_full

    def _work(self) -> None:
        """See that a thread is there; the condition is held."""
        if self._thread is None or not self._thread.is_alive():
            library = process.host()
            if library is not None and library.lock_is_kept():
                process.warn_once(
                    "Background: the program keeps Python's lock between its calls (keep_lock), so the thread that "
                    "trains runs during calls only. Use process=True"
                )
            self._thread = threading.Thread(target=self._run, name="ftn_pytorch background", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._queue or self._stopped, _IDLE) or self._stopped:
                    self._thread, self._stopped = None, False
                    self._changed.notify_all()
                    return
            with fair_lock.lock():
                # What a checkpoint has restored meanwhile counts: no samples are taken before the lock is.
                with self._changed:
                    if not self._queue or self._stopped:
                        continue
                    samples = self._take()
                self._learn(*samples)

    def _take(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The samples of the next step; the condition is held."""
        self._busy = True
        self._changed.notify_all()
        return self._queue.popleft()

    def _learn_here(self, left: int) -> None:
        """Make steps until so many wait, for who holds the lock, without which the thread makes none."""
        while len(self._queue) > left:
            with self._changed:
                samples = self._take()
            self._learn(*samples)

    def _refuse_in_step(self, what: str) -> None:
        """A step that waits for itself would wait for ever."""
        if self._busy and fair_lock.lock().is_mine():
            raise FtnPytorchError("ARGUMENT", f"{what} was called by the step itself: call it elsewhere")

    def _learn(self, samples: tuple[Any, ...], named: dict[str, Any]) -> None:
        outcome, failure = None, None
        try:
            outcome = outcome_of(self._step(*samples, **named))
            self._weights.offer()
        except BaseException as raised:
            is_told = isinstance(raised, FtnPytorchError)
            failure = FtnPytorchError(*describe(raised, "Background" if is_told else "Background: a step failed"))
            failure.__cause__ = raised
        with self._changed:
            if outcome is not None:
                self.is_completed, self.loss = outcome
                self.steps += 1
            self._failure, self._busy = self._failure if failure is None else failure, False
            self._changed.notify_all()

    def _wait(self) -> None:
        if fair_lock.lock().is_mine():
            self._learn_here(0)
        with self._changed:
            while self._queue or self._busy:
                self._work()
                self._changed.wait_for(lambda: self._thread is None or not (self._queue or self._busy))

    def _raise_failure(self) -> None:
        with self._changed:  # or one that comes in between would be lost
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def state_dict(self) -> dict[str, Any]:
        """Samples that wait, and what was learnt, or has failed, and was not told yet.

        Call it with ``ftn_pytorch.lock()``.
        """
        names = ("is_completed", "loss", "submitted", "steps", "dropped", "_stride")
        remote = None if self._remote is None else self._remote.state()
        with self._changed:
            numbers = {name: getattr(self, name) for name in names}
            queue, failure = list(self._queue), self._failure and self._failure.args
        return {**numbers, "queue": queue, "failure": failure, "weights": self._weights.state(), "remote": remote}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there. FORMAT, and nothing is changed, for a Background of another network."""
        self._weights.check(state["weights"])
        if (state["remote"] is None) != (self._remote is None):
            there = "without" if state["remote"] is None else "with"
            raise FtnPytorchError("FORMAT", f"Background: the file is of one {there} process=True, unlike this one")
        if self._remote is not None:
            self._remote.restore(state["remote"])
        self._weights.load(state["weights"])
        with self._changed:
            self._queue, failure = deque(state["queue"]), state.get("failure")  # earlier versions did not keep it
            self._failure = failure and FtnPytorchError(*failure)
            for name, value in state.items():
                if name not in ("queue", "failure", "weights", "remote"):
                    setattr(self, name, value)
            if self._queue:
                self._work()
            self._changed.notify_all()

    def restore_elsewhere(self, file: str) -> None:
        """Let the other process go on from a checkpoint of its script."""
        self._remote.restore(file)

    def begin_anew(self) -> None:
        """Forget steps and samples: what predicts has other weights now."""
        with self._changed:
            self._queue.clear()
            self._failure, self.is_completed, self.loss = None, False, math.inf
            self.submitted, self.steps, self.dropped, self._stride = 0, 0, 0, 1
            self._changed.notify_all()
        self._weights.load({**self._weights.state(), "ready": None})
