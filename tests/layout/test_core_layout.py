# SPDX-License-Identifier: MIT
"""The core keeps to its layers, to its exported names and to its one header."""

import itertools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
HEADER = (SRC / "ftn_pytorch.h").read_text()

# Lowest first. A file includes files of its own room and of those below; the last room is the door, src/ itself. The
# script path and the direct path are neighbours that know nothing of each other.
ROOMS = ["base", "arrays", "observe", "python", "torch", "values", "calls", "script", "direct", "node", "."]
STRANGERS = {("script", "direct"), ("direct", "script")}
# Of the plug-in, likewise: what it runs, packages beside models, knows the call, and not the other way round.
PLUGIN_ROOMS = {
    "plugin": 0,
    "plugin/pickle": 1,
    "plugin/training": 2,
    "plugin/eager": 3,
    "plugin/model": 3,
    "plugin/package": 3,
    "plugin/recording": 4,
}
SOURCES = sorted(path for room in ROOMS for path in (SRC / room).iterdir() if path.suffix in (".cpp", ".hpp"))
PLUGIN = sorted(path for path in (SRC / "plugin").rglob("*") if path.suffix in (".cpp", ".hpp"))
RECORDING = sorted(path for path in (SRC / "recording").iterdir() if path.suffix in (".cpp", ".hpp"))
HEADERS = [SRC / "ftn_pytorch.h"]
# The reader of files, which others can take, and what plug-in and extension ask of each other.
FTR = sorted(path for path in (SRC / "ftr").iterdir() if path.suffix in (".cpp", ".hpp"))
BETWEEN = sorted(path for path in (SRC / "shared").iterdir() if path.suffix in (".cpp", ".hpp"))
OF_TORCH = [*PLUGIN, *RECORDING, *FTR, *BETWEEN]
EVERYTHING = [*HEADERS, *SOURCES, *OF_TORCH]
# Those of torch that include Python.h are among them.
HEADERS_OF_PYTHON = re.compile(
    r"#include <(?:Python\.h|pybind11/|torch/extension|torch/csrc/(?:Exceptions|autograd/python_|jit/python/))"
)
# What the plug-in takes: the interfaces of the core that it implements, what these are made of, and the reader.
SHARED = {"base", "arrays", "observe", "values", "calls", "direct", "ftr", "shared", "ftn_pytorch.h"}


def name_of(path: Path) -> str:
    return str(path.relative_to(SRC))


def included_by(path: Path) -> list[str]:
    """Headers; what is generated has the ending .inc."""
    return re.findall(r'^#include "(.+\.h(?:pp)?)"', path.read_text(), re.MULTILINE)


def reached_from(path: Path) -> set[Path]:
    """The file, the files of ours that it includes, and those that they include."""
    reached, next_ones = set(), {path}
    while next_ones:
        reached |= next_ones
        next_ones = {SRC / included for one in next_ones for included in included_by(one)} - reached
    return reached


def functions_of_the_header() -> list[str]:
    return re.findall(r"^FPT_(?:API|STATUS) [^(]*?(\w+)\(", HEADER, re.MULTILINE)


def rooms_of_the_architecture() -> dict[str, str]:
    """Rooms of docs/architecture.md, and whether their files may know Python: yes, no, or the one that may."""
    text = (ROOT / "docs" / "architecture.md").read_text().partition("## The C++ core")[2]
    rows = re.findall(r"^\| `(\w+)/` \|.*\| (yes|no|only `\w+`) \|$", text, re.MULTILINE)
    return {"." if room == "src" else room: answer for room, answer in rows}


def opens_with(path: Path) -> str:
    """The comment below the licence, which says what a file is for; a source without one is that of its header."""
    lines = path.read_text().splitlines()[1:]
    comment = list(itertools.takewhile(re.compile(r"///|/\*\*| \*").match, lines))
    header = path.with_suffix(".hpp")
    if not comment and path != header and header.is_file():
        return opens_with(header)
    return " ".join(line.strip("/* ") for line in comment)


def is_without_python(path: Path) -> bool:
    answer = rooms_of_the_architecture()[name_of(path).split("/")[0] if path.parent != SRC else "."]
    by_room = answer == "no" or (answer != "yes" and answer != f"only `{path.stem}`")
    return by_room or "Knows nothing of Python" in opens_with(path)


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_rooms_include_only_rooms_below(source: Path) -> None:
    own = name_of(source.parent)
    for included in map(name_of, reached_from(source)):
        room = "base" if included == "ftn_pytorch.h" else str(Path(included).parent)
        assert ROOMS.index(room) <= ROOMS.index(own), f"{name_of(source)} reaches {included}"
        assert (own, room) not in STRANGERS, f"{name_of(source)} reaches {included}"
        assert (SRC / included).is_file(), "includes name the room"


