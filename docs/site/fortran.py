# SPDX-License-Identifier: MIT
"""Pages of the public Fortran names, in Markdown: fortran.py SOURCES PAGES

FORD reads the generated sources: what `use ftn_pytorch` makes public, with all comments. The pages are written here and
not by FORD, whose own load style sheets and scripts from other servers, and are not found by the search of the site.
A public name without a comment is an error.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ford.fortran_project import Project
from ford.settings import ProjectSettings

FORTRAN = Path(__file__).resolve().parents[2] / "fortran"
sys.path.insert(0, str(FORTRAN))
from expand import expanded  # noqa: E402

# The same module for compilers without dimension(..), and what only other modules use.
LEFT_OUT = {"fpt_arg_ranks", "fpt_append", "torch_ftn"}
STATUS = {"stat", "errmsg"}


# ---- reading -----------------------------------------------------------------------------------------------------


def sources(folder: Path) -> None:
    """The Fortran files as the build makes them from the templates."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in sorted(FORTRAN.glob("fpt_*.f*")) + [FORTRAN / "ftn_pytorch.f90"]:
        there = folder / f"{file.stem}.f90"
        text = file.read_text()
        if file.stem in LEFT_OUT or file.suffix == ".fypp" and not re.search(r"^module ", text, re.MULTILINE):
            continue
        if file.suffix == ".fypp":
            text = expanded(file)
        # FORD takes "name: text" at the beginning of a comment for an entry of its own.
        there.write_text(re.sub(r"^((?!\s*!>).*\n)(\s*)(!> \w+:)", r"\1\2!>\n\2\3", text, flags=re.MULTILINE))


def facade(folder: Path) -> tuple[object, list]:
    """The module ftn_pytorch as FORD understands it, and all modules."""
    settings = ProjectSettings(
        project="ftn_pytorch",
        src_dir=[folder],
        preprocess=False,
        predocmark=">",
        docmark="!",
        display=["public", "private"],
        quiet=True,
    )
    settings.normalise_paths(folder)
    project = Project(settings)
    project.correlate()
    (module,) = (each for each in project.modules if each.name == "ftn_pytorch")
    return module, project.modules


# ---- text --------------------------------------------------------------------------------------------------------


def plain(text: object) -> str:
    """FORD's text without its links, kinds as one writes them."""
    text = re.sub(r"<[^>]+>", "", str(text))
    return text.replace("(len=", "(").replace("(kind=", "(")


