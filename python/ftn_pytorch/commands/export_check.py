# SPDX-License-Identifier: MIT
"""How ``export`` checks a file before it gets its name: run as Fortran would, beside the network of the script."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..checkpoint import file
from ..errors import FtnPytorchError, is_of_memory, report, summary
from ..opening import open_runner
from ..script import results
from ..script.conventions import FORWARD
from ..script.framework import NUMPY
from ..system import files
from ..values import as_tensor, dtype_name
from . import differences
from .example_inputs import InputSpec


class _Differs(Exception):
    """Only so that a file does not get its name."""


def kept_if(output: str, make: Callable[[str], bool]) -> int:
    """Have a file written and checked under another name: 0, and it gets its own name, or 1, and nothing has changed.

    ``make``: given that name; whether the file is right.
    """
    try:
        with file.locked(output), files.completed(output) as part:
            if not make(part):
                raise _Differs
    except _Differs:
        state = "the file of that name is still the older one" if os.path.lexists(output) else "there is no such file"
        print(f"{output} was not written: {state}", file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def tried(called: str, given: Sequence[Any], advice: str = "") -> Iterator[None]:
    """A body that makes the first call, with what the command has made of its options: ARGUMENT for what it raises."""
    try:
        yield
    except Exception as failure:
        if isinstance(failure, FtnPytorchError) or is_of_memory(failure):
            raise
        texts = ["x".join(map(str, each.shape)) or "scalar" if hasattr(each, "shape") else str(each) for each in given]
        raise FtnPytorchError(
            "ARGUMENT", f"{called} cannot be called with inputs {', '.join(texts)}{advice}: {report(failure)}"
        ) from failure


@dataclass
class Reference:
    """What a file is compared with: a network, of which ``title`` says which one, and the type that it takes.

    ``given``: inputs of this type become ones of the type ``own``; None where all have their types.
    """

    network: Any
    title: str
    given: Any = None
    own: Any = None

    def __call__(self, inputs: Sequence[Any]) -> Mapping[str, Any]:
        """Results by name, or by their number."""
        return _by_name(self.network(*(each.to(self.own) if each.dtype == self.given else each for each in inputs)))


NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "": lambda x: x,
    "small numbers": lambda x: x / 100,
    "large positive numbers": lambda x: 10 * (1 + x.abs()),
    "large negative numbers": lambda x: -10 * (1 + x.abs()),
}
"""Also other signs and sizes than those of the example, as branches of a network may ask for them."""


def like(numbers: str, example: Any) -> Any:
    """An example with numbers of one of these kinds; integers are as they are, since they may be indices."""
    is_real = hasattr(example, "is_floating_point") and example.is_floating_point()
    return NUMBERS[numbers](example) if is_real else example


class Check:
    """The comparisons of one file."""

    def __init__(
        self, torch: Any, references: Sequence[Reference], specs: Sequence[InputSpec], tolerance: float | None
    ) -> None:
        self._torch, self._references, self._specs, self._tolerance = torch, references, specs, tolerance

    def is_right(self, path: str, is_dynamic: bool, is_free: bool) -> bool:
        """Run the file with other numbers than it was exported with, and other batches, and tell of each comparison.

        ``is_dynamic``: it is to take any batch. ``is_free``: it may refuse batches of another size, and must not give
        other results.
        """
        runner = open_runner(path, {}, {})
        self._forward, self._in_numpy = runner.bind(FORWARD, 0)[0], runner.framework == NUMPY
        agreed = [self._agrees(None, numbers, True) for numbers in NUMBERS]
        if is_dynamic or is_free:
            more = 3 + max((spec.shape[0] for spec in self._specs if spec.shape), default=0)
            agreed += [self._agrees(rows, "", is_dynamic) for rows in (more, 1)]
        return all(agreed)

    def _agrees(self, rows: int | None, numbers: str, must_run: bool) -> bool:
        size = "" if rows is None else f" with {rows} row{'s' * (rows > 1)}"
        where = f"check{size or (f' with {numbers}' if numbers else '')}"
        inputs = [like(numbers, spec.example(self._torch, rows)) for spec in self._specs]
        try:
            given = [_copied(inputs) for _ in self._references]
            wanted = [each(mine) for each, mine in zip(self._references, given)]
        except Exception as failure:
            print(f"{where}: not made, as the script refuses them: {summary(failure)}", file=sys.stderr)
            return True
        try:
            mine = _copied(inputs)
            found = _by_name(self._forward(*([each.numpy() for each in mine] if self._in_numpy else mine)))
        except Exception as failure:
            if rows == 1 or not must_run:
                # Compiled convolutions want two, and the file is right for those who never pass one.
                takes = "two or more" if rows == 1 else "that of --input only"
                print(f"{where}: refused, the file takes {takes}: {summary(failure)}", file=sys.stderr)
                return True
            fixed = "; a traced model may have kept the size of its example" * (rows is not None)
            print(f"{where}: FAILED: {summary(failure)}{fixed}", file=sys.stderr)
            return False
        near = [self._is_near(where, each.title, one, found) for each, one in zip(self._references, wanted)]
        if not all(near) and any(map(_differs, self._references[0](_copied(inputs)).values(), wanted[0].values())):
            print(
                f"{where}: the network gives other results when it is called again: it draws random numbers, or keeps "
                "something from one call to the next",
                file=sys.stderr,
            )
        return all(near) and self._changes_the_same(where, inputs, given[0], mine)

    def _changes_the_same(self, where: str, *inputs: Sequence[Any]) -> bool:
        """Inputs before, after the network and after the file; False where only the network has changed one."""
        fine = True
        for number, (before, there, here) in enumerate(zip(*inputs), 1):
            if not _differs(there, before):
                continue
            text = f"{where}: the network changes input {number} in place"
            if _differs(here, before):
                print(f"{text}, so does the file: pass it with torch_out, or let the network change x.clone()")
            else:
                print(f"{text}, and the file does not: FAILED. Let it change x.clone()", file=sys.stderr)
                fine = False
        return fine

    def _is_near(self, where: str, title: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
        if len(wanted) != len(found):
            print(f"{where}: {len(found)} results, eager torch has {len(wanted)}: FAILED", file=sys.stderr)
            return False
        fine = True
        # Names are kept by some formats only; the order is kept by all.
        for (name, expected), value in zip(wanted.items(), found.values()):
            value, expected = as_tensor(value), as_tensor(expected)
            limit = max(differences.tolerance(expected), differences.tolerance(value) if title else 0.0)
            limit = limit if self._tolerance is None else self._tolerance
            if title:  # of another type, as was asked for
                value, expected = self._wide(value), self._wide(expected)
            kinds = [f"{dtype_name(each)} of shape {tuple(each.shape)}" for each in (value, expected)]
            if kinds[0] != kinds[1]:
                print(f"{where}{title}: result {name} is {kinds[0]}, not {kinds[1]}: FAILED", file=sys.stderr)
                fine = False
                continue
            error = differences.between(value, expected).relative
            fine &= error <= limit
            text = f"{where}{title}: result {name}: max error {error:.1e}, tolerance {limit:.1e}"
            print(f"{text}: {'ok' if error <= limit else 'FAILED'}", file=sys.stdout if error <= limit else sys.stderr)
        return fine

    def _wide(self, value: Any) -> Any:
        if value.is_complex():
            return value.to(self._torch.complex128)
        return value.double() if value.is_floating_point() else value


def _copied(inputs: Sequence[Any]) -> list[Any]:
    """For one call, which may change them in place."""
    return [each.clone() for each in inputs]


def _differs(one: Any, other: Any) -> bool:
    return differences.between(as_tensor(one), as_tensor(other)).absolute > 0


def _by_name(result: Any) -> Mapping[str, Any]:
    names, values = results.unpack(result)
    return dict(zip(names or map(str, range(1, len(values) + 1)), values))
