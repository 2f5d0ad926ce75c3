# SPDX-License-Identifier: MIT
"""Write the table of docs/load-options.md, from the table of options of the package: load_options.py"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "load-options.md"
sys.path.insert(0, str(ROOT / "python" / "ftn_pytorch" / "runners"))
from option_table import KINDS, TABLE, Option  # noqa: E402


def line(row: Option) -> str:
    mark = " *" if row.is_of_models else ""
    default = f"`{row.default}`" if re.match(r'["\.]', row.default) else row.default or "none"
    return f"| `{row.name}`{mark} | {KINDS[row.kind].said} | {default} | {row.meaning} | {row.files} |\n"


def written(page: str) -> str:
    """The page with the rows as they are to be: what a script has comes first."""
    rows = "".join(line(row) for row in sorted(TABLE, key=lambda row: row.is_of_models))
    return re.sub(r"(\n\|(?:---\|)+\n)(?:\|.*\n)*", lambda found: found[1] + rows, page, count=1)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
