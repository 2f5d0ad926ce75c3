# SPDX-License-Identifier: MIT
"""What the libraries export: functions of the header, and C++ that another library of the build takes."""

import re
import subprocess
from pathlib import Path

import pytest
from test_core_layout import SRC, functions_of_the_header

CPP = re.compile(r"fpt::|(?:typeinfo|typeinfo name|vtable) for fpt::")


def names_of(library: Path, which: str) -> set[str]:
    """Of the dynamic symbols, as C++ writes them: a constructor has two symbols and one name."""
    lines = subprocess.run(["nm", "-DC", which, library], check=True, capture_output=True, text=True).stdout
    symbols = re.findall(r"^[0-9a-f ]+ (\w) (.+?)(?:@.*)?$", lines, re.MULTILINE)
    return {name for kind, name in symbols if kind != "A"}  # the version itself is absolute


def built(build_dir: Path) -> tuple[dict[str, Path], list[Path]]:
    """The libraries that others are linked with, and those others, programs of tests included. They are all there where
    libtorch was."""
    linked = {name: build_dir / "lib" / f"lib{name}.so" for name in ("ftn_pytorch", "ftn_pytorch_direct")}
    others = [*build_dir.glob("lib*/libftn_pytorch_*.so"), *build_dir.glob("libexec/ftn_pytorch/*")]
    others += [test for test in build_dir.glob("tests/cpp/test_*") if not test.suffix and test.is_file()]
    if not any("torchscript" in other.name for other in others):
        pytest.skip("a build without the direct path")
    return linked, others


@pytest.mark.built
@pytest.mark.parametrize("library", ["ftn_pytorch", "ftn_pytorch_direct"])
def test_what_is_exported_is_taken(build_dir: Path, library: str) -> None:
    """A class with virtual functions is an interface as a whole: calls of all members, exceptions and casts cross."""
    linked, others = built(build_dir)
    exported = {name for name in names_of(linked[library], "--defined-only") if CPP.match(name)}
    taken = set().union(*(names_of(other, "--undefined-only") for other in others))
    interfaces = [name.removeprefix("typeinfo for ") for name in exported if name.startswith("typeinfo for ")]
    of_interfaces = {
        name for name in exported for each in interfaces if re.match(rf"(?:.* for )?{re.escape(each)}(?:::|$)", name)
    }
    assert exported & taken
    # not compiled without CUDA, and with a newer torch it asks less
    graphs = set(re.findall(r"\b\w+(?=\()", (SRC / "plugin/recording/device_owner.cpp").read_text()))
    of_graphs = {name for name in exported if re.sub(r"\(.*", "", name).rpartition("::")[2] in graphs}
    unused = exported - taken - of_interfaces - of_graphs
    assert not unused, "FPT_API in a header, and nobody outside of the library uses it"


@pytest.mark.built
def test_what_is_taken_is_exported(build_dir: Path) -> None:
    """An opened library fails where that is not so, and only when it is opened."""
    linked, others = built(build_dir)
    exported = set().union(*(names_of(library, "--defined-only") for library in linked.values()))
    taken = {name for other in others for name in names_of(other, "--undefined-only") if CPP.match(name)}
    assert taken
    missing = taken - exported
    assert not missing, "declared without FPT_API"


@pytest.mark.built
@pytest.mark.parametrize(
    "library, names",
    [
        ("libftn_pytorch.so", functions_of_the_header()),
        ("libftn_pytorch_direct.so", ["fpt_saved_modules_get"]),
        ("libftn_pytorch_torchscript.so", []),
        ("libftn_pytorch_python*.so", []),
        ("_ftn_pytorch_recording.*.so", ["PyInit__ftn_pytorch_recording"]),
    ],
)
def test_everything_else_is_of_c(build_dir: Path, library: str, names: list[str]) -> None:
    for found in build_dir.glob(f"lib*/{library}"):
        exported = names_of(found, "--defined-only")
        if "_direct." in library or library == "libftn_pytorch.so":
            exported = {name for name in exported if not CPP.match(name)}
        assert sorted(exported) == sorted(names)


@pytest.mark.parametrize("exports, names", [("exports.map", set()), ("exports_linked.map", {"fpt_saved_modules_get"})])
def test_exports_have_nothing_of_a_static_standard_library(exports: str, names: set[str], tmp_path: Path) -> None:
    source, library = tmp_path / "table.cpp", tmp_path / "table.so"
    source.write_text(
        '#include <iostream>\n#include <vector>\nextern "C" const void* fpt_saved_modules_get() {\n'
        "  static std::vector<int> numbers(3);\n  std::cout << numbers.size();\n  return &numbers;\n}\n"
    )
    link = ["-shared", "-fPIC", "-static-libstdc++", "-Xlinker", f"--version-script={SRC / exports}"]
    subprocess.run(["g++", *link, source, "-o", library], check=True)
    assert names_of(library, "--defined-only") == names
