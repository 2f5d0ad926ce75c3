# SPDX-License-Identifier: MIT
"""The C header as Markdown: a section for each of its own, a heading for each function."""

from __future__ import annotations

import re

LEFT_OUT = {"for the Python package"}


def escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return re.sub(r"([*_\[\]\\])", r"\\\1", text)


def body_of(comment: str) -> list[str]:
    """Lines of a comment without what makes it one."""
    text = re.sub(r"^/\*\*?|\*/$", "", comment.strip())
    return [re.sub(r"^ ?", "", re.sub(r"^\s*\*", "", line)) for line in text.strip("\n").splitlines()]


def described(comment: str) -> str:
    """Paragraphs, a table of the parameters, what is returned."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in body_of(comment):
        if found := re.match(r"@(param +\w+|return) +(.*)", line):
            parts.append((found[1], [found[2]]))
        elif parts[-1][0] and (not line.strip() or re.match(r"FPT_", line)):
            parts.append(("", [line]))
        else:
            parts[-1][1].append(line)
    paragraphs, rows, returned = [], [], ""
    for kind, lines in parts:
        text = escaped(re.sub(r" *\n *", " ", "\n".join(line.strip() for line in lines).replace("\n\n", "\0")))
        if kind.startswith("param"):
            rows.append(f"| `{kind.split()[1]}` | {text} |")
        elif kind:
            returned = f"Returns {text}"
        else:
            paragraphs += [part.strip() for part in text.split("\0") if part.strip()]
    table = ["\n".join(["| parameter | |", "|---|---|", *rows])] if rows else []
    return "\n\n".join(part for part in [*paragraphs[:1], *table, returned, *paragraphs[1:]] if part)


def entries(text: str) -> list[tuple[str, str]]:
    """Comments with the declarations below them."""
    return re.findall(r"^(/\*\*[\s\S]*?\*/)\n((?:(?!/\*\*).+\n)+)", text, re.MULTILINE)


def page(header: str) -> str:
    opening, *sections = re.split(r"^/\* -{4} (.+?) -+ \*/$", header, flags=re.MULTILINE)
    contract = re.search(r"^/\*\*.*?\*/", opening, re.MULTILINE | re.DOTALL)
    assert contract
    lines = ["## Rules", described(contract[0]), "## Constants and types"]
    for comment, declaration in entries(opening[contract.end() :]):  # macros of the header itself have none
        lines += [described(comment), f"```c\n{declaration.rstrip()}\n```"]
    for name, text in zip(sections[::2], sections[1::2]):
        if name in LEFT_OUT:
            continue
        lines.append(f"## {name[0].upper()}{name[1:]}")
        for comment, declaration in entries(text):
            names = re.findall(r"\b(fpt_\w+)\)?\(", declaration)
            title = ", ".join(dict.fromkeys(names))
            code = declaration.replace("FPT_API ", "").replace("FPT_STATUS ", "fpt_status ")
            lines += [f"### {title}" if title else "", f"```c\n{code.rstrip()}\n```", described(comment)]
    return "\n\n".join(line for line in lines if line) + "\n"
