# SPDX-License-Identifier: MIT
"""A CSV file of numbers by step, which a restart goes on with where it was at that step."""

from __future__ import annotations

import csv
import gc
import io
import os
import re
import time
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

from ..checkpoint.file import refuse_other_rank
from ..errors import FtnPytorchError
from ..system import files, process
from ..system.file_lock import Lock


class Rows:
    """Rows at the end of ``path``. It is locked from the first one on, when the file that is there is looked at.

    Where its rows up to ``count`` are those of this run, what comes after them is cut. The file of another run is kept
    by another name, and so is any where this run begins anew, with ``last``, the step of the row ``count``, None.
    """

    def __init__(self, path: str, is_of_rank: bool = False) -> None:
        """``is_of_rank``: the name tells the rank. Of other files it is noted which rank of a job has written them."""
        self.path, self._is_of_rank = os.path.abspath(path), is_of_rank
        self._file: Any = None
        self._names: tuple[str, ...] | None = None
        self._flushed = 0.0
        self._lock: Lock | None = None
        self.last: int | None = None
        self.count: int | None = None
        """Rows that the file has, or goes on after; None as long as that is not known."""
        self.digest: int | None = None
        """Of those rows, without the empty cells at their ends, which come with new columns; None if not known."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """FILE if it cannot be written, FORMAT if the file is none of these, ARGUMENT for what cannot be in one.

        After FILE the row is still to be written, as soon as that is possible.
        """
        try:
            if self._file is None:
                self._open()
            if tuple(values) != self._names:
                self._take(values)
            texts = [repr(values[name]) if name in values else "" for name in self._names or ()]
            row = f"{step},{','.join(texts)}\n"
            self._file.write(row)
            self.count += 1  # type: ignore[operator]  # known since it was opened
            if self.digest is not None:
                self.digest = _digest(row.encode(), self.digest)
            if time.monotonic() - self._flushed > 1:
                self.flush()
        except OSError as failure:
            self.digest = None  # what of the row has been written is not known
            raise self._failed(failure) from failure

    def flush(self, to_disk: bool = False) -> None:
        """FILE if it cannot be written."""
        if self._file is None:
            return
        try:
            self._file.flush()
            self._flushed = time.monotonic()
            if to_disk:
                os.fsync(self._file.fileno())
        except OSError as failure:
            raise self._failed(failure) from failure

    def go_on_after(self, step: int | None, count: int | None, digest: int | None) -> None:
        """Cut what comes later, but not before the next row: a restore may still be undone."""
        self.close()
        self.last, self.count, self.digest = step, count, digest

    def close(self) -> None:
        """FILE if the last rows cannot be written, which are lost then."""
        # A file that could not be closed is none that can be written to.
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError as failure:
            raise self._failed(failure) from failure
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _failed(self, failure: OSError) -> FtnPytorchError:
        return FtnPytorchError("FILE", f"Log: {self.path} cannot be written: {failure.strerror}")

    def _open(self) -> None:
        folder, name = os.path.split(self.path)
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(self.path) or os.path.isfile(self.path):
            self._lock = self._locked(os.path.join(folder, f".{name}.lock"))
            if self._lock.is_held():
                files.remove_parts(folder, re.escape(name))
        try:
            self._names = None
            is_there = os.path.exists(self.path) and os.path.getsize(self.path) > 0
            if not (is_there and self._cut()):
                self.count, self.digest = 0, 0
            self._file = open(self.path, "a", encoding="utf-8", newline="")  # noqa: SIM115, as it stays open
        except BaseException:
            self.close()
            raise

    def _locked(self, lock: str) -> Lock:
        """LOCKED if another log has it, or another rank of this job has written the file. A log of a script which was
        freed is garbage until the collector finds it.
        """

        def check(before: Mapping[str, Any] | None) -> None:
            if os.path.exists(self.path):
                refuse_other_rank(self.path, lambda _: before)

        asked = None if self._is_of_rank else check
        try:
            return Lock(lock, f"Log: {self.path}", asked)
        except FtnPytorchError as failure:
            if failure.status != "LOCKED":
                raise
        gc.collect()
        return Lock(lock, f"Log: {self.path}", asked)

    def _cut(self) -> bool:
        """Cut the file that is there behind the rows of this run. False, and it has another name, if it has none."""
        with open(self.path, "rb+") as file:
            header = file.readline()
            if header.split(b",")[0].strip() != b"step":
                raise FtnPytorchError("FORMAT", f"Log: {self.path} is another file: its first column is not step")
            found = None if self.last is None else self._found(file)
            if found is None:
                aside = files.abandoned_name(self.path)
                os.replace(self.path, aside)
                if self.last is not None:
                    process.warn(
                        f"Log: the rows of {self.path} are not those of the run that goes on from a checkpoint: this "
                        f"file is now {aside}, and a new one begins"
                    )
                return False
            end, self.count, self.digest = found
            file.truncate(end)
        self._names = tuple(header.decode().strip().split(",")[1:])
        return True

    def _found(self, file: BinaryIO) -> tuple[int, int, int] | None:
        """Where the rows of this run end, how many they are, and their digest; None if the rows are of another run."""
        end = file.tell()
        kept, digest = (end, 0, 0), 0
        for count, line in enumerate(file, 1):
            # The last line of a run that was killed may be a part of one.
            first = line.partition(b",")[0]
            if not line.endswith(b"\n") or not first.lstrip(b"-").isdigit():
                break
            end, digest = end + len(line), _digest(line, digest)
            is_last = (count, int(first)) == (self.count, self.last)
            if is_last and digest == self.digest:
                return end, count, digest
            # Earlier versions have kept no digest, and the first ones no count.
            if int(first) <= self.last:  # type: ignore[operator]
                kept = end, count, digest
            if is_last:
                break
        return kept if self.digest is None else None

    def _take(self, values: Mapping[str, float]) -> None:
        """New names become new columns of the whole file."""
        wrong = [name for name in values if not name or set(name) & set(',"\r\n')]
        if wrong:
            raise FtnPytorchError("ARGUMENT", f"Log: {wrong[0]!r} cannot be the name of a column")
        if self._names is None:
            self._names = tuple(values)
            self._file.write(",".join(["step", *values]) + "\n")
        names = (*self._names, *(name for name in values if name not in self._names))
        if names == self._names:
            return
        self.flush()
        with files.replaced(self.path) as stream:
            new = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            writer = csv.writer(new, lineterminator="\n")
            writer.writerow(["step", *names])
            with open(self.path, encoding="utf-8", newline="") as old:
                writer.writerows(row + [""] * (1 + len(names) - len(row)) for row in list(csv.reader(old))[1:])
            new.detach()
        self._file.close()
        self._names = names
        self._file = open(self.path, "a", encoding="utf-8", newline="")  # noqa: SIM115


def _digest(row: bytes, before: int) -> int:
    return zlib.crc32(row.rstrip(b",\r\n") + b"\n", before)
