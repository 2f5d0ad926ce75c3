# SPDX-License-Identifier: MIT
"""Tables of Markdown, and what stands above them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def page(title: str, document: Mapping[str, Any], *parts: str) -> str:
    """A page with a title, what was measured on which machine as far as that is known, and tables."""
    known = [setting(document)] if "machine" in document else []
    return "\n\n".join((f"# {title}", *known, *parts)) + "\n"


def setting(document: Mapping[str, Any]) -> str:
    """Machine and versions of a run."""
    machine = document["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    after = machine.get("load_after", "not known, as the run was ended")
    loads = f"Load before and after: {machine['load_before']}, {after}."
    cores = machine["cores"]
    size = f"{cores} {'core' if cores == 1 else 'cores'}, {machine['memory_gib']} GiB"
    return f"{machine['processor']}, {size}; {machine['system']}. {loads} {packages}."


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def microseconds(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"
