# SPDX-License-Identifier: MIT
"""Samples of a running simulation, kept to be drawn again."""

from __future__ import annotations

import functools
import math
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset

from ..errors import FtnPytorchError, require_count
from ..values import as_tensor
from . import storage
from .priorities import Priorities
from .unrecorded import Number, unrecorded

_KINDS = ("ring", "reservoir", "prioritised")
_ADVICE = "call it outside of the recorded function and pass the batch"
_alive: weakref.WeakSet[Replay] = weakref.WeakSet()


def _alone(method: Callable) -> Callable:
    """One thread at a time, so that a sample is never half of one call of ``add`` and half of another."""

    @functools.wraps(method)
    def call(self: Replay, *args: Any, **named: Any) -> Any:
        with self._lock:
            return method(self, *args, **named)

    return call


@unrecorded(_ADVICE)
class Replay(Dataset):
    """Up to ``capacity`` samples in memory that is taken once, by the first ``add``.

    ``kind``: in a "ring" the newest samples replace the oldest; a "reservoir" holds a uniform choice of all that came;
    "prioritised" is a ring from which samples are drawn in proportion to their priorities.

    ``held_out``: the share of the calls of ``add`` whose samples are never drawn here. They go to ``replay.held_out``,
    a Replay of that share of the capacity, or None. Whole calls, since the samples of one instant are much alike.

    ``dtype``: what samples are converted to; by default they keep the type of the first ones. ``device``: where they
    are kept, by default where the first ones are. ``memory_limit``: beyond so many bytes they are kept in a
    memory-mapped file in ``folder``, on the host. ``seed``: of the random numbers, which nobody else draws from.
    ``exponent``: what errors are raised to, to give priorities.

    As a Dataset it has the samples that are there now, in no order. Threads may share it.
    """

    seen = Number()
    """Samples that came, without those held out."""

    def __init__(
        self,
        capacity: int,
        kind: str = "ring",
        *,
        held_out: float = 0.0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        memory_limit: float = math.inf,
        folder: str = ".",
        seed: int = 0,
        exponent: float = 0.6,
    ) -> None:
        if kind not in _KINDS:
            raise FtnPytorchError("ARGUMENT", f"Replay: kind is {kind!r}, it must be one of {', '.join(_KINDS)}")
        require_count("Replay: capacity", capacity)
        if not 0 <= held_out < 1:
            raise FtnPytorchError("ARGUMENT", f"Replay: held_out is {held_out}, it must be in [0, 1)")
        self.capacity, self.kind, self.exponent = capacity, kind, exponent
        self.seen = 0
        self._own_lock()
        self._share, self._calls = held_out, 0
        self._dtype, self._device, self._limit, self._folder = dtype, device, memory_limit, folder
        self._random = torch.Generator().manual_seed(seed)
        self._columns: tuple[torch.Tensor, ...] = ()
        # What was found to fit last, which is what comes next in nearly every call.
        self._fitting: list[tuple[torch.Size, torch.dtype]] = []
        self._priorities = Priorities(capacity) if kind == "prioritised" else None
        self.held_out: Replay | None = None
        if held_out:
            self.held_out = Replay(
                math.ceil(capacity * held_out),
                "reservoir" if kind == "reservoir" else "ring",
                dtype=dtype,
                device=device,
                memory_limit=memory_limit * held_out,
                folder=folder,
                seed=seed + 1,
            )

    def __len__(self) -> int:
        return self._filled()

    @_alone
    def __getitem__(self, rows: int | slice | Sequence[int] | torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The columns of one sample or of some; views for a number or a slice, copies for a list or tensor of rows.

        IndexError for rows that are not there.
        """
        if isinstance(rows, (int, slice)):
            return tuple(column[: self._filled()][rows] for column in self._columns or [torch.empty(0, device="cpu")])
        chosen = as_tensor(rows)
        self._check_rows(chosen)
        return self._chosen(chosen)

    @_alone
    @torch.no_grad()
    def add(self, *columns: torch.Tensor) -> None:
        """Copy samples: tensors whose first axis counts them, each call with the same number, types and other extents.

        What arrives may be memory of the simulation; it is copied once, into its place. SHAPE or DTYPE if it does not
        fit, or has numbers that are too large for the type that is kept; FILE if there is no room for a memory-mapped
        file. Nothing has been added then.
        """
        arrived = [as_tensor(column) for column in columns]
        n = self._check(arrived)
        self._require_range(arrived)
        held_out = self._share > 0 and self._is_held_out(self._calls)
        if not held_out and not self._columns:
            self._allocate([(tuple(column.shape[1:]), self._dtype or column.dtype) for column in arrived], arrived[0])
        if held_out:
            self.held_out.add(*arrived)  # type: ignore[union-attr]
        elif self.kind == "reservoir":
            self._choose(arrived, n)
        else:
            self._append(arrived, n)
        self._calls += 1

    @_alone
    def sample(self, n: int) -> tuple[torch.Tensor, ...]:
        """The columns of ``n`` samples that are drawn with replacement, a copy."""
        return self._chosen(self._drawn(n))

    @_alone
    def draw(self, n: int) -> torch.Tensor:
        """``n`` rows, with replacement, as (n,) integers on the host. ARGUMENT if there are no samples."""
        return self._drawn(n)

    def _drawn(self, n: int) -> torch.Tensor:
        if not self._filled():
            raise FtnPytorchError("ARGUMENT", "Replay: there are no samples to draw from: add some first")
        if self._priorities is not None:
            return self._priorities.draw(n, self._random)
        return torch.randint(self._filled(), (n,), generator=self._random, device="cpu")

    @_alone
    def prioritise(self, rows: torch.Tensor, errors: torch.Tensor) -> None:
        """Priorities of rows by errors, (n,) both; new samples have the highest one so far.

        SHAPE if there are not as many, ARGUMENT if not finite, IndexError for rows that are not there.
        """
        priorities = self._prioritised()
        rows, errors = as_tensor(rows), as_tensor(errors)
        if rows.ndim != 1 or rows.shape != errors.shape:
            raise FtnPytorchError(
                "SHAPE", f"Replay: prioritise got rows {tuple(rows.shape)} and errors {tuple(errors.shape)}, not (n,)"
            )
        if not len(rows):
            return
        self._check_rows(rows)
        values = (errors.detach().abs().double().cpu() + 1e-6) ** self.exponent
        if not torch.isfinite(values).all():
            raise FtnPytorchError("ARGUMENT", "Replay: errors that are infinite or not a number give no priorities")
        priorities.set(rows, values)
        priorities.highest = max(priorities.highest, float(values.max()))

    @_alone
    def weights(self, rows: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
        """What the loss of each row is to be multiplied by to make up for its priority, (n,), at most 1; double.

        IndexError for rows that are not there.
        """
        priorities = self._prioritised()
        rows = as_tensor(rows)
        if not rows.numel():
            return torch.empty_like(rows, dtype=torch.float64)
        self._check_rows(rows)
        weights = (priorities.of(rows) / priorities.total() * self._filled()) ** -beta
        return weights / weights.max()

    @_alone
    def export(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """Write all samples, those of a ring oldest first, as ``x0``, ``x1`` ... or ``names``, to NPZ or HDF5.

        Those held out come as ``held_out_x0`` and so on. "%r" in ``path`` is the rank. ARGUMENT for another ending or
        number of names, IMPORT if h5py is needed and missing, FILE if it cannot be written, LOCKED if another process
        is writing it, or another rank of this job has.
        """
        names = [f"x{index}" for index in range(len(self._columns))] if names is None else names
        if len(names) != len(self._columns):
            raise FtnPytorchError("ARGUMENT", f"Replay: {len(names)} names for {len(self._columns)} arrays")
        if len({each for name in names for each in (name, storage.HELD_OUT + name)}) < 2 * len(names):
            raise FtnPytorchError("ARGUMENT", f"Replay: of the names {', '.join(names)} two mean one array of the file")
        arrays = dict(zip(names, self._ordered()))
        if self.held_out is not None:
            arrays |= {storage.HELD_OUT + name: each for name, each in zip(names, self.held_out._ordered())}
        storage.export(path, arrays)

    @_alone
    def state_dict(self) -> dict[str, Any]:
        """The samples, which are not copied, what they were drawn with, and what a Replay must be to take them."""
        filled, priorities = self._filled(), self._priorities
        return {
            **self._settings(),
            "seen": self.seen,
            "calls": self._calls,
            "random": self._random.get_state(),
            "device": str(self._columns[0].device) if self._columns else None,
            "columns": [column[:filled] for column in self._columns],
            "priorities": None if priorities is None else priorities.of(slice(filled)),
            "highest": None if priorities is None else priorities.highest,
            "held_out": None if self.held_out is None else self.held_out.state_dict(),
        }

    @_alone
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """FORMAT, and nothing is changed, if it is of a Replay of another kind, capacity, share or kind of samples."""
        self._refuse_other(state)
        if state["columns"] and not self._columns:
            made = [(tuple(column.shape[1:]), column.dtype) for column in state["columns"]]
            self._allocate(made, torch.empty(0, device=_present(state["device"])))
        if self.held_out is not None:
            self.held_out.load_state_dict(state["held_out"])
        for column, saved in zip(self._columns, state["columns"]):
            column[: len(saved)].copy_(saved)
        self.seen, self._calls = state["seen"], state["calls"]
        self._random.set_state(state["random"].cpu())
        if self._priorities is not None:
            self._priorities = Priorities(self.capacity)
            self._priorities.set(torch.arange(self._filled(), device="cpu"), state["priorities"])
            self._priorities.highest = state["highest"]

    def __getstate__(self) -> dict[str, Any]:
        # For workers that are not forked. The state tensor of a generator dies before they have opened its memory.
        with self._lock:
            state = {**vars(self), "_random": bytes(self._random.get_state())}
        del state["_lock"]
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._own_lock()
        self._random = torch.Generator()
        self._random.set_state(torch.frombuffer(bytearray(state["_random"]), dtype=torch.uint8))

    def _filled(self) -> int:
        return min(vars(self)["seen"], self.capacity)

    def _own_lock(self) -> None:
        self._lock = threading.RLock()
        _alive.add(self)

    def _chosen(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self._columns and not self._columns[0].is_cpu:
            rows = rows.to(self._columns[0].device)
        return tuple([column.index_select(0, rows) for column in self._columns])

    def _check_rows(self, rows: torch.Tensor) -> None:
        """There is memory for rows that have not come yet, and what is in it is no sample."""
        if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < self._filled():
            raise IndexError(f"Replay: rows from {rows.min()} to {rows.max()} of {self._filled()} samples")

    def _settings(self) -> dict[str, Any]:
        return {"kind": self.kind, "capacity": self.capacity, "share": self._share}

    def _refuse_other(self, state: Mapping[str, Any]) -> None:
        for name, here in self._settings().items():
            if state[name] != here:
                name = {"share": "held_out"}.get(name, name)
                there = state["share" if name == "held_out" else name]
                raise FtnPytorchError(
                    "FORMAT",
                    f"Replay: {name} is {there} in the file and {here} here. Restore with "
                    f"{name}={there!r}, or leave the Replay out of what is restored",
                )
        here, there = ([(tuple(c.shape[1:]), c.dtype) for c in each] for each in (self._columns, state["columns"]))
        if here and there and here != there:
            raise FtnPytorchError("FORMAT", f"Replay: the samples are {there} in the file and {here} here")
        if self.held_out is not None:
            self.held_out._refuse_other(state["held_out"])

    def _check(self, arrived: Sequence[torch.Tensor]) -> int:
        """How many samples these are; raises if they do not fit."""
        extents = {column.shape[:1] for column in arrived}
        if len(extents) != 1 or () in extents:
            raise FtnPytorchError(
                "SHAPE",
                f"Replay: add got arrays of shapes {[tuple(column.shape) for column in arrived]}; the first axis "
                "counts samples, the same number in each",
            )
        forms = [(column.shape[1:], column.dtype) for column in arrived]
        if forms == self._fitting:
            return arrived[0].shape[0]
        if self._columns:
            here, there = ([tuple(column.shape[1:]) for column in each] for each in (self._columns, arrived))
            if here != there:
                raise FtnPytorchError("SHAPE", f"Replay: each sample is of shapes {here}, and add got some of {there}")
        for number, column in enumerate(arrived):
            wanted = self._columns[number].dtype if self._columns else self._dtype or column.dtype
            if not torch.can_cast(column.dtype, wanted):
                raise FtnPytorchError(
                    "DTYPE", f"Replay: array {number} is {column.dtype}, which does not become {wanted} as it is kept"
                )
        if self._columns:
            self._fitting = forms
        return arrived[0].shape[0]

    def _require_range(self, arrived: Sequence[torch.Tensor]) -> None:
        """DTYPE for a number that becomes another one, or infinite, in the type that is kept."""
        for number, given in enumerate(arrived):
            kept = self._columns[number].dtype if self._columns else self._dtype or given.dtype
            if kept != given.dtype and given.numel() and (value := storage.too_large(given, kept)) is not None:
                raise FtnPytorchError(
                    "DTYPE",
                    f"Replay: array {number} has the number {value}, which is too large for {kept} as it is kept: make "
                    "the Replay with a wider dtype=, or scale the array",
                )

    def _is_held_out(self, call: int) -> bool:
        # Spread evenly, the first one not among them. Rounding must not move a call that is due.
        return math.floor((call + 1) * self._share + 1e-9) > math.floor(call * self._share + 1e-9)

    def _allocate(self, made: Sequence[tuple[tuple[int, ...], torch.dtype]], first: torch.Tensor) -> None:
        size = sum(self.capacity * math.prod(shape) * dtype.itemsize for shape, dtype in made)
        shapes = [((self.capacity, *shape), dtype) for shape, dtype in made]
        if size > self._limit:
            self._columns = tuple(storage.in_file(shape, dtype, self._folder) for shape, dtype in shapes)
        else:
            device = torch.device(self._device) if self._device is not None else first.device
            self._columns = tuple(storage.in_memory(shape, dtype, device) for shape, dtype in shapes)

    def _append(self, arrived: Sequence[torch.Tensor], n: int) -> None:
        skipped = max(n - self.capacity, 0)
        start = (self.seen + skipped) % self.capacity
        until_end = min(n - skipped, self.capacity - start)
        for column, given in zip(self._columns, arrived):
            source = given if until_end == n else given[skipped : skipped + until_end]
            column.narrow(0, start, until_end).copy_(source)
            if skipped + until_end < n:
                column[: n - skipped - until_end].copy_(given[skipped + until_end :])
        if self._priorities is not None:
            rows = torch.arange(start, start + n - skipped, device="cpu") % self.capacity
            self._priorities.set(rows, self._priorities.highest)
        self.seen += n

    def _choose(self, arrived: Sequence[torch.Tensor], n: int) -> None:
        """Vitter's algorithm R: the sample of number t takes a place with the probability capacity / t."""
        room = min(n, self.capacity - self._filled())
        for column, given in zip(self._columns, arrived):
            column[self._filled() : self._filled() + room].copy_(given[:room])
        numbers = torch.arange(self.seen + room, self.seen + n, device="cpu")
        drawn = torch.rand(n - room, dtype=torch.float64, generator=self._random, device="cpu")
        places = (drawn * (numbers + 1)).long()
        taken = (places < self.capacity).nonzero().squeeze(1)
        # Where two take one place, the later one stays.
        last = dict(zip(places[taken].tolist(), (taken + room).tolist()))
        if last:
            rows, sources = torch.tensor(list(last), device="cpu"), torch.tensor(list(last.values()), device="cpu")
            for column, given in zip(self._columns, arrived):
                chosen = given.index_select(0, sources.to(given.device)).to(column)
                column.index_copy_(0, rows.to(column.device), chosen)
        self.seen += n

    def _ordered(self) -> list[torch.Tensor]:
        start = self.seen % self.capacity if self.kind != "reservoir" and self.seen > self.capacity else 0
        return [torch.cat([column[start : self._filled()], column[:start]]) for column in self._columns]

    def _prioritised(self) -> Priorities:
        if self._priorities is None:
            raise FtnPytorchError("ARGUMENT", f'Replay: no priorities in a {self.kind}, make it kind="prioritised"')
        return self._priorities


def _present(device: str) -> torch.device:
    """A device that a file names, or the host if this process does not have it."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        return torch.device("cpu")
    return torch.device(device)


def _renew_locks() -> None:
    """A process that was forked, such as a worker of a DataLoader, lacks the thread that may have held one."""
    for replay in list(_alive):
        replay._own_lock()


os.register_at_fork(after_in_child=_renew_locks)
