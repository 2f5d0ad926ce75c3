# SPDX-License-Identifier: MIT
"""The one reader of ftn_pytorch.h, for what is generated from it: fpt_c.f90, the codes of fpt_codes.f90, and names of
statuses in C++, which ``python interface.py`` prints. Needs nothing but Python.

What the header says in words counts, too: an argument of which its comment says that it may be NULL is optional in
Fortran, as are lists with a count, and comments of constants are those of the generated names.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

HEADER = (Path(__file__).parent / "ftn_pytorch.h").read_text()
COMMENT = r"/\*\*(?:(?!\*/)[\s\S])*\*/"
FOR_PYTHON = "for the Python package"
"""Functions that no program calls."""


@dataclass(frozen=True)
class Constant:
    name: str
    value: int
    comment: str


@dataclass(frozen=True)
class Group:
    """Constants that belong together."""

    comment: str
    constants: list[Constant]


@dataclass(frozen=True)
class Dummy:
    """An argument in Fortran."""

    name: str
    declaration: str
    shape: str


@dataclass(frozen=True)
class Function:
    name: str
    comment: list[str]
    """Its first sentence, in lines."""
    dummies: list[Dummy]
    result: str
    """Declaration of what it returns, empty for a subroutine."""
    result_name: str

    @property
    def imports(self) -> str:
        """Names of the module that the declarations use."""
        used = " ".join([self.result, *(dummy.declaration for dummy in self.dummies)])
        return ", ".join(sorted(set(re.findall(r"\b(?:c_\w+|torch_arg)\b", used))))


def plain(comment: str) -> str:
    """A comment of C as one line, in which constants are numbers."""
    text = " ".join(re.sub(r"^/\*+<?|\*/$|^ *\* ?", "", comment.strip(), flags=re.MULTILINE).split())
    return re.sub(r"\bFPT_MAX_\w+", lambda found: str(limits[found[0]]), text)


def first_sentence(comment: str) -> str:
    text = plain(comment).partition("@")[0].strip()
    sentence = re.match(r".*?[^.]\.(?= |$)|.*", text)
    return sentence[0].removesuffix(".") if sentence else ""


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


limits = {name: int(value) for name, value in re.findall(r"^#define (FPT_MAX_\w+) (\d+)$", HEADER, re.MULTILINE)}
handles = set(re.findall(r"^typedef int64_t (\w+);$", HEADER, re.MULTILINE))
pointers_to_functions = set(re.findall(r"^typedef .*\(\*(\w+)\)\(", HEADER, re.MULTILINE))
VALUES = {
    "int32_t": "integer(c_int32_t)",
    "int64_t": "integer(c_int64_t)",
    "double": "real(c_double)",
    "fpt_status": "integer(c_int32_t)",
    **dict.fromkeys(handles, "integer(c_int64_t)"),
}


def dummy(parameter: str, may_be_null: bool) -> Dummy:
    """An argument as Fortran declares it. What C may write has intent(inout): on failure it keeps its value.

    A torch_arg has the target attribute and no intent: it holds an address that the compiler cannot see.
    """
    if found := re.search(r"\(\*(\w+)\)\(", parameter):
        return Dummy(found[1], "type(c_funptr), value", "")
    found = re.fullmatch(r"(const )?(\w+) (\**)(\w+)(\[\w*\])?", parameter)
    is_const, kind, stars, name, bounds = found.groups() if found else ("", "", "", "", "")
    is_by_reference = len(stars) + bool(bounds) == 1
    is_list = kind == "fpt_arg" and bool(bounds)
    attribute = ", intent(in)" if is_const else ", intent(inout)"
    optional = ", optional" if may_be_null or is_list else ""
    shape = "(*)" if bounds else ""
    if kind in pointers_to_functions:
        declaration = "type(c_funptr), value"
    elif kind == "void" and stars == "*":
        declaration = "type(c_ptr), value"
    elif kind in ("void", "char") and stars == "**":
        declaration = "type(c_ptr), intent(inout)"
    elif kind == "char" and is_by_reference:
        declaration, shape = f"character(kind=c_char){attribute}", "(*)"
    elif kind == "fpt_arg" and is_by_reference:
        declaration = f"type(torch_arg){optional}, target"
    elif kind in VALUES and is_by_reference:
        declaration = f"{VALUES[kind]}{attribute}{optional}"
    elif kind in VALUES and not stars:
        declaration = f"{VALUES[kind]}, value"
    else:
        raise ValueError(f"ftn_pytorch.h: no argument of Fortran is known for {parameter!r}")
    return Dummy(name, declaration, shape)


def function(result: str, name: str, parameters: str, comment: str) -> Function:
    about = dict(re.findall(r"@param +(\w+) +([^@]*)", plain(comment)))
    parts = re.split(r",\s*(?![^()]*\))", " ".join(parameters.split()))
    dummies = [dummy(each, "NULL" in about.get(re.findall(r"\w+", each)[-1], "")) for each in parts if each != "void"]
    returned = "" if result == "void" else "type(c_ptr)" if "*" in result else VALUES[result]
    result_name = "status" if result == "fpt_status" else "value"
    return Function(name, textwrap.wrap(first_sentence(comment), 110), dummies, returned, result_name)


def functions_in(text: str) -> list[Function]:
    found, comment = [], ""
    for said, result, name, parameters in re.findall(
        rf"^(?:({COMMENT})\n)?FPT_(?:API (.*?)|STATUS )(\w+)\(([^;]*)\);", text, re.MULTILINE
    ):
        comment = said or comment  # of two functions below one comment
        found.append(function(result.strip() or "fpt_status", name, parameters, comment))
    return found


def groups_in(text: str) -> list[Group]:
    groups = []
    for comment, body in re.findall(rf"^({COMMENT})\n(?:typedef .*\n)?enum \{{([^}}]*)\}};$", text, re.MULTILINE):
        listed = re.findall(r"(\w+) = (\d+),? *(/\*\*<.*?\*/)?", body)
        constants = [Constant(name, int(value), capital(plain(said))) for name, value, said in listed]
        groups.append(Group(first_sentence(comment), constants))
    return groups


all_groups = groups_in(HEADER)
statuses = next(group.constants for group in all_groups if group.constants[0].name == "FPT_OK")
groups = [group for group in all_groups if group.constants is not statuses]
"""Of all other constants."""
_opening, *_parts = re.split(r"^/\* -{4} (.+?) -+ \*/$", HEADER, flags=re.MULTILINE)
sections = {
    name: functions_in(text) for name, text in zip(_parts[::2], _parts[1::2], strict=True) if name != FOR_PYTHON
}
"""Functions by the headings above them."""


_dtypes = (Path(__file__).parent / "arrays" / "dtype.hpp").read_text()
dtype_names = re.findall(r'^ +\{\d+, "(\w+)"', _dtypes, re.MULTILINE)
"""Of element types, in the order of their constants."""


def fortran_name(status: Constant) -> str:
    """FPT_ERR_SHAPE as programs know it."""
    return status.name.replace("FPT_", "FTN_PYTORCH_", 1)


if __name__ == "__main__":
    for each in statuses:
        print(f'{{{each.name}, "{fortran_name(each)}"}},')
