# SPDX-License-Identifier: MIT
"""The scripts of the folder ``corpus``: blocks of texts, each with a header line.

A line ``### name`` begins a script. Lines ``#: word=value ...`` after it, or before the first script of a file for all
scripts of this file, say how it is called and which promises do not hold for it:

- ``calls=60``: how many there are. ``inputs=none``: ``step`` has no argument, in place of one of four rows of three.
- ``ready=yes``: recorded functions must run without Python at the end.
- ``needs=module``: it imports what may not be installed.
- ``refused=recorded,restarted``: promises that the library refuses to give for this script.
- ``either=recorded``: the same or refused, which depends on addresses of memory.
- ``unseen=recorded``: what the documentation says is not seen, so numbers differ.
- ``wrong=recorded``: numbers that differ and should not: a defect that is known.

A line ``#? recorded: TEXT`` is a part of what a refusal must say. ``--- name.py`` begins a file beside the script.
``%copy NAME`` stands for the text of another script, and other lines with ``%`` for parts: see ``parts.txt``.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "corpus"
_OWN = {"calls", "inputs", "ready", "needs"}
_VERDICTS = ("refused", "either", "unseen", "wrong")
_LINE = re.compile(r"^%(\w+)(?: (.*))?$", re.MULTILINE)


class Script(NamedTuple):
    """``text``: its code. ``beside``: texts of other files by name. ``family``: the file of the corpus it is from."""

    name: str
    text: str
    beside: dict[str, str]
    calls: int = 60
    has_input: bool = True
    must_be_ready: bool = False
    needs: str = ""
    expected: dict[str, str] = {}
    says: dict[str, str] = {}
    family: str = ""

    def can_be_asked(self, promise: str) -> bool:
        """Whether two runs of the script give the same numbers; if not, it must not be recorded."""
        return promise.startswith("recorded") or "must_be_refused" not in self.text

    def verdict_of(self, promise: str) -> str:
        """What the corpus says: "same", "refused", "either", "unseen" or "wrong"."""
        return self.expected.get(promise, "same")


@functools.cache
def corpus() -> dict[str, Script]:
    """All scripts by name."""
    found: dict[str, Script] = {}
    parts = blocks((FOLDER / "parts.txt").read_text())
    for path in sorted(FOLDER.glob("*.txt")):
        if path.stem == "parts":
            continue
        text = path.read_text()
        of_all = _header(text.partition("\n### ")[0])
        for name, body in blocks(text).items():
            if name in found:
                raise ValueError(f"two scripts are called {name!r}")
            code = _expanded(body, parts, found)
            says = dict(re.findall(r"^#\? (.*?): (.*)$", body, re.MULTILINE))
            found[name] = _script(name, code, of_all | _header(body), says, path.stem)
    return found


def _expanded(text: str, parts: dict[str, str], before: dict[str, Script]) -> str:
    def part(line: re.Match) -> str:
        name, rest = line[1], line[2] or ""
        return before[rest].text if name == "copy" else parts[name].rstrip("\n").replace("{}", rest)

    return _LINE.sub(part, re.sub(r"^#[:?] .*\n", "", text, flags=re.MULTILINE))


def _header(text: str) -> dict[str, str]:
    words = [each for line in re.findall(r"^#: (.*)$", text, re.MULTILINE) for each in line.split()]
    found = dict(each.split("=") for each in words)
    if not found.keys() <= {*_OWN, *_VERDICTS}:
        raise ValueError(f"a header has {found.keys() - {*_OWN, *_VERDICTS}}")
    return found


def _script(name: str, text: str, header: dict[str, str], says: dict[str, str], family: str) -> Script:
    text, *others = re.split(r"^--- (\S+)\n", text, flags=re.MULTILINE)
    expected = {each: kind for kind in _VERDICTS for each in header.get(kind, "").split(",") if each}
    return Script(
        name,
        text,
        dict(zip(others[::2], others[1::2])),
        int(header.get("calls", 60)),
        header.get("inputs") != "none",
        header.get("ready") == "yes",
        header.get("needs", ""),
        expected,
        says,
        family,
    )


def blocks(text: str) -> dict[str, str]:
    """Blocks of a text by name. ValueError where two have one name."""
    found: dict[str, str] = {}
    for part in text.split("\n### ")[1:]:
        name, _, body = part.partition("\n")
        if name in found:
            raise ValueError(f"two blocks are called {name!r}")
        found[name] = f"{body}\n"
    return found


def with_verdicts(found: dict[str, dict[str, str]]) -> None:
    """Write what a run has found, by name and promise, into the headers of the corpus."""
    corpus.cache_clear()
    for path in sorted(FOLDER.glob("*.txt")):
        head, *parts = path.read_text().rstrip("\n").split("\n### ")
        of_all = _header(head)
        made = [head]
        for part in parts:
            name, _, body = part.partition("\n")
            if name in found:
                own = {word: value for word, value in _header(body).items() if word in _OWN}
                kinds = _kinds(corpus()[name].expected | found[name])
                lines = re.sub(r"^#: .*\n?", "", body, flags=re.MULTILINE)
                words = [f"{word}={value}" for word, value in (own | kinds).items() if of_all.get(word) != value]
                body = (f"#: {' '.join(words)}\n" if words else "") + lines
            made.append(f"{name}\n{body}" if body else name)
        path.write_text("\n### ".join(made) + "\n")


def _kinds(verdicts: dict[str, str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for promise, kind in verdicts.items():
        if kind != "same":
            found.setdefault(kind, []).append(promise)
    return {kind: ",".join(sorted(names)) for kind, names in sorted(found.items())}