def test_headers_include_each_other_in_one_direction() -> None:
    below = {name_of(path): included_by(path) for path in [*SOURCES, *OF_TORCH] if path.suffix == ".hpp"}
    while below:
        done = [name for name, included in below.items() if not set(included) & set(below)]
        assert done, f"a circle among {sorted(below)}"
        below = {name: included for name, included in below.items() if name not in done}


def test_architecture_lists_the_rooms() -> None:
    folders = {path.name for path in SRC.iterdir() if path.is_dir()} | {"."}
    assert set(rooms_of_the_architecture()) == folders == set(ROOMS) | {"plugin", "recording", "ftr", "shared"}


@pytest.mark.parametrize("source", EVERYTHING, ids=name_of)
def test_files_open_with_what_they_are_for(source: Path) -> None:
    assert len(opens_with(source).split()) > 4


@pytest.mark.parametrize("source", [*RECORDING, *BETWEEN], ids=name_of)
def test_extension_takes_nothing_of_the_core(source: Path) -> None:
    of_extension = ("recording/", "shared/", "ftr/tape.hpp", "base/tensor_looks.hpp", "base/release.hpp")
    allowed = ("shared/", "ftr/torch.hpp", "ftr/tape.hpp") if source in BETWEEN else of_extension
    assert all(included.startswith(allowed) for included in included_by(source))


@pytest.mark.parametrize("source", FTR, ids=name_of)
def test_reader_stands_alone(source: Path) -> None:
    """Its folder, ATen and c10 are all that it needs; caffe2/serialize is torch's reader of archives."""
    text = source.read_text()
    assert all(included.startswith("ftr/") for included in included_by(source))
    assert not re.search(r"#include <torch/|\bfpt\b|\bFPT_", text)
    assert all(
        re.match(r"inline_container\.h|read_adapter", each) for each in re.findall(r"<caffe2/serialize/(.+)>", text)
    )


