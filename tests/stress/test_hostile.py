# SPDX-License-Identifier: MIT
"""Whatever array is passed, the script sees it and results arrive, byte for byte; what is refused changes nothing.

The examples are made by hypothesis and run by driver.cpp, which is told of them over a pipe.
"""

import shutil
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy
import pytest
from driving import COPY, IN, OUT, Driver
from hypothesis import assume, given
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from conftest import SEED  # type: ignore[attr-defined]

KINDS = {
    1: "bool",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float32",
    7: "float64",
    8: "complex64",
    9: "complex128",
}
OK, DTYPE, SHAPE, STRIDE, INPUT_MODIFIED = 0, 13, 14, 19, 21
SCRIPT = Path(__file__).parent / "scripts" / "hostile.py"


@dataclass
class Section:
    """A section of an array in Fortran order: how Fortran would describe it, and how NumPy sees it."""

    code: int
    axes: list[tuple[int, int, int, int]]  # extent of the whole array, first index, step, number of elements
    content: bytearray

    @property
    def dtype(self) -> numpy.dtype:
        return numpy.dtype(KINDS[self.code])

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(count for *_, count in self.axes)

    def _units(self) -> list[int]:
        return [prod(axis[0] for axis in self.axes[:i]) * self.dtype.itemsize for i in range(len(self.axes))]

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(unit * step for unit, (_, _, step, _) in zip(self._units(), self.axes))

    @property
    def offset(self) -> int:
        if prod(self.extents) == 0:
            return 0
        return sum(unit * first for unit, (_, first, _, _) in zip(self._units(), self.axes))

    @property
    def view(self) -> numpy.ndarray:
        """The elements, axes in Fortran order; written through into ``content``."""
        return numpy.ndarray(self.extents, self.dtype, self.content, self.offset, self.strides)

    @property
    def runs_backwards(self) -> bool:
        return any(step < 0 and count > 1 for _, _, step, count in self.axes)

    def describe(self, driver: Driver, number: int, access: int, name: str = "") -> None:
        driver.block(number, bytes(self.content))
        status, text = driver.array(number, number, self.offset, self.code, self.extents, self.strides, access, name)
        assert status == OK, text


@st.composite
def axes(draw, count=None):
    """One axis; its section may skip elements, and run backwards."""
    count = draw(st.integers(0, 4)) if count is None else count
    step = draw(st.sampled_from([1, 1, 1, 2, 3]))
    first = draw(st.integers(0, 2))
    after = draw(st.integers(0, 2))
    extent = max(1, first + step * max(count - 1, 0) + 1 + after) if count else max(1, first)
    if draw(st.sampled_from([False, False, False, True])) and count:
        return extent, first + step * (count - 1), -step, count
    return extent, first if count else 0, step, count


any_code = st.sampled_from(sorted(KINDS))


@st.composite
def sections(draw, extents=None, codes=any_code):
    """A section of up to seven axes whose whole array fits into a block of the driver."""
    code = draw(codes)
    if extents is None:
        rank = draw(st.integers(0, 7))
        extents = [draw(st.integers(0, 4 if rank < 4 else 2)) for _ in range(rank)]
    one = [draw(axes(count)) for count in extents]
    size = numpy.dtype(KINDS[code]).itemsize * prod(axis[0] for axis in one)
    if size > 8000:
        one = [(max(count, 1), 0, 1, count) for count in extents]
        size = numpy.dtype(KINDS[code]).itemsize * prod(axis[0] for axis in one)
    noise = numpy.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    content = bytearray(noise.bytes(size))
    if code == 1:
        content = bytearray(byte & 1 for byte in content)
    return Section(code, one, content)


def small_numbers(section: Section) -> None:
    """Values that every type can hold."""
    count = prod(axis[0] for axis in section.axes)
    values = numpy.arange(count) % 2 if section.code == 1 else numpy.arange(count) % 100
    section.content[:] = values.astype(section.dtype).tobytes()


def check_output(driver: Driver, number: int, expected: Section) -> None:
    """The whole memory, so also what lies between and around the elements."""
    assert driver.read(number)[: len(expected.content)] == bytes(expected.content)


