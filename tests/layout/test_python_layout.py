# SPDX-License-Identifier: MIT
"""The Python package keeps to its floors: a module imports its own room and rooms below, and no circle is closed."""

import ast
import re
from pathlib import Path

import pytest

from ftn_pytorch import _embed
from ftn_pytorch.values import dtypes

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "ftn_pytorch"
# Lowest first; rooms of one floor may not import each other. docs/architecture.md says what lives where.
FLOORS = [
    {"errors", "_version"},
    {"system"},
    {"values", "ranks", "compiling"},
    {"recording", "script"},
    {"checkpoint", "tensors"},
    {"kit", "halo", "saved"},
    {"runners", "diagnosis"},
    {"opening"},
    {"_embed"},
    {"commands"},
    {"__main__"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# A project is a template and no part of the package. The package itself hands out public names, late.
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if "project" not in path.parts and name_of(path)]
MODULES = {name_of(path) for path in FILES}


def imported_by(path: Path) -> set[str]:
    """Modules of the package that a file names in import statements, wherever these stand."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.relative_to(PACKAGE).parent.parts
            above = folder[: len(folder) - node.level + 1]
            place = ".".join([*above, *filter(None, [node.module])])
            found |= {each if (each := f"{place}.{name.name}".strip(".")) in MODULES else place for name in node.names}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
            assert not any(name.partition(".")[0] == "ftn_pytorch" for name in names), "imports are relative"
    return found - {name_of(path)}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_rooms_import_only_rooms_below(path: Path) -> None:
    own = name_of(path).partition(".")[0]
    for other in imported_by(path):
        room = other.partition(".")[0]
        assert room == own or FLOOR_OF[room] < FLOOR_OF[own], f"{name_of(path)} imports {other}"


def test_modules_import_each_other_in_one_direction() -> None:
    below = {name_of(path): imported_by(path) for path in FILES}
    while below:
        done = [name for name, imported in below.items() if not imported & set(below)]
        assert done, f"a circle among {sorted(below)}"
        below = {name: imported for name, imported in below.items() if name not in done}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_modules_open_with_what_they_are_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_every_module_is_in_a_room() -> None:
    assert {name.partition(".")[0] for name in MODULES} == set(FLOOR_OF)


def test_codes_of_types_are_those_of_the_header() -> None:
    header = (PACKAGE.parents[1] / "src" / "ftn_pytorch.h").read_text()
    listed = re.search(r"\bFPT_NONE = 0,.*?}", header, re.DOTALL)[0]
    codes = {name.lower(): int(code) for name, code in re.findall(r"FPT_(\w+) = (\d+)", listed)}
    scalars = {"none", "text", "logical16", "logical32", "logical64"}
    assert {name: code for name, code in codes.items() if name not in scalars} == {
        name: code for code, name in dtypes.OF_CODE.items()
    }


def test_what_the_core_calls_is_there() -> None:
    sources = (PACKAGE.parents[1] / "src").rglob("*.cpp")
    names = {name for source in sources for name in re.findall(r'\bembed\("(\w+)"\)', source.read_text())}
    assert len(names) > 20
    assert not [name for name in names | set(_embed._PLACES) if not callable(getattr(_embed, name, None))]
