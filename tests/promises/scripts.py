# SPDX-License-Identifier: MIT
"""The scripts of the folder ``corpus``: blocks of texts, each with a header line.

A line ``### name`` begins a script. Lines ``#: word=value ...`` after it, or before the first script of a file for all
scripts of this file, say how it is called and which promises do not hold for it:

- ``calls=60``: how many there are. ``inputs=none``: ``step`` has no argument, in place of one of four rows of three.
- ``ready=yes``: recorded functions must run without Python at the end.
- ``needs=module``: it imports what may not be installed.
- ``device=no``: it is for a CPU, or fails in a way after which a process can use no GPU.
- ``refused=recorded,restarted``: promises that the library refuses to give for this script.
- ``either=recorded``: the same or refused, which depends on addresses of memory.
- ``unseen=recorded``: what the documentation says is not seen, so numbers differ.
- ``wrong=recorded``: numbers that differ and should not: a defect that is known.
- ``same=arrays``: what a recording does not see is right where Fortran calls.

Lines ``#? recorded: TEXT`` are parts of what a refusal must say; the first line of a script is line 9 of its file.
``--- name.py`` begins a file beside the script.
``%copy NAME`` stands for the text of another script, ``%docs PAGE NUMBER`` for a Python block of the documentation
with a step that makes the calls which a comment above it names, and other lines with ``%`` for parts: see
``parts.txt``.
"""

from __future__ import annotations

import ast
import functools
import re
import zlib
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "corpus"
ONE_OF = {"node": 16, "compiled": 2}
"""Of how many scripts one is asked: for each a process imports torch, or a compiler runs."""
OF_FORTRAN = ("arrays", "sections", "tensors", "ranks", "node", "device")
"""Promises in which a Fortran program calls."""
OF_DEVICES = ("device", "saved-device")
"""Promises that need a GPU."""
_OWN = {"calls", "inputs", "ready", "needs", "device"}
_VERDICTS = ("refused", "either", "unseen", "wrong", "same")
_OF_PYTHON = {"as_subclass", "bfloat16", "contiguous", "half", "inference_mode", "requires_grad_", "to_sparse"}
"""What makes of an argument one that a Fortran program cannot pass."""
_BLOCK = re.compile(r"^((?:<!-- test: [^\n]*-->\n+)*)```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
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
    has_device: bool = True
    expected: dict[str, str] = {}
    says: dict[str, list[str]] = {}
    family: str = ""

    def __hash__(self) -> int:
        return hash(self.name)

    def can_be_asked(self, promise: str) -> bool:
        """Whether two runs of the script give the same numbers; if not, it must not be recorded.

        From Fortran: whether a program has such arguments, each in memory of its own, and does nothing with results
        that only Python can. To the compiler go optimizers as users write
        them, where these are recorded.
        """
        if promise in OF_FORTRAN and not has_arguments_of_fortran(self.text):
            return False
        if zlib.crc32(self.name.encode()) % ONE_OF.get(promise, 1):
            return False
        if promise == "compiled" and (self.family != "users_optimizers" or self.verdict_of("recorded") != "same"):
            return False
        if promise in OF_DEVICES and not self.has_device:
            return False
        return promise.startswith("recorded") or "must_be_refused" not in self.text

    def verdict_of(self, promise: str) -> str:
        """What the corpus says: "same", "refused", "either", "unseen" or "wrong".

        What a recording does not see, it does not see where Fortran calls. A device is asked only where there is one,
        and gives what the host gives unless the header says otherwise, or the numbers. Files may be refused there.
        """
        if promise in OF_DEVICES and promise not in self.expected:
            on_host = self.verdict_of("arrays" if promise == "device" else "saved")
            return "either" if on_host == "refused" or promise == "saved-device" else on_host
        return self.expected.get(promise, _of_others(self.expected, promise))


def _of_others(verdicts: dict[str, str], promise: str) -> str:
    recorded = {verdicts.get(each) for each in ("recorded", "recorded-late") if promise in OF_FORTRAN}
    return next((each for each in ("unseen", "wrong") if each in recorded), "same")


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
            says: dict[str, list[str]] = {}
            for promise, part in re.findall(r"^#\? (.*?): (.*)$", body, re.MULTILINE):
                says.setdefault(promise, []).append(part)
            found[name] = _script(name, code, of_all | _header(body), says, path.stem)
    return found


def _expanded(text: str, parts: dict[str, str], before: dict[str, Script]) -> str:
    def part(line: re.Match) -> str:
        name, rest = line[1], line[2] or ""
        if name == "docs":
            return of_docs(*rest.split())
        return before[rest].text if name == "copy" else parts[name].rstrip("\n").replace("{}", rest)

    return _LINE.sub(part, re.sub(r"^#[:?] .*\n", "", text, flags=re.MULTILINE))


def blocks_of_docs(page: str) -> list[tuple[str, list[str]]]:
    """Python blocks of a page, and the calls of each that its comments name."""
    found = _BLOCK.findall((FOLDER.parents[1] / page).read_text())
    return [(text, re.findall("test: call (.*?) -->", comments)) for comments, text in found]


def of_docs(page: str, number: str) -> str:
    """A block with ``step``, which makes the calls but for those of files. Others are written beside the script."""
    text, calls = blocks_of_docs(page)[int(number) - 1]
    beside = r'os.path.join(os.path.dirname(__file__), __name__ + "\1")'
    text = re.sub(r'"(?:run/)?(log.csv|weights.pt)"', beside, text)
    text = text.replace("from ftn_pytorch import recorded\n", "")  # the tests give what is to stand there
    made = ", ".join(each for each in calls if ".ckpt" not in each)
    setup = "ftn_pytorch_setup()\n" if "def ftn_pytorch_setup(" in text else ""
    rand = "rand = lambda *shape: x.flatten().repeat(math.prod(shape) // x.numel() + 1)[: math.prod(shape)].view(shape)"
    # the names of the page, which later functions may have
    own = "".join(f", {name}={name}" for name in re.findall(r"^def (\w+)\(", text, re.MULTILINE) if f"{name}(" in made)
    mark = "" if "recorded" in text else "@recorded\n"
    lines = [rand, "zeros, randint = torch.zeros, torch.randint", f"return [{made}]"]
    return f"{text}{setup}{mark}def step(x{own}):\n    " + "\n    ".join(lines)


def _header(text: str) -> dict[str, str]:
    words = [each for line in re.findall(r"^#: (.*)$", text, re.MULTILINE) for each in line.split()]
    found = dict(each.split("=") for each in words)
    if not found.keys() <= {*_OWN, *_VERDICTS}:
        raise ValueError(f"a header has {found.keys() - {*_OWN, *_VERDICTS}}")
    return found


def _script(name: str, text: str, header: dict[str, str], says: dict[str, list[str]], family: str) -> Script:
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
        header.get("device", "yes") == "yes",
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


def has_arguments_of_fortran(text: str) -> bool:
    """What ``inputs`` gives is made of ``x`` and of numbers alone; ``after`` does nothing to the result."""
    if "def inputs(" not in text and "def after(" not in text:
        return True
    functions = {each.name: each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)}
    if "after" in functions and ("result" in _names(functions["after"].body) or _writes_to_first(functions["after"])):
        return False
    if "inputs" not in functions:
        return True
    function = functions["inputs"]
    given = [each.value for each in ast.walk(function) if isinstance(each, ast.Return)]
    each_tuple = [one for each in given for one in ast.walk(each) if isinstance(one, ast.Tuple)]
    values = [one for each in each_tuple for one in each.elts]
    no_array = any(isinstance(each, (ast.Dict, ast.Set)) for one in values for each in ast.walk(one))
    no_array |= any(isinstance(one, ast.List) for one in values)
    with_gaps = any(isinstance(one, ast.Subscript) and isinstance(one.value, ast.Call) for one in ast.walk(function))
    shared = any(sum("x" in _names([one]) for one in each.elts) > 1 for each in each_tuple)
    attributes = [one for one in ast.walk(function) if isinstance(one, ast.Attribute)]
    has_own = any(one.attr in _OF_PYTHON or isinstance(one.ctx, ast.Store) for one in attributes)
    is_of_fortran = not (no_array or with_gaps or shared or has_own)
    return is_of_fortran and _names(function.body) <= {"x", "call", "torch", "float"}


