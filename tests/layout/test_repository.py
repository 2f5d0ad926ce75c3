# SPDX-License-Identifier: MIT
"""What holds for all files: one version, short files, no traces of a machine, tests beside what they test."""

import configparser
import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACKED = [
    ROOT / name
    for name in subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    if (ROOT / name).is_file()
]
TEXTS = [path for path in TRACKED if b"\0" not in path.read_bytes()]
CHANGES = (ROOT / "CHANGELOG.md").read_text()
CODE = {".c", ".h", ".cpp", ".hpp", ".f90", ".fypp", ".py", ".cmake", ".sh"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_versions_agree(cache: dict[str, str]) -> None:
    header = re.search(r'FPT_VERSION "(.+)"', (ROOT / "src" / "ftn_pytorch.h").read_text())[1]
    package = re.search(r'__version__ = "(.+)"', (ROOT / "python" / "ftn_pytorch" / "_version.py").read_text())[1]
    assert header == package == cache["CMAKE_PROJECT_VERSION"]
    # of the interface: a program starts with the library of its minor version only
    assert f"\nFTN_PYTORCH_{header.rpartition('.')[0]} {{\n" in (ROOT / "src" / "exports_linked.map").read_text()


def test_torch_is_pinned_in_one_place() -> None:
    pins = [name_of(path) for path in TEXTS if re.search(r"^\s*[\"']?torch==", path.read_text(), re.MULTILINE)]
    assert pins == ["cmake/requirements.txt"]


@pytest.mark.parametrize("path", [path for path in TEXTS if path.suffix in CODE], ids=name_of)
def test_code_files_are_short_and_licensed(path: Path) -> None:
    lines = path.read_text().splitlines()
    # The C interface is one header, however many functions it has.
    if name_of(path) != "src/ftn_pytorch.h":
        assert len(lines) <= 400
    assert any("SPDX-License-Identifier: MIT" in line for line in lines[:20])


def test_actions_are_pinned_by_digest() -> None:
    """A tag can be moved. Each action has one version in all workflows, which stands behind the digest."""
    workflows = (ROOT / ".github" / "workflows").glob("*.yml")
    used = {use for path in workflows for use in re.findall(r"uses: (.+)", path.read_text())}
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in used)
    assert len(used) == len({use.partition("@")[0] for use in used})


def test_pytest_can_collect_all_tests_in_one_run() -> None:
    """Without packages, pytest imports each file by its stem."""
    stems = [path.stem for path in TRACKED if path.suffix == ".py" and path.name.startswith("test_")]
    assert len(stems) > 50 and not {stem for stem in stems if stems.count(stem) > 1}


def test_variables_are_known_and_documented() -> None:
    """What is read from the environment is on the list that tells misspelt ones, and has a row in the documentation."""
    source = (ROOT / "python" / "ftn_pytorch" / "system" / "variables.py").read_text()
    known = {"FTN_PYTORCH_" + name for name in re.findall(r'"([A-Z_]+)"', source) if not name.startswith("FTN_")}
    status = re.compile("FTN_PYTORCH_(ERR_.*|OK)")
    files = [*(ROOT / "src").rglob("*.cpp"), *(ROOT / "python").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    read = {
        name
        for path in files
        for name in re.findall(
            r'(?:getenv|variable(?:_value)?|switched_off|environ\.get|environ)[(\[]"(FTN_PYTORCH_[A-Z_]+)"',
            path.read_text(),
        )
    }
    assert len(read) > 10 and not {name for name in read - known if not status.fullmatch(name)}
    pages = "".join((ROOT / name).read_text() for name in ("docs/environment.md", "CONTRIBUTING.md"))
    assert known == set(re.findall(r"^\| `(FTN_PYTORCH_\w+)` \| .", pages, re.MULTILINE))


def test_no_paths_of_a_machine() -> None:
    trace = re.compile(r"/(?:root|home/\w+|work|Users/\w+)/|/tmp/(?!nvidia-mps\b)\w+")  # NVIDIA names that one
    found = [
        f"{name_of(path)}: {line}"
        for path in TEXTS
        if path != Path(__file__).resolve()
        for line in path.read_text().splitlines()
        if trace.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "cpp").rglob("test_*.cpp")), ids=name_of)
def test_a_test_of_the_core_lies_beside_what_it_tests(path: Path) -> None:
    """tests/cpp/<room>/test_<concern>.cpp or test_<concern>_<aspect>.cpp, where a source of that room has that stem."""
    room = path.parent.relative_to(ROOT / "tests" / "cpp")
    concerns = {source.stem for source in (ROOT / "src" / room).iterdir()}
    name = path.stem.removeprefix("test_")
    assert any(name == concern or name.startswith(concern + "_") for concern in concerns)


def test_guarantees_name_tests_that_are_there() -> None:
    """Names in tests/README.md: a file below tests/, or ``::`` and something in the file that was named last."""
    tests, latest, checked = ROOT / "tests", "", 0
    text = (tests / "README.md").read_text().partition("## Guarantees")[2].partition("## Where features meet")[0]
    folders = "|".join(path.name for path in tests.iterdir() if path.is_dir())
    for file, name in re.findall(rf"`((?:{folders})/(?:\w+/)*\w+\.\w+)?(?:::(\w+)[.]*)?`", text):
        latest = file or latest
        if not latest:
            continue
        content = (tests / latest).read_text()
        if latest.startswith("fortran/"):
            content += (tests / "fortran" / "CMakeLists.txt").read_text()
        assert name in content, f"{latest} has no {name}"
        checked += 1
    assert checked > 80