def escaped(text: str) -> str:
    """As Markdown, where only what stands between backticks is left as it is."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_\[\]\\])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{escaped(text[1:])}." if text else ""


def comment(item: object) -> str:
    return " ".join(line.strip() for line in item.doc_list if line.strip())


def declaration(argument: object) -> str:
    shape = [f"dimension{argument.dimension}"] if argument.dimension else []
    intent = [f"intent({argument.intent})"] if argument.intent else []
    optional = ["optional"] if argument.optional else []
    return ", ".join([plain(argument.full_type), *shape, *argument.attribs, *intent, *optional])


def either(declarations: Iterable[str]) -> str:
    """One declaration for those of all specifics of a generic."""
    found = list(dict.fromkeys(declarations))
    if len(found) == 1:
        return f"`{found[0]}`"
    ranks = sorted({part.count(":") for part in found if "(:" in part})
    rank = f", rank {ranks[0]} to {ranks[-1]}" if len(ranks) > 1 else ""
    kinds = list(dict.fromkeys(re.sub(r", dimension\([:,]+\)", "" if rank else r"\g<0>", part) for part in found))
    attributes = kinds[0].partition(", ")[2].replace("dimension(..)", "any rank")
    kind = f"any kind, {attributes}".rstrip(", ") if len(kinds) > 4 else ""
    return (kind or " or ".join(f"`{part}`" for part in kinds)) + rank


def call(procedure: object, name: str, skip: object) -> str:
    """How a statement calls it, optional arguments in brackets."""
    words = ""
    for argument in procedure.args:
        if argument is not skip:
            comma = ", " if words else ""
            words += f" [{comma}{argument.name}]" if argument.optional else f"{comma}{argument.name}"
    statement = f"{name}({words.strip()})"
    return statement if procedure.proctype == "Function" else f"call {statement}"


def forms(procedures: Iterable[object], name: str, passed: bool, said: Iterable[str] = ()) -> Iterator[str]:
    """Each way to call a name: those that differ in kinds and ranks only are one. `said`: what is not repeated."""
    groups: dict[tuple, list] = {}
    for procedure in procedures:
        key = (procedure.proctype, comment(procedure), *((a.name, a.optional, comment(a)) for a in procedure.args))
        groups.setdefault(key, []).append(procedure)
    for group in groups.values():
        first = group[0]
        skip = first.args[0] if passed else None
        yield f"```fortran\n{call(first, name, skip)}\n```"
        if comment(first).lower() not in said:
            yield sentence(comment(first))
        rows = []
        for place, argument in enumerate(first.args):
            if argument is skip or argument.name in STATUS:
                continue
            if not comment(argument):
                raise SystemExit(f"{first.name}: the argument {argument.name} has no comment")
            kinds = either(declaration(other.args[place]) for other in group)
            rows.append(f"| `{argument.name}` | {kinds} | {escaped(comment(argument))} |")
        if rows:
            yield "\n".join(["| argument | declared as | |", "|---|---|---|", *rows])
        if first.proctype == "Function":
            yield f"Result: {either(declaration(other.retvar) for other in group)}"


# ---- pages -------------------------------------------------------------------------------------------------------


def specifics(bound: object) -> list:
    """The procedures behind a type-bound name."""
    found = []
    for each in bound.bindings:
        found += specifics(each) if hasattr(each, "bindings") else [each]
    return found


def type_page(kind: object) -> str:
    lines = [f"# {kind.name}", sentence(comment(kind))]
    if not comment(kind):
        raise SystemExit(f"{kind.name} has no comment")
    together: dict[str, list] = {}
    for bound in sorted(kind.boundprocs, key=lambda bound: bound.parent.name != kind.name):  # its own come first
        if bound.permission == "public" and not re.match(r"operator|assignment", bound.name):
            together.setdefault(bound.name, []).append(bound)
    variable = kind.name.removeprefix("torch_")
    for name, parts in together.items():
        behind = [procedure for part in parts for procedure in specifics(part)]
        said = re.sub(rf"^({name}\([^)]*\)(, |: |$))+", "", " ".join(map(comment, parts)).strip())
        if not said and not any(map(comment, behind)):
            raise SystemExit(f"{kind.name}%{name} has no comment")
        lines.append(f"## {name}")
        if len(behind) > 1 and not any(comment(each).lower().startswith(said.lower()) for each in behind):
            lines.append(sentence(said))
        lines += forms(behind, f"{variable}%{name}", passed=True)
    if any(re.match(r"operator|assignment", bound.name) for bound in kind.boundprocs):
        lines.append("Operators and assignment: [procedures](procedures.md#operators).")
    return "\n\n".join(line for line in lines if line) + "\n"


def interfaces(name: str, modules: list) -> list:
    """All that a name stands for: generic interfaces of several modules add up."""
    found = [
        each for module in modules for each in module.interfaces if each.name == name and each.permission == "public"
    ]
    return found or [p for m in modules for p in m.functions + m.subroutines if p.name == name]


def behind(item: object) -> list:
    if hasattr(item, "args"):
        return [item]
    referred = [each.procedure for each in item.modprocs if each.procedure]
    return [*item.functions, *item.subroutines, *referred]


def procedures_page(names: list[str], module: object, modules: list) -> str:
    lines = ["# Procedures", "Procedures that belong to no type. Functions of torch have [a page](functions.md)."]
    for name in names:
        items = interfaces(name, modules)
        lines.append(f"## {name}")
        said = {comment(item).lower(): comment(item) for item in items if not hasattr(item, "args")}
        lines += [sentence(text) for text in list(said.values())[:1]]
        lines += forms([each for item in items for each in behind(item)], name, False, list(said)[:1])
    flags = {name: item for name, item in module.pub_vars.items() if name.startswith("torch_")}
    lines += ["## Flags", *(f"`{declaration(item)}, parameter :: {name}`" for name, item in flags.items())]
    lines += [sentence(comment(item)) for item in flags.values()]
    lines.append("## Interfaces of your own procedures")
    for name, item in module.pub_absints.items():
        lines += [f"### {name}", *forms([item.procedure], name, passed=False)]
    rows = ["| operator | |", "|---|---|"]
    for name in module.pub_procs:
        if re.match(r"operator|assignment|matmul", name):
            said = next((comment(item) for item in interfaces(name, modules) if comment(item)), "")
            rows.append(f"| `{name}` | {escaped(said)} |")
    lines += ["## Operators", "\n".join(rows)]
    return "\n\n".join(line for line in lines if line) + "\n"


def functions_page(names: list[str], modules: list) -> str:
    rows = ["| function | | arguments |", "|---|---|---|"]
    for name in names:
        items = interfaces(name, modules)
        all_forms = [each for item in items for each in behind(item)]
        calls = list(dict.fromkeys(call(each, name, None) for each in all_forms))
        said = dict.fromkeys(comment(each) for each in [*items, *all_forms] if comment(each))
        arguments = dict.fromkeys(
            f"`{each.name}`: {escaped(comment(each))}"
            for form in all_forms
            for each in form.args
            if each.name != "input"
        )
        if not said:
            raise SystemExit(f"{name} has no comment")
        statements = "<br>".join(f"`{each}`" for each in calls)
        rows.append(f"| {statements} | {escaped('. '.join(said))} | {'<br>'.join(arguments)} |")
    text = (
        "Each gives a `torch_tensor`. `input` is the first tensor.\n"
        "[torch_call](procedures.md#torch_call) calls all other functions of torch.\n"
    )
    return "\n".join(["# Functions of torch", "", text, *rows, ""])


def constants_page(module: object) -> str:
    rows = ["| value | name | |", "|---|---|---|"]
    for item in module.pub_vars.values():
        if item.name.startswith("FTN_PYTORCH_"):
            rows.append(f"| {item.initial} | `{item.name}` | {escaped(comment(item))} |")
    return "\n".join(["# Status codes", "", "[errors.md](../errors.md) says what to do about them.", "", *rows, ""])


def index_page(module: object, types: list, procedures: list[str]) -> str:
    manual = "\n".join(module.doc_list)  # code stands three blanks to the right of the text, and one behind "!>"
    rows = ["| type | |", "|---|---|"]
    rows += [f"| [`{each.name}`]({each.name}.md) | {escaped(comment(each))} |" for each in types]
    links = " · ".join(f"[`{name}`](procedures.md#{name.lower()})" for name in procedures)
    return f"""# Fortran names