SLOTS = [(framework, layout, mode) for framework in ("torch", "numpy") for layout in ("reversed", "same")
         for mode in ("checked", "safe")]  # fmt: skip


@pytest.fixture
def prepare(tmp_path):
    """Load a script for each framework, layout and mode."""
    files = {"torch": SCRIPT, "numpy": tmp_path / "hostile_numpy.py"}
    shutil.copy(SCRIPT, files["numpy"])

    def load(driver: Driver) -> None:
        for number, (framework, layout, mode) in enumerate(SLOTS):
            assert driver.load(number, files[framework], layout=layout, mode=mode)[0] == OK
        for number, framework in enumerate(files):
            assert driver.load(100 + number, files[framework], cast="")[0] == OK

    return load


def type_in_python(section: Section) -> str:
    if section.axes:
        return section.dtype.name
    return {"b": "bool", "i": "int", "f": "float", "c": "complex"}[section.dtype.kind]


def test_any_array_arrives_and_comes_back(lasting, prepare):
    lasting_driver = lasting(prepare)

    @with_seed(SEED)
    @given(st.data(), sections(), st.sampled_from([IN, OUT, COPY]), st.sampled_from(range(len(SLOTS))), st.booleans())
    def holds(data, source, access, slot, named):
        driver = lasting_driver.get()
        framework, layout, _ = SLOTS[slot]
        target = data.draw(sections(source.extents, st.just(source.code)), label="target")
        # a scalar input is a number in Python, one by reference is an array
        is_number = not source.axes and access != OUT
        if is_number:
            small_numbers(source)
        source.describe(driver, 0, access, "x" if named else "")
        target.describe(driver, 1, OUT)
        shape = source.extents if layout == "same" else source.extents[::-1]
        found = type_in_python(source) if is_number else source.dtype.name
        driver.text(2, f"{tuple(shape)} {found}", "expected" if named else "")
        status, text = driver.call(slot, "same", [0, 2], [1])
        if framework == "torch" and access != COPY and source.runs_backwards and 0 not in source.extents:
            assert status == STRIDE, text
        else:
            assert status == OK, text
            if target.extents:
                target.view[...] = source.view
            else:
                target.content[:] = source.content
        check_output(driver, 1, target)

    holds()


GROUPS = {"b": 0, "i": 1, "f": 2, "c": 3}
EXACT_BITS = dict(zip(KINDS, (1, 7, 15, 31, 63, 24, 53, 24, 53)))


def widens(one: int, other: int) -> bool:
    if one == other:
        return True
    first, second = (GROUPS[numpy.dtype(KINDS[code]).kind] for code in (one, other))
    return 0 < first <= second and EXACT_BITS[one] <= EXACT_BITS[other]


def is_castable(one: int, other: int) -> bool:
    first, second = (GROUPS[numpy.dtype(KINDS[code]).kind] for code in (one, other))
    return widens(one, other) or 0 < first <= second


