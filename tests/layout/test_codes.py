# SPDX-License-Identifier: MIT
"""Codes and words of recordings that stand in two languages are the same in both."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC, PACKAGE = ROOT / "src", ROOT / "python" / "ftn_pytorch"
READER = SRC / "ftr"


def codes_in(header: str, owner: str, name: str) -> list[str]:
    """Names of an enumeration in a struct, in their order."""
    text = (SRC / header).read_text().partition(f"struct {owner} {{")[2]
    listed = re.search(rf"enum class {name} : uint8_t {{(.*?)}};", text, re.DOTALL)[1]
    return re.findall(r"\w+", re.sub("//.*", "", listed))


def numbered_in(module: str, first: str) -> list[str]:
    """Names that a module numbers in one assignment, ``FIRST, SECOND = range(2)``."""
    for node in ast.parse((PACKAGE / module).read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [each.id for each in node.targets[0].elts]
            if names[0] == first:
                assert ast.unparse(node.value) == f"range({len(names)})"
                return [each.lower() for each in names]
    raise AssertionError(f"{module} numbers no {first}")


def words_in(path: Path, pattern: str) -> set[str]:
    return set(re.findall(pattern, path.read_text()))


def function_of(module: str, name: str) -> ast.FunctionDef:
    found = ast.walk(ast.parse((PACKAGE / module).read_text()))
    return next(node for node in found if isinstance(node, ast.FunctionDef) and node.name == name)


def test_bindings() -> None:
    codes = codes_in("recording/validity.hpp", "Binding", "Kind")
    assert [each.removesuffix("_of") for each in codes] == numbered_in("recording/binding.py", "ITEM")


def test_formulas_and_branches() -> None:
    module = "recording/traced_numbers.py"
    assert codes_in("ftr/tape.hpp", "Formula", "Code") == numbered_in(module, "NUMBER")
    assert codes_in("ftr/tape.hpp", "Branch", "Code") == numbered_in(module, "LESS")


def test_fields_of_a_tape() -> None:
    """What C++ asks a tape for, it has."""
    asked = words_in(SRC / "recording" / "module.cpp", r'tape\.attr\("(\w+)"\)')
    tree = ast.parse((PACKAGE / "recording" / "tape.py").read_text())
    tape = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tape")
    fields = {node.target.id for node in tape.body if isinstance(node, ast.AnnAssign)}
    assert len(asked) > 10 and asked <= fields | {node.name for node in tape.body if isinstance(node, ast.FunctionDef)}


def test_words_of_arguments() -> None:
    """Of a tape in memory, and of one in a file: all kinds of arguments that a tape of C++ has."""
    kinds = set(codes_in("ftr/tape.hpp", "Argument", "Kind"))
    of_files = {"size", "real", "fraction", "sizes"}
    described = ast.unparse(function_of("recording/tape.py", "_described"))
    assert {each for each in kinds if f"'{each}'" in described} == kinds - of_files
    read = words_in(READER / "saved_argument.cpp", r'kind == "(\w+)"')
    written = set(re.findall(r"'(\w+)'", ast.unparse(function_of("saved/portable.py", "_argument"))))
    tagged = words_in(PACKAGE / "saved" / "portable.py", r'torch\.\w+: "(\w+)"')
    merged = words_in(PACKAGE / "saved" / "any_batch.py", r'"(\w+)", \*self\._whole|return "(\w+)", ')
    assert of_files <= {word for pair in merged for word in pair}
    assert read == (kinds - {"waits"}) | tagged | {"dtype", "complex"} and written & kinds < read | {"waits"}


def test_entries_of_a_recording_in_a_file() -> None:
    read = words_in(READER / "saved_tape.cpp", r'\b(?:entry|items)\("(\w+)"\)')
    body = function_of("saved/portable.py", "portable").body
    made = next(node.value for node in body if isinstance(node, ast.Return))
    assert read == {key.value for key in made.keys} | {"code"}  # which saved/compiled.py adds


def test_operators_that_no_file_may_call() -> None:
    text = (READER / "named_operator.cpp").read_text()
    listed = re.search(r"constexpr std::array refused = {(.*?)};", text)[1]
    written = re.search(r"^REFUSED = \((.*?)\)", (PACKAGE / "saved" / "portable.py").read_text(), re.M)[1]
    overload = re.search(r'name == "([\w:]+)" && overload == "(\w+)"', text)
    assert re.findall('"(.*?)"', written) == [*re.findall('"(.*?)"', listed), ".".join(overload.groups())]


def test_version_of_recordings_in_files() -> None:
    written = re.search(r"^FORMAT = (\d+)", (PACKAGE / "saved" / "writing.py").read_text(), re.M)[1]
    assert f"format_of_recordings = {written};" in (READER / "program.cpp").read_text()
