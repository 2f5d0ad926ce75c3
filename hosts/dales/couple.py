# SPDX-License-Identifier: MIT
"""Couples a checkout of DALES 4.4 with a script: python couple.py <checkout>.

Puts ``modlearn.f90`` beside its sources, and eleven lines into three of its files. Places are found by lines of code,
compared without blanks, comments and case. Nothing is written unless all of them are found.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MODULE = Path(__file__).with_name("modlearn.f90")
SUBGRID, STARTUP, BUILD = "src/modsubgrid.f90", "src/modstartup.f90", "src/CMakeLists.txt"
# The branch of the closure that limits the length scale by the stability
LIMIT = "if (dthvdz(i,j,k) > 0) then"


class NotThisModelError(Exception):
    """The checkout has no such place."""


class Insertion(NamedTuple):
    """A line that goes before or after one of ``file``.

    ``anchor`` is that one, the only one of its kind in ``procedure``, or above ``contains`` if none is named. More
    lines lead from there to others: ``"< do"`` back to the nearest ``do``, ``"> end do"`` on to the next ``end do``.
    """

    file: str
    procedure: str
    place: str
    anchor: list[str]
    line: str


USED = "use modlearn, only : exitlearn, learn_length, predict_length, predicts"
ENDS = "end subroutine do_writerestartfiles"
INSERTIONS = [
    Insertion(SUBGRID, "", "after", ["use modsubgriddata"], USED),
    Insertion(SUBGRID, "exitsubgrid", "after", ["implicit none"], "call exitlearn"),
    Insertion(SUBGRID, "closure", "before", [LIMIT, "< do k=1,kmax"], "if (predicts) call predict_length"),
    Insertion(SUBGRID, "closure", "before", [LIMIT, "< zlt(i,j,k) = delta(k)"], "if (.not. predicts) then"),
    Insertion(SUBGRID, "closure", "after", [LIMIT, "> end if"], "end if"),
    Insertion(SUBGRID, "closure", "after", [LIMIT, *["> end do"] * 3], "call learn_length"),
    Insertion(STARTUP, "", "before", ["implicit none"], "use modlearn, only : checkpoint_learn, initlearn"),
    Insertion(STARTUP, "startup", "after", ["call readinitfiles"], "call initlearn"),
    Insertion(STARTUP, "do_writerestartfiles", "before", [ENDS], "call checkpoint_learn"),
    Insertion(BUILD, "", "after", ["set(target_lib dales)"], "find_package(ftn_pytorch REQUIRED)"),
    Insertion(BUILD, "", "after", ["set(target_lib dales)"], "link_libraries(ftn_pytorch::ftn_pytorch)"),
]


def compact(line: str) -> str:
    return "".join(line.partition("!")[0].split()).lower()


def procedure_lines(insertion: Insertion, code: Sequence[str]) -> range:
    """Where the anchor of an insertion is looked for."""
    name = insertion.procedure
    if not name:
        return range(code.index("contains") if "contains" in code else len(code))
    for first, line in enumerate(code):
        if line.partition("(")[0] == f"subroutine{name}":
            last = next(at for at in range(first, len(code)) if code[at].startswith("endsubroutine"))
            return range(first, last + 1)
    raise NotThisModelError(f"{insertion.file} has no subroutine {name}")


def position(insertion: Insertion, code: Sequence[str]) -> int:
    """Index of the line at which the new ones begin."""
    within = procedure_lines(insertion, code)
    where = f"{insertion.file}, {f'subroutine {insertion.procedure}' if insertion.procedure else 'at the top'}"
    first, *steps = insertion.anchor
    found = [at for at in within if code[at] == compact(first)]
    if len(found) != 1:
        raise NotThisModelError(f'{where}: "{first}" stands there {len(found)} times, not once')
    at = found[0]
    for step in steps:
        wanted = compact(step[1:])
        ways = range(at - 1, within.start, -1) if step[0] == "<" else range(at + 1, within.stop)
        near = next((each for each in ways if code[each] == wanted), None)
        if near is None:
            side = "before" if step[0] == "<" else "behind"
            raise NotThisModelError(f'{where}: there is no "{step[2:]}" {side} "{first}"')
        at = near
    return at + (insertion.place == "after")


def coupled(file: str, text: str) -> str:
    """The text of a file with the lines that it gets."""
    lines = text.splitlines(keepends=True)
    code = [compact(line) for line in lines]
    places = [(position(each, code), each) for each in INSERTIONS if each.file == file]
    places.sort(key=lambda pair: pair[0])
    for at, insertion in reversed(places):  # so that positions of those before stay right
        beside = lines[at - (insertion.place == "after")]
        indent = beside[: len(beside) - len(beside.lstrip())]
        lines.insert(at, f"{indent}{insertion.line}\n")
    return "".join(lines)


def couple(checkout: Path) -> list[str]:
    """Changes the files of a checkout, and says what was done."""
    target = checkout / "src" / MODULE.name
    if target.exists():
        raise NotThisModelError(f"{target} is there: this checkout is coupled already")
    texts = {}
    for file in dict.fromkeys(each.file for each in INSERTIONS):
        if not (checkout / file).is_file():
            raise NotThisModelError(f"{checkout} has no {file}")
        texts[file] = coupled(file, (checkout / file).read_text("latin-1"))
    for file, text in texts.items():
        (checkout / file).write_text(text, "latin-1")
    shutil.copyfile(MODULE, target)
    counts = Counter(each.file for each in INSERTIONS)
    return [*(f"{file}: {count} lines" for file, count in counts.items()), f"src/{MODULE.name}: new"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Couple a checkout of DALES 4.4 with a script.")
    parser.add_argument("checkout", type=Path, help="folder of DALES, which has src/")
    try:
        print("\n".join(couple(parser.parse_args().checkout)))
    except NotThisModelError as error:
        print(f"couple.py: {error}. Nothing was changed; it knows DALES 4.4", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
