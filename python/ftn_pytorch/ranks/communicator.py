# SPDX-License-Identifier: MIT
"""MPI communicators of the program: rank, size, and short texts between the ranks."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import FtnPytorchError
from ..system import private_names, process
from ..system.tensor_bytes import bytes_of
from . import mpi

# Seconds until a rank counts as one that never comes; that of torch.distributed.
TIMEOUT = 1800.0

_LOAD = "load(..., communicator=)"
_MOST_WORDS = 1 << 28


class Communicator:
    """An intra-communicator of the program, by its integer handle of Fortran (``comm%MPI_VAL`` of mpi_f08).

    ``rank`` and ``size`` are asked for once, when the object is made, which other ranks need not do. ARGUMENT if the
    program has no MPI that could be called, if MPI is not running, or if the handle is that of no intra-communicator.
    """

    def __init__(self, handle: int) -> None:
        self._start(handle)
        self._ranks = mpi.library(_LOAD).MpiSum(handle, self.timeout)
        self.rank, self.size = self._ranks.rank, self._ranks.size

    def _start(self, handle: int) -> None:
        self.handle = handle
        self.timeout = TIMEOUT
        """Seconds that its ranks wait for each other."""
        self.calls: Counter[int] = Counter()
        """Averages of each network over the ranks; see ``sums``."""
        self._holders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._alike: list[int] = []
        """Its own group, and others that were found to be of its ranks, in its order."""

    def is_held(self) -> bool:
        """False once the modules that were loaded with it are gone: the program may free it, and another one gets its
        handle. This object may live on, as with an ``Exchange`` that somebody keeps."""
        return len(self._holders) > 0

    @property
    def is_ranked(self) -> bool:
        """False as long as it is not known which rank this process works for; see ``node``."""
        return True

    def is_usable(self) -> bool:
        """False after its ranks have waited in vain for one of them."""
        return self._ranks.is_usable

    def group(self) -> int:
        """A handle of its ranks in their order, to be given to ``has``. It outlives the communicator.

        It is not freed: MPI gives the handle of what was freed, which that of a communicator may be, to the next one.
        """
        if not self._alike:
            self._alike.append(mpi.integer_of("mpi_comm_group_", _LOAD, self.handle))
        return self._alike[0]

    def has(self, group: int) -> bool:
        """True if its ranks are those of a group, in the same order. Other ranks need not ask."""
        if group not in self._alike:
            refuse_threads("init_process_group")
            own = self.group()
            identical, found = (mpi.integer_of("mpi_group_compare_", _LOAD, own, each) for each in (own, group))
            if found != identical:
                return False
            self._alike.append(group)
        return True

    def gather_bytes(self, data: bytes, *, purpose: str) -> list[bytes]:
        """The data of all ranks, on all of them, which must all call this. ``purpose`` is what errors call it.

        PYTHON if a rank has not come within ``timeout`` seconds. The communicator cannot be used after that: what has
        been begun on it can neither be finished nor be taken back.
        """
        return self._exchanged(data, purpose, "all", ())

    def gather(self, text: str, *, purpose: str) -> list[str]:
        """The texts of all ranks, on all ranks; see ``gather_bytes``."""
        found = self.gather_bytes(text.encode("utf-8", "surrogateescape"), purpose=purpose)
        return [each.decode("utf-8", "surrogateescape") for each in found]

    def collect(self, data: bytes, root: int, *, purpose: str) -> list[bytes]:
        """The data of the ranks that name the same root, on this root, in their order; empty data on the others.

        All ranks call it, each with a root that names itself and is the lowest of its own. They have exchanged
        something just before: MPI_Comm_split has no form that could be given up where one does not come.
        """
        refuse_threads(purpose)
        handle = mpi.integer_of("mpi_comm_split_", purpose, self.handle, root, self.rank)
        part = Communicator(handle)
        part.timeout = self.timeout
        try:
            found = part._exchanged(data, purpose, "", (ctypes.c_int32(0),))
        except FtnPytorchError as failure:
            # what has been begun on it keeps it alive
            self._ranks.give_up(failure.text)
            raise
        mpi.call("mpi_comm_free_", purpose, ctypes.c_int32(handle))
        return found

    def _exchanged(self, data: bytes, purpose: str, kind: str, root: tuple[Any, ...]) -> list[bytes]:
        """By MPI_Iallgather and MPI_Iallgatherv ("all"), or by MPI_Igather and MPI_Igatherv to a root ("")."""
        one, integers = ctypes.c_int32(1), self.kind_of_integers(purpose)
        lengths, mine = (ctypes.c_int32 * self.size)(), (ctypes.c_int32 * 1)(len(data))
        self.exchange(f"mpi_i{kind}gather_", (mine, one, integers, lengths, one, integers, *root), purpose)
        words = [-(-length // 4) for length in lengths]
        begins = [0, *itertools.accumulate(words)][: self.size]
        counts, places = ((ctypes.c_int32 * self.size)(*each) for each in (words, begins))
        sent, received = (ctypes.c_int32 * -(-len(data) // 4))(), (ctypes.c_int32 * sum(words))()
        ctypes.memmove(sent, data, len(data))
        if root or len(received):
            arguments = (sent, ctypes.c_int32(len(sent)), integers, received, counts, places, integers, *root)
            self.exchange(f"mpi_i{kind}gatherv_", arguments, purpose)
        everything = bytes(memoryview(received).cast("B"))
        return [everything[4 * begin : 4 * begin + length] for begin, length in zip(begins, lengths)]

    def share_memory(self, address: ctypes.c_void_p, words: int, root: int, purpose: str, kept: Any) -> None:
        """Words of four bytes at an address of one rank, into that of the others; see ``gather_bytes``."""
        kind, first = self.kind_of_integers(purpose), ctypes.c_int32(root)
        for begin in range(0, words, _MOST_WORDS):
            place = ctypes.c_void_p((address.value or 0) + 4 * begin)
            count = ctypes.c_int32(min(_MOST_WORDS, words - begin))
            self.exchange("mpi_ibcast_", (place, count, kind, first), purpose, kept)

    def broadcast_tensor(self, tensor: Any, root: int, *, purpose: str) -> None:
        """The elements of a tensor of one rank in that of all, bit for bit; see ``gather_bytes``."""
        import torch

        plain = bytes_of(tensor).cpu()
        size = len(plain)
        # words, of which the last one need not be full
        words = torch.zeros(-(-size // 4) * 4, dtype=torch.uint8, device="cpu")
        words[:size] = plain
        self.share_memory(ctypes.c_void_p(words.data_ptr()), len(words) // 4, root, purpose, words)
        if size:
            tensor.copy_(words[:size].view(tensor.dtype).reshape(tensor.shape))

    def part(self, ranks: Sequence[int]) -> Communicator:
        """A communicator of some of its ranks, in this order, which all of these and no others make at one time."""
        purpose = "new_group"
        refuse_threads(purpose)
        made, tag = ctypes.c_int32(), ctypes.c_int32(0)
        chosen = mpi.group_of(self.group(), ranks, purpose)
        mpi.call("mpi_comm_create_group_", purpose, *map(ctypes.c_int32, (self.handle, chosen)), tag, made)
        mpi.call("mpi_group_free_", purpose, ctypes.c_int32(chosen))
        found = Communicator(made.value)
        found.timeout = self.timeout
        return found

    @staticmethod
    def kind_of_integers(purpose: str) -> ctypes.c_int32:
        """Type of MPI for words of four bytes."""
        return ctypes.c_int32(mpi.integer_of("mpi_type_create_f90_integer_", purpose, 9))

    def exchange(self, name: str, arguments: tuple[Any, ...], purpose: str, kept: Any = None) -> None:
        """One collective operation that ends, because nobody waits in it for a rank that failed somewhere else.

        name: of a subroutine that begins it; arguments: of that before the communicator. kept: what else must live
        until it is done. PYTHON if a rank does not come, or if MPI fails.
        """
        with self._begun(purpose, arguments, kept):
            self._ranks.exchange(self.timeout, purpose, name, mpi.addresses(arguments))

    def combine(
        self, address: int, count: int, dtype: int, operation: str, purpose: str, call: int = 0, network: int = 0
    ) -> None:
        """Replace numbers by their sums over the ranks ("sum"), or by the largest ones ("max").

        dtype: a number of ftn_pytorch.h. call: which one of a network it is, from 1 on; those of 0 are not counted.
        PYTHON as above, or, on all ranks, if they are in different calls.
        """
        with self._begun(purpose):
            self._ranks.combine(self.timeout, purpose, address, count, dtype, operation == "max", call, network)

    @contextlib.contextmanager
    def _begun(self, purpose: str, *kept: Any) -> Iterator[None]:
        refuse_threads(purpose)
        was_usable = self.is_usable()
        try:
            yield
        finally:
            if was_usable and not self.is_usable():
                # MPI may still write there, and a module that is loaded later is to know
                _unfinished.append((self, kept))
                know(self)


def refuse_threads(purpose: str) -> None:
    """ARGUMENT in a thread of the script: the program makes calls of MPI meanwhile, also on this communicator."""
    if private_names.is_thread_of_script():
        raise FtnPytorchError(
            "ARGUMENT",
            f"{purpose}: a thread of the script cannot call MPI, since the program calls it meanwhile. Call "
            "ftn_pytorch.init_process_group() in ftn_pytorch_setup or at the top of the script: what it makes can be "
            "used in threads",
        )


APART = (
    "As a rule an error was passed over on a rank (stat=) before it came here, or the ranks took other ways through "
    "the program."
)
"""What to say where the ranks are in different calls."""
_unfinished: list[Any] = []
_known: weakref.WeakSet[Communicator] = weakref.WeakSet()
_at_work = threading.local()


@contextlib.contextmanager
def of_module(own: Communicator | None) -> Iterator[None]:
    """``at_work`` is the communicator of a module meanwhile, if it has one: while it is loaded, or writes state."""
    before = getattr(_at_work, "one", None)
    _at_work.one = before if own is None else own
    try:
        yield
    finally:
        _at_work.one = before


def opened(handle: int, holder: Any = None) -> Communicator:
    """The communicator of a module that is loaded, the ``holder``, as long as which it counts as one of this process.

    Without a holder it counts as long as somebody has it.
    """
    made = held(handle) or Communicator(handle)
    know(made, holder)
    return made


def know(made: Communicator, holder: Any = None) -> None:
    """Count it as one of this process as long as the holder lives; see ``opened``."""
    _known.add(made)
    made._holders.add(made if holder is None else holder)


def held(handle: int) -> Communicator | None:
    """That of this process with a handle, None if no module has it."""
    return next((each for each in _known if each.handle == handle and each.is_held()), None)


def are_there() -> bool:
    """True if this process has any, which ends with the module that holds it and not when the collector comes by."""
    return len(_known) > 0


def at_work() -> Communicator | None:
    """That of the module which this thread loads, calls, or writes the state of; None for a module without one."""
    one = getattr(_at_work, "one", None)
    host = process.host()
    return getattr(host.runner_in_call(), "communicator", None) if one is None and host is not None else one


def meant() -> list[Communicator]:
    """``at_work``, else those of this process, without those that cannot be used any more."""
    if (one := at_work()) is not None:
        return [one]
    met = [each for each in _known if each.is_held()]
    return [each for each in met if each.is_usable()] or met


def require_at_work(ours: Communicator, purpose: str) -> None:
    """ARGUMENT where the module at work has a communicator of other ranks than what it averages by."""
    one = at_work()
    if one is not None and one is not ours and not ours.has(one.group()):
        raise FtnPytorchError(
            "ARGUMENT",
            f"{purpose}: it averages over the ranks with which it began, as rank {ours.rank} of {ours.size}, and is "
            f"called by a module whose communicator has others, as rank {one.rank} of {one.size}: give each of these "
            "modules a network of its own, and recorded functions of its own",
        )


def current() -> Communicator | None:
    """The one that is ``meant``; None without any. ARGUMENT if it is unclear."""
    known = meant()
    if len(known) > 1:
        listed = ", ".join(f"rank {each.rank} of {each.size}" for each in known)
        raise FtnPytorchError(
            "ARGUMENT",
            f"the modules of this process have {len(known)} communicators (this is {listed}), and nothing tells which "
            "one is meant where no module with communicator= is loaded or called: ask in a function that the program "
            "calls, and keep the answer",
        )
    return known[0] if known else None


def current_if_clear() -> Communicator | None:
    """``current``, None also where it is unclear."""
    try:
        return current()
    except FtnPytorchError:
        return None
