# SPDX-License-Identifier: MIT
"""Items that one thread hands to a loop in another, one by one: it goes on when the loop asks for the next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

_END = object()


class LoopEnd(NamedTuple):
    """How a loop has ended: what it raised, or None."""

    failure: BaseException | None


class _Ended(Exception):
    """For a loop that asks again after its data has ended."""


class Handoff:
    """What a loop ``for item in handoff`` goes over, in a thread of its own, while only one of both threads runs.

    ``length``: items in one pass. It can be gone over again.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._given: SimpleQueue[Any] = SimpleQueue()
        self._asked: SimpleQueue[LoopEnd | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._owes_answer, self._is_ending = False, False
        self._stop: Callable[[], None] | None = None

    def is_alive(self) -> bool:
        """False before ``begin``, after the loop has ended, and in a process that was forked."""
        return self._thread is not None and self._thread.is_alive()

    def is_here(self) -> bool:
        """True in the thread of the loop."""
        return self._thread is threading.current_thread()

    def begin(self, loop: Callable[[Handoff], None], stop: Callable[[], None]) -> LoopEnd | None:
        """Have the loop go as far as its first item; None if it waits for that. ``stop`` is called before ``end``."""
        self._stop = stop
        self._given, self._asked = SimpleQueue(), SimpleQueue()
        self._is_ending = False
        # A daemon: who waits for threads at the end of the process would wait for ever.
        self._thread = threading.Thread(target=self._run, args=(loop,), name="ftn_pytorch handoff", daemon=True)
        self._thread.start()
        return self._answer()

    def hand(self, item: Any) -> LoopEnd | None:
        """Have the loop use an item, until it asks for the next one: None, or ends."""
        if self._owes_answer:  # the one who waited was interrupted
            over = self._answer()
            if over is not None:
                return over
        self._given.put(item)
        return self._answer()

    def end(self) -> None:
        """Let the loop end as if there were no more items, and wait for it."""
        thread, stop = self._thread, self._stop
        if thread is None or stop is None or self.is_here():
            return
        stop()
        self._is_ending = True
        self._given.put(_END)
        thread.join()
        self._thread, self._owes_answer = None, False

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Handoff:
        return self

    def __next__(self) -> Any:
        if self._is_ending:
            raise _Ended
        self._asked.put(None)
        item = self._given.get()
        if item is _END:
            raise StopIteration
        return item

    def state_dict(self) -> dict[str, Any]:
        """What is handed on is not here to be handed again."""
        return {}

    def load_state_dict(self, state: Any) -> None:
        pass

    def _answer(self) -> LoopEnd | None:
        self._owes_answer = True
        over = self._asked.get()
        self._owes_answer = False
        if over is not None:
            self._thread = None
        return over

    def _run(self, loop: Callable[[Handoff], None]) -> None:
        failure: BaseException | None = None
        try:
            loop(self)
        except BaseException as raised:
            failure = raised
        self._asked.put(LoopEnd(failure))
