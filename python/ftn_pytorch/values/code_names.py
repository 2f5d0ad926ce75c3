# SPDX-License-Identifier: MIT
"""Names that code objects mention."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A piece of code, and that of the functions and classes inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def names_in(code: CodeType, texts: bool = True) -> Iterator[str]:
    """Names that a piece of code mentions, also in ``texts``, from which getattr and its like may take them."""
    for each in codes_in(code):
        yield from each.co_names
        for constant in each.co_consts if texts else ():
            if isinstance(constant, str) and len(constant) < 100:
                yield from constant.split(".")


def named_by(code: CodeType, *instructions: str) -> list[str]:
    """Names that these instructions have in a piece of code, each once."""
    return sorted(
        {step.argval for each in codes_in(code) for step in dis.get_instructions(each) if step.opname in instructions}
    )


def may_import(code: CodeType, module: str) -> bool:
    """True where a piece of code imports a module, or one whose name is a text."""
    by_text = {name for each in codes_in(code) for name in each.co_names} & {"import_module", "__import__"}
    names = named_by(code, "IMPORT_NAME", "IMPORT_FROM")
    return bool(by_text) or module in names or module.rpartition(".")[2] in names


def globals_in(code: CodeType) -> list[str]:
    """Names that a piece of code looks up among the globals and builtins."""
    return named_by(code, "LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
