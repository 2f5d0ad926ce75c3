# SPDX-License-Identifier: MIT
"""Tensors of Fortran give the same on both engines, and in memory of every form: values, gradients and failures.

``expressions.fypp`` has the list, a line for each expression; ``leaves.f90`` the forms, and what is written of an
expression. Engines are compared bit for bit. Forms are, too, where torch computes with the same instructions: see
``is_rounding``. ``BETWEEN_ENGINES`` and ``BETWEEN_FORMS`` have what may differ; a row that is not needed fails.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ENGINES = {"libtorch": "1", "Python": "0"}
"""By their names: what FTN_PYTORCH_DIRECT_TENSORS is."""
FORMS = ("dense", "section", "backwards", "same")
"""Memory of arrays: the first one is what the others are compared with. "same" has the axes in the order of Fortran."""

OF_NETWORKS = r"/Traceback \(most recent call last\):/  File \"[^\"]*/nn/functional\.py\".*?/(?=It was called with|$)"
"""Functions that Python alone has in Python show where they come from."""

Row = tuple[str, str, str, str]
"""A pattern of expressions, patterns of what both sides give (status and values), and why."""
Seen = dict[str, tuple[str, str, str]]
"""By "theme | expression": status, values or the text of torch, gradients."""

BETWEEN_ENGINES: list[Row] = [
    ("engine . Python is in this process", "0 ", "1 ", "libtorch needs none of it"),
    (
        "graphs . (a value that is needed and changed|p = p.s, on an array)",
        "9 .* modified by an inplace operation: .CPUDoubleType .*",
        "9 .* modified by an inplace operation: .torch.DoubleTensor .*",
        "names of types in C++ and in Python",
    ),
    (
        "graphs . backward of another shape",
        "9 .* invalid gradient at index 0 - got .5. but expected shape compatible with .*",
        "9 .* Mismatch in shape: grad_output.0. has a shape of .*",
        "torch looks at gradients in C++ and, before that, in Python",
    ),
]

BETWEEN_FORMS: dict[str, list[Row]] = {
    "backwards": [
        (
            "memory . from_array|calls . where|in place . copy_from of (an array|its neighbours)(: the array)?",
            "0 .*",
            "19 .*",
            "torch has no negative strides",
        ),
        (
            "in place . .*: the array",
            "(0|14|9) array .*",
            "(0|14|9) array 6.2500000000000000E-001 -3.7500000000000000E-001 1.3750000000000000E.000 .*",
            "the tensor is a copy of the array, which stays as it is",
        ),
        (
            "graphs . p = p.s, on an array",
            "9 .* modified by an inplace operation: .*",
            "0 float64 .*",
            "assignment to a tensor on an array writes there; to another one it is a new name",
        ),
    ],
    "same": [
        (
            ".*",
            "(9|14) (?!array ).*",
            "(9|14) (?!array ).*",
            "texts have shapes and operands in the order of torch",
        ),
        ("functions . (cross_entropy .*|kl_div batchmean)", "0 .*", "0 .*", "cases are on the first axis of torch"),
        ("calls . masked_select", "0 float64 .9. .*", "0 float64 .9. .*", "elements come in the order of torch"),
    ],
}


def test_expressions_are_the_same_on_both_engines_and_in_every_form(build_dir, cache, tmp_path):
    program = build_dir / "tests" / "operations" / "expressions"
    if not program.exists():
        pytest.skip("built without the direct path, or by a compiler without descriptors")
    seen = {engine: run(program, cache, build_dir, tmp_path / engine, value) for engine, value in ENGINES.items()}
    faults = list(between_engines(seen))
    for engine in ENGINES:
        for form, rows in {"section": [], **BETWEEN_FORMS}.items():
            dense, other = seen[engine][FORMS[0]], seen[engine][form]
            faults += differences(f"{engine}, dense and {form}", dense, other, rows, is_rounding)
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def run(program: Path, cache: dict[str, str], build_dir: Path, folder: Path, direct: str) -> dict[str, Seen]:
    """What the program saw, by form."""
    folder.mkdir()
    inherited = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    variables = {
        **inherited,
        "FTN_PYTORCH_PYTHON": cache["Python_EXECUTABLE"],
        "FTN_PYTORCH_DIRECT_TENSORS": direct,
        "OMP_NUM_THREADS": "1",
        "ftn_pytorch_ROOT": str(build_dir),
    }
    done = subprocess.run(
        [program], cwd=folder, env=variables, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return read(folder / "seen")


def read(file: Path) -> dict[str, Seen]:
    found: dict[str, Seen] = {form: {} for form in FORMS}
    for line in file.read_text().splitlines():
        form, theme, name, status, values, gradients = (each.strip() for each in line.split(" | "))
        values = re.sub(OF_NETWORKS, "/", values)
        name = f"{theme} | {name}"
        assert name not in found[form], f"two expressions have the name {name}"
        found[form][name] = (status, values, gradients)
    assert all(len(each) > 900 for each in found.values())
    return found


def between_engines(seen: dict[str, dict[str, Seen]]) -> Iterator[str]:
    """All forms at once, since a row may be needed in one of them only."""
    first, second = (
        {f"{name} ({form})": value for form in FORMS for name, value in seen[engine][form].items()}
        for engine in ENGINES
    )
    rows = [(rf"({names}) \(.*\)", *others) for names, *others in BETWEEN_ENGINES]
    yield from differences(" and ".join(ENGINES), first, second, rows, lambda name, wanted, came: False)


def differences(who: str, wanted: Seen, came: Seen, rows: list[Row], may_differ: Callable[..., bool]) -> Iterator[str]:
    unused = list(rows)
    for name in dict.fromkeys([*wanted, *came]):
        if name not in wanted or name not in came:
            yield f"{who}: {name}: one side only"
        elif wanted[name] != came[name] and not may_differ(name, wanted[name], came[name]):
            row = next((row for row in rows if is_of(row, name, wanted[name], came[name])), None)
            if row is None:
                yield f"{who}: {name}:\n  {' | '.join(wanted[name])}\n  {' | '.join(came[name])}"
            elif row in unused:
                unused.remove(row)
    yield from (f"{who}: nothing differs as a row says: {row[0]}" for row in unused)


def is_of(row: Row, name: str, wanted: tuple[str, str, str], came: tuple[str, str, str]) -> bool:
    sides = (name, " ".join(wanted[:2]), " ".join(came[:2]))
    return all(re.fullmatch(pattern, side) for pattern, side in zip(row[:3], sides, strict=True))


def is_rounding(name: str, wanted: tuple[str, str, str], came: tuple[str, str, str]) -> bool:
    """Whether all but the last bits are equal.

    Which instructions of the processor compute a function depends on whether elements lie side by side, and with them
    these bits. Operators are exact, but powers: they are sums and products of numbers of few bits.
    """
    if "**" not in name and not name.startswith(("functions", "axes", "calls")):
        return False
    texts, others = " ".join(wanted).split(), " ".join(came).split()
    if len(texts) != len(others):
        return False
    precision = 1e-5 if re.search("float32|complex64|float16", " ".join(wanted)) else 1e-13
    numbers = [number_of(text) for text in texts]
    largest = max((abs(number) for number in numbers if number is not None and math.isfinite(number)), default=0)
    return all(
        text == other or is_near(number, number_of(other), precision * largest)
        for text, other, number in zip(texts, others, numbers, strict=True)
    )


def is_near(one: float | None, other: float | None, distance: float) -> bool:
    return one is not None and other is not None and abs(one - other) <= distance


def number_of(text: str) -> float | None:
    """Of a value; what else is in a line has no exponent of three digits."""
    return float(text) if re.fullmatch(r"-?\d\.\d{16}E[+-]\d{3}", text) else None