All public names of `use ftn_pytorch`, from the comments of the sources. [Fortran interface](../fortran-api.md) has
the rules and the meaning.

{chr(10).join(rows)}

Procedures: {links}.

Also: [functions of torch](functions.md), [operators](procedures.md#operators), [status codes](constants.md).

Optional arguments are in brackets. `stat` receives zero or a status code; without it a failure stops the program.
`errmsg` receives the reason of a failure. They are not repeated in the tables. "Any kind" stands for `real` and
`complex` of single and double precision, `integer` of 1, 2, 4 and 8 bytes, and `logical(c_bool)`.

## The module

{manual}
"""


def main(work: Path, pages: Path) -> None:
    sources(work)
    module, modules = facade(work)
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    types = list(module.pub_types.values())
    names = {name: item for name, item in module.pub_procs.items() if re.match(r"\w+$", name) and name != "matmul"}
    functions = [name for name, item in names.items() if item.parent.name == "fpt_functions"]
    procedures = [name for name in names if name not in functions]
    for each in types:
        (pages / f"{each.name}.md").write_text(type_page(each))
    (pages / "procedures.md").write_text(procedures_page(procedures, module, modules))
    (pages / "functions.md").write_text(functions_page(functions, modules))
    (pages / "constants.md").write_text(constants_page(module))
    (pages / "index.md").write_text(index_page(module, types, procedures))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
