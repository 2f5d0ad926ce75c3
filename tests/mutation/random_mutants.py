#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes the Python package at places that a seed chooses, one at a time, and tells which changes no test notices.

    python tests/mutation/random_mutants.py [--work FOLDER] [--all] SEED COUNT

A change is another comparison, operator, constant or condition, or a call that is left out. The last commit is cloned
and built as by mutate.py. The files of tests/python that speak most of the module run, until one fails; with ``--all``
the rest of tests/python runs, too, for a change that none of them notices.

Exit code: 0 if all changes are noticed, 1 if some are not. Changes that leave the program as it was are among those:
whoever runs this looks at them.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fault import Tests
from mutate import Clone

PACKAGE, TESTS = Path("python/ftn_pytorch"), Path("tests/python")
MOST_FILES = 20  # of tests that are related to a module
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}


class Mutant(NamedTuple):
    """A change of a module, as its whole new text."""

    module: Path
    line: int
    before: str
    after: str
    text: str


def changed(node: ast.AST) -> ast.expr | None:
    """Another expression in place of this one; None for what is left alone."""
    other = copy.deepcopy(node)
    if isinstance(other, ast.Compare) and type(other.ops[0]) in COMPARISONS:
        other.ops[0] = COMPARISONS[type(other.ops[0])]()
    elif isinstance(other, ast.BoolOp):
        other.op = ast.Or() if isinstance(other.op, ast.And) else ast.And()
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        return other.operand
    elif isinstance(other, ast.BinOp) and type(other.op) in OPERATORS and not _is_text(other):
        other.op = OPERATORS[type(other.op)]()
    elif isinstance(other, ast.Constant) and isinstance(other.value, (bool, int)):
        other.value = (not other.value) if isinstance(other.value, bool) else other.value + 1
    else:
        return None
    return other


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(part, ast.JoinedStr | ast.Constant) and not _is_number(part) for part in ast.walk(node))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def changes(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each expression of a module that can be changed, and what it becomes."""
    annotations = {
        id(part)
        for node in ast.walk(tree)
        for name in ("annotation", "returns")
        for part in ast.walk(getattr(node, name, None) or ast.Pass())
    }
    for node in ast.walk(tree):
        if id(node) in annotations:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node.value, ast.Constant(None)
        elif isinstance(node, ast.If):
            yield node.test, ast.Constant(False)
        else:
            other = changed(node)
            if other is not None:
                yield node, other  # type: ignore[misc]


def mutants(folder: Path, seed: int, count: int) -> Iterator[Mutant]:
    """Longer modules have more of them."""
    choice = random.Random(seed)
    modules = [file for file in sorted((folder / PACKAGE).rglob("*.py")) if file.name != "__init__.py"]
    weights = [len(file.read_text().splitlines()) for file in modules]
    while count:
        module = choice.choices(modules, weights)[0]
        text = module.read_text()
        found = list(changes(ast.parse(text)))
        if not found:
            continue
        node, other = choice.choice(found)
        after = f"({ast.unparse(other)})"
        lines = text.encode().splitlines(keepends=True)
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        mutated = b"".join([*lines[:first], head + after.encode() + tail, *lines[last + 1 :]]).decode()
        try:
            compile(mutated, str(module), "exec")
        except SyntaxError:  # an expression within a text, for which there is no place of its own
            continue
        yield Mutant(module.relative_to(folder), node.lineno, ast.unparse(node), after, mutated)
        count -= 1


def related_tests(folder: Path, module: Path) -> list[str]:
    """The files of tests that speak of a module or of its room, those that speak most of it first."""
    names = {module.stem, module.stem.rstrip("s"), module.parent.name} - {"base", "ftn_pytorch"}
    word = re.compile("|".join(rf"{re.escape(name)}" for name in sorted(names)))
    counts = {
        file: 100 * (module.stem.rstrip("s") in file.stem) + len(word.findall(file.read_text()))
        for file in sorted((folder / TESTS).glob("test_*.py"))
    }
    found = sorted((file for file in counts if counts[file]), key=lambda file: -counts[file])
    return [str(file.relative_to(folder)) for file in found[:MOST_FILES]]


def _passes(clone: Clone, files: list[str]) -> bool:
    words = (sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "-m", "not slow", *files)
    return clone.passes(Tests((), words))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for the clone; a temporary one by default")
    parser.add_argument(
        "--all", action="store_true", help="run all of tests/python where the related tests see nothing"
    )
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    chosen = parser.parse_args()
    survivors = 0
    with tempfile.TemporaryDirectory() as temporary:
        clone = Clone((chosen.work or Path(temporary) / "ftn_pytorch").absolute())
        clone.prepare({"all"})
        for mutant in mutants(clone.folder, chosen.seed, chosen.count):
            begin = time.monotonic()
            file = clone.folder / mutant.module
            text = file.read_text()
            try:
                file.write_text(mutant.text)
                survives = _passes(clone, related_tests(clone.folder, mutant.module))
                if survives and chosen.all:
                    survives = _passes(clone, [str(TESTS)])
            finally:
                file.write_text(text)
            survivors += survives
            print(
                json.dumps(
                    {
                        "verdict": "SURVIVED" if survives else "noticed",
                        "place": f"{mutant.module}:{mutant.line}",
                        "before": mutant.before[:160],
                        "after": mutant.after[:160],
                        "seconds": round(time.monotonic() - begin),
                    }
                ),
                flush=True,
            )
    print(f"{chosen.count} changes, {survivors} not noticed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
