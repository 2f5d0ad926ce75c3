# SPDX-License-Identifier: MIT
"""README.md and docs/index.md: their programs print what the pages show, and they are no copies of each other."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from pages import ROOT, blocks_of
from walkthrough import Walk, name_of

SCREENS = [ROOT / "README.md", ROOT / "docs" / "index.md"]


def form(text: str) -> list[str]:
    """The words of each line; a number stands for any other."""
    return [" ".join(re.sub(r"\d\.\d+(E[-+]\d+)?", "#", line).split()) for line in text.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("page", SCREENS, ids=lambda page: page.name)
def test_the_program_prints_what_the_page_shows(
    page: Path, build_dir: Path, cache: dict[str, str], tmp_path: Path
) -> None:
    script, program, shown = list(blocks_of(page))[:3]
    assert (script.language, program.language, shown.language) == ("python", "fortran", "")
    for block in (script, program):
        name = "first" + Path(name_of(block)).suffix if page.name == "README.md" else name_of(block)
        (tmp_path / name).write_text(block.text)
    fortran, library = build_dir / "fortran", build_dir / "lib"
    options = [f"-I{fortran / 'ftn_pytorch_fortran_modules'}", f"-L{library}", f"-Wl,-rpath,{library}"]
    walk = Walk(tmp_path, {"FTN_PYTORCH_PYTHON": sys.executable})
    compiler, source = cache["CMAKE_Fortran_COMPILER"], next(tmp_path.glob("*.f90"))
    walk.run(compiler, "-o", "program", source, fortran / "libftn_pytorch_fortran.a", *options, "-lftn_pytorch")
    printed = walk.run("./program")
    assert form(printed) == form(shown.text)
    losses = [float(loss) for loss in re.findall(r"loss +(\S+)", printed)]
    assert losses[-1] < 1e-5


def test_they_are_no_copies_of_each_other() -> None:
    """Sentences and blocks; the picture is one."""
    parts = [set(re.split(r"\n\s*\n|\. |\n(?=- )", page.read_text())) for page in SCREENS]
    both = {part.strip() for part in parts[0] & parts[1] if len(part) > 60}
    assert [part for part in both if not part.startswith("![")] == []
