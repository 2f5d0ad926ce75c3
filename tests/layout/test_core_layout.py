# SPDX-License-Identifier: MIT
"""The core keeps to its layers, to its exported names and to its one header."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
HEADER = (SRC / "ftn_pytorch.h").read_text()

# A file includes files of its own layer and of those below, never of those above.
LAYERS = [
    {"c_api", "c_api_data", "embedded"},
    {"guard", "deliver", "backend"},
    {"module", "call", "direct_module"},
    {"observed_function"},
    {"cache", "convert", "tensor", "direct_results"},
    {"framework"},
    {"image_self_test", "torch_access", "torch_symbols"},
    {"interpreter", "dlpack", "tensor_image", "fit", "direct_plugin", "direct_options"},
    {"crash"},
    {"arg", "direct_value", "environment", "pyref", "result_names"},
    {"copy", "handle", "observe"},
    {"log", "profile", "trace"},
    {"archive", "array", "device", "error", "fpenv", "rank", "replaced_file", "torch_location"},
    {"fpt_direct"},
    {"ftn_pytorch"},
]
LEVEL = {stem: level for level, stems in enumerate(reversed(LAYERS)) for stem in stems}
DIRECT = SRC / "direct"
PLUGIN = sorted(path for path in DIRECT.iterdir() if path.suffix in (".cpp", ".hpp"))
# What the plug-in takes of the core: nothing that knows Python or holds handles.
SHARED = {"arg", "array", "copy", "device", "direct_value", "error", "replaced_file"}
SOURCES = sorted(path for path in SRC.iterdir() if path.suffix in (".cpp", ".hpp"))


def functions_of_the_header() -> list[str]:
    return re.findall(r"^FPT_API [^(]*?(\w+)\(", HEADER, re.MULTILINE)


def table_of_the_architecture() -> dict[str, bool]:
    """File names of docs/architecture.md and whether they know Python."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = {}
    for names, answer in re.findall(r"^\| (`.*?) \|.*\| (yes|no) \|$", text, re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", names):
            stem, *suffixes = name.split(".", 1)[0], *re.findall(r"\.\w+", name)
            table |= {stem + suffix: answer == "yes" for suffix in suffixes}
    return table


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_includes_point_downwards(source: Path) -> None:
    assert source.stem in LEVEL, "in no layer"
    for included in re.findall(r'^#include "(.+)"', source.read_text(), re.MULTILINE):
        assert LEVEL[Path(included).stem] <= LEVEL[source.stem], f"{source.name} includes {included}"


def test_architecture_lists_the_files() -> None:
    files = {path.name for path in [*SOURCES, *PLUGIN]} | {"ftn_pytorch.h", "fpt_direct.h"}
    assert set(table_of_the_architecture()) == files


@pytest.mark.parametrize("name", [name for name, knows in table_of_the_architecture().items() if not knows])
def test_python_is_known_where_the_architecture_says(name: str) -> None:
    assert not re.search(r"<Python\.h>|<pybind11/|\bPy[A-Z]?[a-z]*_[A-Z]", (SRC / name if (SRC / name).exists() else DIRECT / name).read_text())


@pytest.mark.parametrize("source", PLUGIN, ids=lambda path: path.name)
def test_plugin_takes_little_of_the_core(source: Path) -> None:
    own = {path.name for path in PLUGIN} | {"fpt_direct.h"}
    for included in re.findall(r'^#include "(.+)"', source.read_text(), re.MULTILINE):
        assert included in own or Path(included).stem in SHARED, f"{source.name} includes {included}"


def test_both_sides_know_the_same_launchers() -> None:
    sides = [(SRC / "rank.cpp").read_text(), (ROOT / "python" / "ftn_pytorch" / "process.py").read_text()]
    pairs = [re.findall(r'^\s+[{(]"(\w+)", "(\w+_(?:RANK|PROCID))"[)}],$', text, re.MULTILINE) for text in sides]
    assert len(pairs[0]) == 4 and pairs[0] == pairs[1]


def test_core_does_not_need_torch() -> None:
    assert not [path.name for path in SOURCES if re.search(r"#include <(torch|ATen|c10)/", path.read_text())]


def test_plugin_exports_one_function(build_dir: Path) -> None:
    for library in build_dir.glob("lib*/libftn_pytorch_direct.so"):
        lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        strong = [line.split()[-1] for line in lines.splitlines() if line.split()[-2] == "T"]
        assert strong == ["fpt_direct_table_get"]


def test_one_file_starts_python() -> None:
    assert [path.name for path in SOURCES if "Py_Initialize" in path.read_text()] == ["interpreter.cpp"]


def test_exports_are_the_functions_of_the_header(build_dir: Path) -> None:
    library = next(build_dir.glob("lib*/libftn_pytorch.so"))
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    assert sorted(line.split()[-1] for line in lines.splitlines()) == sorted(functions_of_the_header())


@pytest.mark.parametrize("language", ["c11", "c++17"])
def test_header_stands_alone(language: str, tmp_path: Path) -> None:
    compiler, suffix = ("gcc", ".c") if language == "c11" else ("g++", ".cpp")
    source = tmp_path / f"alone{suffix}"
    source.write_text('#include "ftn_pytorch.h"\n_Static_assert(sizeof(fpt_arg) == 256, "");\n'.replace(
        "_Static_assert", "static_assert" if suffix == ".cpp" else "_Static_assert"))
    flags = [f"-std={language}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{SRC}"]
    subprocess.run([compiler, *flags, source], check=True)