def test_results_widen_and_are_narrowed_only_where_that_was_asked_for(lasting, prepare):
    lasting_driver = lasting(prepare)

    @with_seed(SEED + 1)
    @given(
        st.data(),
        sections(),
        st.sampled_from(sorted(KINDS)),
        st.sampled_from(sorted(KINDS)),
        st.integers(0, 1),
        st.booleans(),
    )
    def holds(data, source, made, wanted, framework, cast):
        driver = lasting_driver.get()
        assume(source.axes and not (made < 8 <= source.code))
        small_numbers(source)
        extents = list(source.extents)
        fits = data.draw(st.sampled_from([True, True, True, False]), label="same shape")
        if not fits:
            extents[data.draw(st.integers(0, len(extents) - 1))] += 1
        target = data.draw(sections(extents, st.just(wanted)), label="target")
        source.describe(driver, 0, COPY)
        target.describe(driver, 1, OUT)
        driver.text(2, KINDS[made])
        status, text = driver.call(100 + framework if cast else len(SLOTS) // 2 * framework, "convert", [0, 2], [1])
        if not fits:
            assert status == SHAPE, text
        elif is_castable(made, wanted) if cast else widens(made, wanted):
            assert status == OK, text
            target.view[...] = source.view.astype(KINDS[made]).astype(KINDS[wanted])
        else:
            assert status == DTYPE, text
        check_output(driver, 1, target)

    holds()


HARMLESS = ["nothing", "keep", "keep view", "forget"]
OF_TORCH = ["keep memory", "keep data", "keep graph", "gradient", "turn", "resize", "set", "elsewhere", "swap",
            "add axis", "attribute"]  # fmt: skip
OF_NUMPY = ["reshape", "other type"]


# What the largest of these arrays takes, with every stride doubled, is 2,816 bytes.
VISITED = 4096


@st.composite
def visits(draw):
    """One call: an array somewhere in a small memory, and what the script does to it."""
    code = draw(st.sampled_from([4, 5, 6, 7, 9]))
    rank = draw(st.integers(1, 3))
    extents = [draw(st.integers(1, 3)) for _ in range(rank)]
    packed = draw(st.booleans())
    size = numpy.dtype(KINDS[code]).itemsize
    strides, stride = [], size
    for extent in extents:
        stride *= 1 if packed else draw(st.integers(1, 2))
        strides.append(stride)
        stride *= extent
    offset = 16 * draw(st.integers(0, 3))
    return code, extents, strides, offset, draw(st.sampled_from([IN, OUT])), draw(st.integers(0, 255))


def test_what_was_kept_between_calls_is_never_stale(lasting, prepare):
    lasting_driver = lasting(prepare)

    @with_seed(SEED + 2)
    @given(st.data(), st.sampled_from(range(len(SLOTS))), st.lists(visits(), min_size=2, max_size=8))
    def holds(data, slot, calls):
        driver = lasting_driver.get()
        framework, _, _ = SLOTS[slot]
        actions = HARMLESS + (OF_TORCH if framework == "torch" else OF_NUMPY)
        for _ in range(data.draw(st.integers(1, 3), label="rounds")):
            for code, extents, strides, offset, access, number in calls:
                memory = bytearray((number + i) % 256 for i in range(VISITED))
                driver.block(0, bytes(memory))
                status, text = driver.array(0, 0, offset, code, extents, strides, access)
                assert status == OK, text
                action = data.draw(st.sampled_from(actions))
                driver.text(1, action)
                array = numpy.ndarray(extents, KINDS[code], memory, offset, strides)
                target = Section(code, [(extent, 0, 1, extent) for extent in extents], bytearray(array.nbytes))
                target.describe(driver, 2, OUT)
                status, text = driver.call(slot, "meets", [0, 1], [2])
                if status == INPUT_MODIFIED:
                    # torch counts them as changes of the values, which checked calls look for
                    assert access == IN and action in ("set", "resize", "turn", "swap", "add axis"), text
                else:
                    assert status == OK, f"{action}: {text}"
                    target.view[...] = array
                check_output(driver, 2, target)
                if action != "resize":
                    assert driver.read(0)[:VISITED] == bytes(memory), f"{action} wrote into the array"
        driver.warnings()

    holds()


def test_any_text_arrives(lasting, prepare):
    lasting_driver = lasting(prepare)

    @with_seed(SEED + 3)
    @given(st.text(max_size=300), st.sampled_from(range(len(SLOTS))))
    def holds(text, slot):
        driver = lasting_driver.get()
        raw = text.encode("utf-8", "replace").rstrip(b" ")
        driver.text(0, raw)
        driver.text(1, raw.hex())
        assert driver.call(slot, "is_text", [0, 1]) == (OK, "")

    holds()


def test_any_path_is_loaded(lasting, tmp_path):
    lasting_driver = lasting(lambda driver: None)
    names = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=30)

    @with_seed(SEED + 4)
    @given(names, names)
    def holds(folder, stem):
        driver = lasting_driver.get()
        assume(folder not in (".", "..") and len(f"{stem}.py".encode()) < 200 and len(folder.encode()) < 200)
        file = tmp_path / folder / f"{stem}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("def where(path): return None if path == __file__ else 1 / 0\n")
        assert driver.load(0, file) == (OK, "")
        driver.text(0, str(file))
        assert driver.call(0, "where", [0]) == (OK, "")
        driver.tell("free", 0)

    holds()