def test_the_oldest_python_is_the_same_everywhere() -> None:
    places = {
        "pyproject.toml": r'requires-python = ">=(3\.\d+)"',
        "pyproject.toml ": r'target-version = "py3(\d+)"',
        "cmake/FtnPytorchPython.cmake": r"find_package\(Python (3\.\d+) ",
        "cmake/setup.sh": r"is older than Python (3\.\d+)",
        "README.md": r"Python (3\.\d+) or newer",
        "docs/reliability.md": r"Python (3\.\d+) or newer",
    }
    found = {file: re.search(pattern, (ROOT / file.strip()).read_text())[1] for file, pattern in places.items()}
    assert set(found.values()) <= {"3.10", "10"}, found


def test_the_minutes_of_make_test_are_the_same_everywhere() -> None:
    pages = [(ROOT / name).read_text() for name in ("README.md", "Makefile", "CONTRIBUTING.md")]
    found = [each for page in pages for each in re.findall(r"(?:runs? the tests:|mistakes within) (\S+) minutes", page)]
    assert len(found) == 4 and len(set(found)) == 1


def numbers_of(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def test_the_workflow_tries_the_oldest_and_newest_torch_of_the_wheel_and_one_without_the_direct_path() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    oldest = re.search(r"VERSION_LESS ([\d.]+)\)", (ROOT / "cmake" / "FtnPytorchTorch.cmake").read_text())[1]
    shipped = re.findall(r"^[\d.]+$", (ROOT / "cmake" / "wheel" / "torches.txt").read_text(), re.MULTILINE)
    tried = re.findall(r'torch: "torch==([\d.]+)"', workflow)
    assert numbers_of(shipped[0])[:2] == numbers_of(oldest)
    assert {shipped[0], shipped[-1]} <= set(tried)
    assert [version for version in tried if numbers_of(version) < numbers_of(oldest)]
    nightly = re.search(r"FTN_PYTORCH_TORCH: torch>=([\d.]+)\.dev0", workflow)[1]
    assert numbers_of(nightly) > numbers_of(shipped[-1])


def test_requirements_are_pinned() -> None:
    """So a run can be repeated; of some, the newest are not for the oldest Python."""
    files = [*(ROOT / "cmake").glob("requirements*.txt"), *(ROOT / "tests" / "tools").glob("requirements*.txt")]
    lines = [line for file in files for line in file.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) > 30
    assert not [line for line in lines if not re.fullmatch(r'\S+==\S+|\S+==\S+; .+|\S+; python_version < "3.11"', line)]


def test_make_installs_what_the_commands_of_readme_need() -> None:
    extras = re.search(r"^lint = \[(.+)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    installed = (ROOT / "cmake" / "requirements.txt").read_text()
    assert set(re.findall(r'"([\w-]+)', extras)) <= set(re.findall(r"^[\w-]+", installed, re.MULTILINE))


@pytest.mark.parametrize(
    "program",
    [
        "examples/first/first",
        "examples/online_closure/online_closure",
        "benchmarks/call_overhead/call_overhead",
        "benchmarks/paths/bench_driver",
    ],
)
def test_programs_are_built_with_what_runs_their_recordings(program, build_dir: Path, cache: dict[str, str]) -> None:
    """A program that is built by its target alone would run its recorded steps unrecorded, with a warning at most."""
    if cache["CMAKE_GENERATOR"] != "Ninja" or not cache.get("FTN_PYTORCH_TORCH_FOLDER", "yes"):
        pytest.skip("it is read from the files of Ninja, and recordings need torch")
    graph = subprocess.run(
        ["ninja", "-C", build_dir, "-t", "inputs", program], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"/_ftn_pytorch_recording\S*\.so$", graph, re.MULTILINE)


def test_metadata_agree() -> None:
    """Version, date, authors and keywords stand in three files, each for its readers."""
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    citation = (ROOT / "CITATION.cff").read_text()
    meta = json.loads((ROOT / "codemeta.json").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    said = {name: re.search(rf"^{name}: (.+)$", citation, re.M)[1] for name in ("version", "date-released", "license")}
    assert said["version"] == meta["version"] == re.search(r"^## (\d.+) \((.+)\)$", CHANGES, re.M)[1]
    assert said["date-released"] == meta["datePublished"] == re.search(r"^## (\d.+) \((.+)\)$", CHANGES, re.M)[2]
    assert meta["license"].endswith(f"/{said['license']}") and project["license"] == said["license"]
    authors = re.findall(r"^  - name: (.+)$", citation, re.M)
    assert authors == [each["name"] for each in meta["author"]] == [each["name"] for each in project["authors"]]
    keywords = re.findall(r"^  - (?!name)(.+)$", citation, re.M)
    assert keywords == meta["keywords"] == project["keywords"]


def test_no_tool_has_settings_in_two_files() -> None:
    tomllib = pytest.importorskip("tomllib")
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    tools = {section.partition(":")[0] for section in settings.sections()}
    assert tools == {"mypy", "coverage"}
    assert not tools & set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"])
    for name in tools:
        assert f"{name}==" in (ROOT / "cmake" / "requirements-check.txt").read_text()


def test_forms_name_commands_and_pages_that_are_there() -> None:
    forms = [path for path in TEXTS if "ISSUE_TEMPLATE" in name_of(path) or path.name == "pull_request_template.md"]
    text = "\n".join(path.read_text() for path in forms)
    known = (ROOT / "docs" / "commands.md").read_text()
    commands = re.findall(r"`(?:python -m )?ftn_pytorch (\w+)", text)
    assert len(forms) == 4 and commands and not [name for name in commands if f"\n## {name}\n" not in known]
    files = re.findall(r"\b((?:docs/)?[\w-]+\.md)\b", text)
    assert files and not [name for name in files if not (ROOT / name).is_file()]
