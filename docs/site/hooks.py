# SPDX-License-Identifier: MIT
"""What MkDocs needs to know about this repository.

Pages outside of docs/ belong to the site: the examples with their files, the benchmarks, SECURITY.md and others. Links
to them become links of the site. A link to another file leads to ``repo_url`` of mkdocs.yml, and is plain text without
that. Marks of the tests go. ``<!-- site: NAME -->`` is replaced by what is generated: the header, the Python names.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import header  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = ROOT / "build" / "docs" / "fortran"
OUTSIDE = [
    *(ROOT / name for name in ("SECURITY.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
    ROOT / "packaging" / "README.md",
    ROOT / "tests" / "hostlibs" / "results.md",
]
LANGUAGES = {".f90": "fortran", ".py": "python", ".txt": "cmake", ".cmake": "cmake"}
FORMULA = re.compile(r"(?<![\w`!])(\$\$?)([^$\s`][^$`\n]*)\1(?!\w)")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_config(config):
    """The header says which version the pages describe."""
    version = re.search(r'^#define FPT_VERSION "(.+)"', (ROOT / "src" / "ftn_pytorch.h").read_text(), re.MULTILINE)
    assert version
    config.site_name += f" {version[1]}"
    return config


# ---- files -------------------------------------------------------------------------------------------------------


def on_files(files: Files, config) -> Files:
    for page in OUTSIDE:
        name = page.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, content=page.read_text() + files_of_example(page)))
        for picture in [*page.parent.glob("*.svg"), *page.parent.glob("*.png")]:
            uri = picture.relative_to(ROOT).as_posix()
            if files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(picture)))
    if not GENERATED.is_dir():
        raise SystemExit(f"{GENERATED} is missing: docs/site/build.sh makes it")
    for page in sorted(GENERATED.glob("*.md")):
        files.append(File.generated(config, f"fortran/{page.name}", content=page.read_text()))
    return files


def files_of_example(readme: Path) -> str:
    """The programs and scripts of an example, to be read without a copy of the repository."""
    if readme.parent.parent != ROOT / "examples":
        return ""
    parts = ["\n## The files\n"]
    for file in sources(readme.parent):
        text = re.sub(r"^[!#] SPDX.*\n", "", file.read_text(), flags=re.MULTILINE)
        parts.append(f"### {file.name} {{ #{anchor(file)} data-search-exclude }}\n")
        parts.append(f"````{LANGUAGES[file.suffix]}\n{text}````\n")
    return "\n".join(parts)


def sources(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in LANGUAGES)


def anchor(file: Path) -> str:
    return "file-" + file.name.lower().replace(".", "-").replace("_", "-")


# ---- pages -------------------------------------------------------------------------------------------------------


def on_page_markdown(markdown: str, page, config, files: Files) -> str:
    uri = page.file.src_uri
    here = uri if (ROOT / uri).is_file() and not (DOCS / uri).is_file() else f"docs/{uri}"
    markdown = re.sub(r"^<!-- test: .* -->\n", "", markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^<!-- site: (\w+) -->$", lambda found: MADE[found[1]](), markdown, flags=re.MULTILINE)
    parts = re.split(r"(^(````?)[\s\S]*?^\2$)", markdown, flags=re.MULTILINE)
    # In turn: text, a block of code, what fences it.
    text = ""
    for place in range(0, len(parts), 3):
        text += LINK.sub(
            lambda found: linked(found, here, uri, files, config.repo_url), FORMULA.sub(formula, parts[place])
        )
        text += parts[place + 1] if place + 1 < len(parts) else ""
    return text


def formula(found: re.Match) -> str:
    """Browsers draw MathML by themselves."""
    if found[1] == "$$":
        return convert(found[2], display="block")
    return f"<span>{convert(found[2])}</span>"  # or a line that begins with it is a paragraph of its own


def on_post_page(output: str, page, config) -> str:
    """The one script that the theme would load from another server, for searching in files, is one of our own."""
    up = posixpath.relpath(".", posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}/site/worker.js")


def linked(found: re.Match, here: str, uri: str, files: Files, repository: str) -> str:
    """A link as the site has it."""
    picture, label, target = found.groups()
    path, hash_mark, fragment = target.partition("#")
    if re.match(r"\w+:", target) or not path:
        return found[0]
    there = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    file = ROOT / there
    if not file.exists():
        return found[0]  # of a page that is generated, or no link at all; else MkDocs says so
    if there == "README.md":
        there, hash_mark, fragment = "docs/index.md", "", ""
    elif file.is_dir():
        there += "/README.md"
    elif file.parent.parent == ROOT / "examples" and file.suffix in LANGUAGES:
        there, hash_mark, fragment = f"{posixpath.dirname(there)}/README.md", "#", anchor(file)
    if label == posixpath.basename(there) and file.suffix == ".md":  # the name of a page, where a forge shows files
        label = re.search(r"^# (.+)", file.read_text(), re.MULTILINE)[1]
    wanted = there.removeprefix("docs/")
    if files.get_file_from_path(wanted) is None:
        if picture:
            raise SystemExit(f"{here}: the picture {target} is not part of the site")
        return f"[{label}]({repository.rstrip('/')}/blob/main/{there}{hash_mark}{fragment})" if repository else label
    return f"{picture}[{label}]({posixpath.relpath(wanted, posixpath.dirname(uri) or '.')}{hash_mark}{fragment})"


# ---- what is generated -------------------------------------------------------------------------------------------


def names_of(package: str) -> dict[str, str]:
    """Public names of a package, and the module in which each is defined: its table _PLACES, which is not imported."""
    folder = ROOT / "python" / package.replace(".", "/")
    for statement in ast.parse((folder / "__init__.py").read_text()).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "_PLACES":
            return {name: f"{package}.{place}.{name}" for name, place in ast.literal_eval(statement.value).items()}
    raise SystemExit(f"{package} has no table _PLACES")


def python_names() -> str:
    lines = []
    for package in ("ftn_pytorch", "ftn_pytorch.kit"):
        lines.append(f"## from {package} import ...\n")
        places = sorted(names_of(package).values(), key=lambda place: place.rpartition(".")[2].lower())
        lines += [f"::: {place}\n" for place in places]
    return "\n".join(lines)


MADE = {
    "header": lambda: header.page((ROOT / "src" / "ftn_pytorch.h").read_text()),
    "python": python_names,
}