def _writes_to_first(function: ast.FunctionDef) -> bool:
    """Whether it calls a method of its first argument that changes it, such as ``found.mul_(2)``."""
    called = (one.func for one in ast.walk(function) if isinstance(one, ast.Call))
    first = [each.arg for each in function.args.args[:1]]
    return any(
        isinstance(one, ast.Attribute) and one.attr.endswith("_") and _names([one.value]) <= {*first} for one in called
    )


def _names(code: list) -> set[str]:
    return {one.id for each in code for one in ast.walk(each) if isinstance(one, ast.Name)}


def with_verdicts(found: dict[str, dict[str, str]]) -> None:
    """Write what a run has found, by name and promise, into the headers of the corpus."""
    known = corpus()
    for path in sorted(FOLDER.glob("*.txt")):
        head, *parts = path.read_text().rstrip("\n").split("\n### ")
        of_all = _header(head)
        made = [head]
        for part in parts:
            name, _, body = part.partition("\n")
            if name in found:
                own = {word: value for word, value in _header(body).items() if word in _OWN}
                kinds = _kinds(known[name].expected | found[name])
                lines = re.sub(r"^#: .*\n?", "", body, flags=re.MULTILINE)
                words = [f"{word}={value}" for word, value in (own | kinds).items() if of_all.get(word) != value]
                body = (f"#: {' '.join(words)}\n" if words else "") + lines
            made.append(f"{name}\n{body}" if body else name)
        path.write_text("\n### ".join(made) + "\n")
    corpus.cache_clear()


def _kinds(verdicts: dict[str, str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for promise, kind in verdicts.items():
        if kind != "same" or _of_others(verdicts, promise) != "same":
            found.setdefault(kind, []).append(promise)
    return {kind: ",".join(sorted(names)) for kind, names in sorted(found.items())}
