# SPDX-License-Identifier: MIT
"""Options of `load`: what the one table of them says is what the page, Python and the core have."""

from __future__ import annotations

import dataclasses
import re
import sys

from pages import ROOT

from ftn_pytorch.runners.option_table import KINDS, OPTIONS, TABLE
from ftn_pytorch.runners.options import Options

sys.path.insert(0, str(ROOT / "docs" / "site"))
import load_options  # noqa: E402

VALUE_OF = {".true.": True, ".false.": False, "0": 0, "": None}


def test_the_page_is_written_from_the_table() -> None:
    """Mend with python docs/site/load_options.py."""
    page = load_options.PAGE.read_text()
    assert load_options.written(page) == page
    assert page.count("\n| `") == len(TABLE) == len(OPTIONS)


def test_python_has_all_but_what_is_for_others() -> None:
    """`config` goes to the script; `backend` and `per` say which process and library read the file."""
    fields = {field.name: field.default for field in dataclasses.fields(Options)}
    assert set(fields) == set(OPTIONS) - {"config", "backend", "per"}
    for name, default in fields.items():
        row = OPTIONS[name]
        if name in ("device", "compile", "compile_backend", "record"):
            continue  # completed by Options.of, or by the core
        assert default == VALUE_OF.get(row.default, row.default.strip('"')), name


def test_the_core_reads_each_of_its_rows() -> None:
    code = (ROOT / "src" / "calls" / "options.cpp").read_text()
    readers = re.findall(r'^    \{"(\w+)", \[\]', code, re.MULTILINE)
    assert sorted(readers) == sorted(row.name for row in TABLE if row.is_read_by_core)


def test_rows_say_how_they_are_given() -> None:
    for row in TABLE:
        assert row.kind in KINDS and row.meaning and row.files
        assert not row.words or row.kind == "text" and (row.default.strip('"') in row.words)
        assert not row.largest or row.kind in ("flag", "integer")
