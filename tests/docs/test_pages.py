# SPDX-License-Identifier: MIT
"""What pages refer to: other pages and their sections, and names of the library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import BLOCKS, PAGES, ROOT

SOURCES = [
    path
    for folder in ("src", "python", "fortran", "cmake", "tests", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix not in {".md", ".png", ".pyc"} and ROOT / "tests" / "docs" not in path.parents
]
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Those that a forge makes of headings: lower case, blanks to hyphens, without punctuation."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{target}: no such file"
        if anchor:
            assert anchor in anchors(there), f"{target}: no such section"


def test_names_of_the_library_exist() -> None:
    """Status codes, environment variables and build options of the pages occur in the sources."""
    name = re.compile(r"\bFTN_PYTORCH_[A-Z]\w*")
    files = [*SOURCES, ROOT / "Makefile", ROOT / "CMakeLists.txt"]
    known = {found for file in files for found in name.findall(file.read_text(errors="replace"))}
    header = (ROOT / "src" / "ftn_pytorch.h").read_text()  # names of statuses are generated from it
    known |= {f"FTN_PYTORCH_{found}" for found in re.findall(r"\bFPT_(ERR_\w+)", header)}
    pages = {found for page in PAGES for found in name.findall(page.read_text())}
    # FTN_PYTORCH_ERR_... stands for all of them.
    assert {found for found in pages if not found.endswith("_")} - known == set()


def test_the_table_of_the_interface_lists_what_the_facade_offers() -> None:
    facade = (ROOT / "fortran" / "ftn_pytorch.f90").read_text().partition("module ftn_pytorch\n")[2]
    names = set(re.findall(r"\b(?:torch|ftn_pytorch)_\w+\b", facade))
    table = (ROOT / "docs" / "fortran-api.md").read_text().partition("## In one table\n")[2].partition("\n## ")[0]
    assert len(names) > 25 and names <= set(re.findall(r"`(\w+)", table))


def test_python_names_are_those_of_the_packages() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    for package, others in (("ftn_pytorch", {"kit"}), ("ftn_pytorch/kit", set())):
        source = (ROOT / "python" / package / "__init__.py").read_text()
        places = re.search(r"^_PLACES = \{\n(.+?)\n\}", source, re.MULTILINE | re.DOTALL)
        assert places
        names = set(re.findall(r'^    "(\w+)":', places[1], re.MULTILINE)) | others
        table = page.partition(f"| from `{package.replace('/', '.')}` |")[2].partition("\n\n")[0]
        rows = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
        assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == names


def test_the_gallery_has_all_examples_and_small_pictures() -> None:
    linked = re.findall(r"\]\(\.\./examples/(\w+)/README\.md\)", (ROOT / "docs" / "examples.md").read_text())
    assert sorted(linked) == sorted(path.parent.name for path in (ROOT / "examples").glob("*/README.md"))
    pictures = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()}
    assert pictures and max(pictures.values()) < 150_000 and sum(pictures.values()) < 800_000


def test_every_status_has_its_row() -> None:
    header = (ROOT / "src" / "ftn_pytorch.h").read_text()
    statuses = {(value, f"FTN_PYTORCH_{name}") for name, value in re.findall(r"\bFPT_(OK|ERR_\w+) = (\d+)", header)}
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| .", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert statuses and statuses == set(rows)


def test_every_backend_is_documented() -> None:
    """fortran-modules.md lists what backend() may return: those of the runners, and the direct path."""
    runners = (ROOT / "python" / "ftn_pytorch" / "runners").rglob("*.py")
    names = {name for file in runners for name in re.findall(r'^    backend = "(\w+)"', file.read_text(), re.MULTILINE)}
    table = re.findall(r'^\| `"(\w+)"` \|', (ROOT / "docs" / "fortran-modules.md").read_text(), re.MULTILINE)
    assert set(table) == names | {"direct"}


def test_citation_has_the_version_of_the_library() -> None:
    version = re.search(r'FPT_VERSION "(.+)"', (ROOT / "src" / "ftn_pytorch.h").read_text())
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version and cited and version[1] == cited[1]


def test_stability_has_the_formats_of_files() -> None:
    from ftn_pytorch.checkpoint import file
    from ftn_pytorch.diagnosis import call_recorder
    from ftn_pytorch.saved import writing

    text = (ROOT / "docs" / "stability.md").read_text()
    rows = re.findall(r"^\| ([a-z ]+) \(.+?\) \| (\d+) \|", text, re.MULTILINE)
    formats = {"checkpoint": file.FORMAT, "saved recording": writing.FORMAT}
    assert dict(rows) == {
        name: str(number) for name, number in {**formats, "folder of recorded calls": call_recorder.FORMAT}.items()
    }


@pytest.mark.parametrize("file", ["first.py", "first.f90"])
def test_the_first_program_is_that_of_the_example(file: str) -> None:
    language = {"first.py": "python", "first.f90": "fortran"}[file]
    licence, text = (ROOT / "examples" / "first" / file).read_text().split("\n", 1)
    block = next(block for block in BLOCKS if block.page == ROOT / "README.md" and block.language == language)
    assert "SPDX" in licence and text == block.text