def test_reader_lists_its_sources() -> None:
    listed = re.findall(r"^  (\w+\.cpp)", (SRC / "ftr" / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert listed == [path.name for path in FTR if path.suffix == ".cpp"]


@pytest.mark.parametrize("source", [path for path in EVERYTHING if is_without_python(path)], ids=name_of)
def test_python_is_known_where_rooms_and_files_say(source: Path) -> None:
    assert not re.search(r"\bPy[A-Z]?[a-z]*_[A-Z]", source.read_text())
    for path in reached_from(source):
        assert not HEADERS_OF_PYTHON.search(path.read_text()), f"{name_of(source)} reaches {name_of(path)}"


@pytest.mark.parametrize("source", PLUGIN, ids=name_of)
def test_plugin_takes_of_the_core_what_it_implements(source: Path) -> None:
    for included in included_by(source):
        room = str(Path(included).parent)
        own = name_of(source.parent)
        is_below = PLUGIN_ROOMS.get(room, 4) < PLUGIN_ROOMS[own]
        assert room == own or is_below or {room, included} & SHARED, f"{name_of(source)} includes {included}"


def test_both_sides_know_the_same_launchers() -> None:
    sides = [
        (SRC / "base" / "rank.cpp").read_text(),
        (ROOT / "python" / "ftn_pytorch" / "system" / "launcher.py").read_text(),
    ]
    pairs = [re.findall(r'^\s+[{(]"(\w+)", "(\w+_(?:RANK|PROCID))"[)}],$', text, re.MULTILINE) for text in sides]
    assert len(pairs[0]) == 4 and pairs[0] == pairs[1]


def bodies_of_the_interface() -> dict[str, str]:
    """What the door defines for each function of the header."""
    code = "\n".join(path.read_text() for path in sorted(SRC.glob("c_api*.cpp")))
    found = {}
    for block in re.findall(r'^extern "C" \{\n(.*?)^\}  // extern "C"', code, re.MULTILINE | re.DOTALL):
        pattern = r"^\w[^;{}]*?\b(fpt_\w+)\([^;{}]*\) \{(.*?)\}$(?=\n\n|\n\Z)"
        found |= dict(re.findall(pattern, block, re.MULTILINE | re.DOTALL))
    return found


GUARDS = ("guard", "guard_call", "call_module", "describe")
# What a body calls outside of the guards: it allocates nothing and throws nothing.
HARMLESS = {"CallFacts", "discard_copies", "is_observed", "of_whole", "time_now", "view_trimmed"} | {
    "floating_point_mode",
    "openmp_team_size",
}


def outside_of_guards(body: str) -> str:
    """A body without the calls of guards, arguments included."""
    while guarded := re.search(rf"\b(?:{'|'.join(GUARDS)})\(", body):
        end = guarded.end()
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(body[end], 0)
            end += 1
        body = body[: guarded.start()] + body[end:]
    return body


def test_the_door_defines_the_functions_of_the_header() -> None:
    assert set(bodies_of_the_interface()) == set(functions_of_the_header())


@pytest.mark.parametrize("name", functions_of_the_header())
def test_bodies_of_the_interface_stand_inside_the_guard(name: str) -> None:
    outside = outside_of_guards(bodies_of_the_interface()[name])
    assert set(re.findall(r"(\w+)\(", outside)) - {"if"} - set(functions_of_the_header()) <= HARMLESS
    assert not re.search(r"\bnew\b|std::(?!string_view|string \w+;)", outside)


@pytest.mark.parametrize("name", sorted(HARMLESS - {"CallFacts", "of_whole"}))
def test_what_stands_outside_of_the_guard_throws_nothing(name: str) -> None:
    declared = [line for path in SOURCES for line in re.findall(rf"^.*\b{name}\(.*$", path.read_text(), re.MULTILINE)]
    assert any(re.search(r"\) noexcept", line) for line in declared), declared


def test_private_names_have_one_page() -> None:
    page = (SRC / "torch" / "private_names.hpp").read_text()
    names = dict(re.findall(r'^constexpr const char\* (\w+) = "(\w+)";', page, re.MULTILINE))
    others = "\n".join(path.read_text() for path in SOURCES if path.name != "private_names.hpp")
    assert names and all(f"private_names::{name}" in others for name in names)
    assert not [text for text in names.values() if f'"{text}"' in others]
    assert not re.search(r'"_Z\w+"', others)


def test_counts_of_references_are_read_in_one_place() -> None:
    assert [name_of(path) for path in SOURCES if "Py_REFCNT" in path.read_text()] == ["python/ownership.hpp"]


def test_exceptions_are_kept_in_one_place() -> None:
    raw = re.compile(r"PyErr_(?:Fetch|Restore|NormalizeException)\(")
    assert [name_of(path) for path in SOURCES if raw.search(path.read_text())] == ["python/pyref.hpp"]


@pytest.mark.parametrize("source", [*SOURCES, *PLUGIN, *RECORDING], ids=name_of)
def test_objects_of_threads_outlive_exit(source: Path) -> None:
    """exit() destroys thread_local objects before exit functions run: none has anything to destroy (per_thread.hpp)."""
    plain = r"(?:const )?(?:bool|int|std::size_t|Before|FloatingPoint|CudaContext|\w+\*)"
    for declaration in re.findall(r"^[^/\n]*\bthread_local (.+)$", source.read_text(), re.MULTILINE):
        assert re.match(rf"{plain} \w+(?:;| = )", declaration), declaration


def test_numbers_are_the_same_in_every_locale() -> None:
    """What setlocale() and std::locale::global() reach writes and reads 0,5: base/plain.hpp has what they do not."""
    formats = r'"(?:[^"\\\n]|\\.)*%(?:[-+#0-9.*]+L?[aefgAEFG]|L?[aefgAEFG](?!\w))'  # and not scope%end
    functions = r"\b(?:ato[fl]|strto(?:d|f|ld)|sto(?:d|f|ld)|localeconv|strfmon)\("
    streams = r"(?<!Plain<)(?<!class Text : public )std::[io]?stringstream\b|std::locale\b(?!::classic)"
    depends = re.compile(f"{formats}|{functions}|{streams}")
    code = {path: re.sub(r"//.*", "", path.read_text()) for path in [*SOURCES, *OF_TORCH]}
    assert not {name_of(path): found for path, text in code.items() if (found := depends.findall(text))}


def test_core_does_not_need_torch() -> None:
    assert not [name_of(path) for path in SOURCES if re.search(r"#include <(torch|ATen|c10)/", path.read_text())]


# Outside of TorchScript, torch.jit is what turns values of Python into those of operators, and back.
MAY_KNOW_TORCHSCRIPT = {"plugin/model/": r".*", "recording/torch.hpp": r"torch/csrc/jit/python/pybind_utils\.h"}


@pytest.mark.parametrize("source", OF_TORCH, ids=name_of)
def test_torchscript_is_known_to_its_own_library_alone(source: Path) -> None:
    """torch will drop torch.jit: everything else needs ATen, c10 and their values."""
    allowed = [each for place, each in MAY_KNOW_TORCHSCRIPT.items() if name_of(source).startswith(place)]
    text = source.read_text()
    for header in re.findall(r"#include <(torch/(?:csrc/jit/|script\.h|jit|custom_class)[^>]*)>", text):
        assert any(re.fullmatch(each, header) for each in allowed), header
    if source in PLUGIN and not allowed:
        assert "torch::jit" not in text and "plugin/model/" not in text


@pytest.mark.built
def test_nothing_but_torchscript_calls_torch_jit(build_dir: Path) -> None:
    calls = {}
    for library in ("libftn_pytorch_direct.so", "libftn_pytorch_torchscript.so"):
        for found in build_dir.glob(f"lib*/{library}"):
            lines = subprocess.run(
                ["nm", "-DC", "--undefined-only", found], check=True, capture_output=True, text=True
            ).stdout
            calls[library] = re.findall(r"^ +U ((?:\w+ for )?torch::jit::.*)$", lines, re.MULTILINE)
    assert not calls.get("libftn_pytorch_direct.so")
    assert calls.get("libftn_pytorch_torchscript.so", True), "what the first line would see"


def test_one_file_starts_python() -> None:
    assert [name_of(path) for path in SOURCES if "Py_Initialize" in path.read_text()] == ["python/interpreter.cpp"]


def halves(build_dir: Path) -> tuple[Path, ...]:
    """The library that programs link, and what it opens: the half with Python, and the plug-in and TorchScript where
    they are there."""
    names = ("ftn_pytorch", "ftn_pytorch_python*", "ftn_pytorch_direct", "ftn_pytorch_torchscript")
    found = [sorted(build_dir.glob(f"lib*/lib{name}.so")) for name in names]
    return tuple(files[0] for files in found if files)


@pytest.mark.built
def test_nothing_links_libpython(build_dir: Path) -> None:
    """The half with Python finds it in the process: that of the Python that was chosen."""
    core, *others = halves(build_dir)
    needed = [
        subprocess.run(["readelf", "-d", one], check=True, capture_output=True, text=True).stdout
        for one in (core, *others)
    ]
    assert not any("libpython" in text for text in needed)
    wanted = subprocess.run(["nm", "-D", "--undefined-only", core], check=True, capture_output=True, text=True).stdout
    assert not re.search(r"\b_?Py[A-Z]?[a-z]*_", wanted)


@pytest.mark.built
def test_halves_share_their_state(build_dir: Path) -> None:
    """A variable that both define would be two."""
    variables = []
    for library in halves(build_dir):
        lines = subprocess.run(
            ["nm", "-C", "--defined-only", library], check=True, capture_output=True, text=True
        ).stdout
        found = re.findall(r"^[0-9a-f]+ [BbDdVvu] ((?:guard variable for )?fpt::.+)$", lines, re.MULTILINE)
        variables.append({name for name in found if "(anonymous namespace)" not in name})
    constants = {"fpt::dtype_table", "fpt::forward_hook", "fpt::train_hook"}
    assert all(variables)
    for one, other in itertools.combinations(variables, 2):
        assert one & other <= constants


@pytest.mark.parametrize("language", ["c11", "c++17"])
def test_header_stands_alone(language: str, tmp_path: Path) -> None:
    compiler, suffix = ("gcc", ".c") if language == "c11" else ("g++", ".cpp")
    source = tmp_path / f"alone{suffix}"
    source.write_text(
        '#include "ftn_pytorch.h"\n_Static_assert(sizeof(fpt_arg) == 256, "");\n'.replace(
            "_Static_assert", "static_assert" if suffix == ".cpp" else "_Static_assert"
        )
    )
    flags = [f"-std={language}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{SRC}"]
    subprocess.run([compiler, *flags, source], check=True)


def test_no_sentence_stands_twice() -> None:
    """A text of six words is a promise: two places that say it drift apart."""
    texts: dict[str, list[str]] = {}
    for source in [*SOURCES, *OF_TORCH]:
        code = re.sub(r"^\s*//.*$", "", source.read_text(), flags=re.MULTILINE)
        for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*\n\s*"', "", code)):
            texts.setdefault(text.strip(" :;,."), []).append(name_of(source))
    sentences = {text: places for text, places in texts.items() if len(text.split()) > 5}
    assert len(sentences) > 400
    assert not {text: places for text, places in sentences.items() if len(places) > 1}
