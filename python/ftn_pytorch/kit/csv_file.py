# SPDX-License-Identifier: MIT
"""A CSV file of numbers by step, which a restart goes on with where it was at that step."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..system import files


class Rows:
    """Rows at the end of ``path``; what a run that was given up has left there is cut when the first one is written.

    That is what comes after ``last``, the step of the row ``count``. ``last`` None: this run begins anew, so that
    nothing of this step or a later one may be there. A file whose rows would all go is then kept by another name.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._file: Any = None
        self._names: tuple[str, ...] | None = None
        self._flushed = 0.0
        self.last: int | None = None
        self.count: int | None = None
        """Rows that the file has, or goes on after; None as long as that is not known."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """FILE if it cannot be written, FORMAT if the file is none of these, ARGUMENT for what cannot be in one.

        After FILE the row is still to be written, as soon as that is possible.
        """
        try:
            if self._file is None:
                self._open(step)
            if tuple(values) != self._names:
                self._take(values)
            texts = [repr(values[name]) if name in values else "" for name in self._names or ()]
            self._file.write(f"{step},{','.join(texts)}\n")
            self.count += 1  # type: ignore[operator]  # known since it was opened
            if time.monotonic() - self._flushed > 1:
                self.flush()
        except OSError as failure:
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

    def go_on_after(self, step: int | None, count: int | None) -> None:
        """Cut what comes later, but not before the next row: a restore may still be undone."""
        self.close()
        self.last, self.count = step, count

    def close(self) -> None:
        """FILE if the last rows cannot be written, which are lost then."""
        # A file that could not be closed is none that can be written to.
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError as failure:
            raise self._failed(failure) from failure

    def _failed(self, failure: OSError) -> FtnPytorchError:
        return FtnPytorchError("FILE", f"Log: {self.path} cannot be written: {failure.strerror}")

    def _open(self, step: int) -> None:
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self._names = None
        self.count = self._cut(step) if os.path.exists(self.path) and os.path.getsize(self.path) else 0
        self._file = open(self.path, "a", encoding="utf-8", newline="")  # noqa: SIM115, as it stays open

    def _cut(self, step: int) -> int:
        """Cut the file that is there; how many rows stay."""
        latest = step - 1 if self.last is None else self.last
        with open(self.path, "rb+") as file:
            header = file.readline()
            if header.split(b",")[0].strip() != b"step":
                raise FtnPytorchError("FORMAT", f"Log: {self.path} is another file: its first column is not step")
            end, kept = file.tell(), (file.tell(), 0)
            for count, line in enumerate(file, 1):
                # The last line of a run that was killed may be a part of one.
                first = line.partition(b",")[0]
                if not line.endswith(b"\n") or not first.lstrip(b"-").isdigit():
                    break
                end += len(line)
                if int(first) <= latest:
                    kept = end, count
                # A script may count from 1 again, so that the step alone does not tell.
                if (count, int(first)) == (self.count, self.last):
                    break
            end, count = kept
            if not count and self.last is None:
                os.replace(self.path, files.abandoned_name(self.path))
                return 0
            file.truncate(end)
        self._names = tuple(header.decode().strip().split(",")[1:])
        return count

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
        with files.completed(self.path) as part, open(part, "w", encoding="utf-8", newline="") as new:
            writer = csv.writer(new, lineterminator="\n")
            writer.writerow(["step", *names])
            with open(self.path, encoding="utf-8", newline="") as old:
                writer.writerows(row + [""] * (1 + len(names) - len(row)) for row in list(csv.reader(old))[1:])
        self.close()
        self._names = names
        self._file = open(self.path, "a", encoding="utf-8", newline="")  # noqa: SIM115
