# SPDX-License-Identifier: MIT
"""Commands of ``sh`` blocks and of the running text: programs, files, targets, presets and options exist."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from pages import PAGES, ROOT, Block, blocks

from ftn_pytorch import __main__ as command_line

sys.path.insert(0, str(ROOT / "benchmarks"))
from harness.machine import MALLOC  # noqa: E402

sys.path.pop(0)  # other tests would find its modules

PRESETS = {each["name"] for each in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
EXAMPLES = {
    path.parent.name: set(re.findall(r"^ftn_pytorch_add_program\((\w+)", path.read_text(), re.MULTILINE))
    for path in (ROOT / "examples").glob("*/CMakeLists.txt")
}
# Files that the commands of a block write, or that a user brings along.
MADE = re.compile(r"build/\w+\.(pt|txt)|(closure|model)\.py|new\.py|calls|output(/\w+\.pt)?")


def commands(block: Block) -> list[list[str]]:
    """Words of each command, without comments, `export` and variables in front."""
    lines = []
    for line in block.text.splitlines():
        words = shlex.split(line.replace("<prefix of ftn_pytorch>", "prefix"), comments=True)
        if words[:1] == ["export"]:
            words = words[1:]
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words = words[1:]
        if words:
            lines.append(words)
    return lines


def check(words: list[str], page: Path) -> None:
    """AssertionError for what does not exist. `page`: files of an example may be named from its folder."""
    program, arguments = words[0], words[1:]
    if program == ".":
        assert arguments == [".venv/bin/activate"]
    elif re.fullmatch(r"\./model|.*/esmx_app|build/src/dales4\.4|ESMX_Builder|cd|cp|gdb|ulimit", program):
        pass  # programs of the user, and what systems have
    elif program == "make":
        assert set(arguments) <= TARGETS
    elif program == "mpirun":
        assert arguments[0] == "-n"
        check(arguments[2:], page)
    elif program in ("cmake", "ctest"):
        check_cmake(arguments)
    elif program == "python3":
        assert arguments == ["-m", "venv", ".venv"]
    elif program == "pip":
        check_python(["-m", "pip", *arguments], page)
    elif program == "python":
        check_python(arguments, page)
    elif program == "ftn_pytorch" or program.endswith("/bin/ftn_pytorch"):
        check_subcommand(arguments, page)
    else:
        if program in ("build/model", "build/first") and page.parent in (ROOT, ROOT / "docs"):
            return  # the program of a reader
        built = re.fullmatch(r"build/(?:(\w+)/examples/(\w+)/)?(\w+)", program)
        assert built, f"{program}: no program that is known here"
        assert built[1] in PRESETS | {None} and built[3] in EXAMPLES[built[2] or page.parent.name]
        check_files(arguments, page)


def check_files(arguments: list[str], page: Path) -> None:
    for argument in arguments:
        name = argument.partition(":")[0]
        if ("/" in name or "." in name) and not MADE.fullmatch(name):
            assert (ROOT / name).exists() or (page.parent / name).exists(), f"there is no {name}"


def check_cmake(arguments: list[str]) -> None:
    for option, value in zip(arguments, arguments[1:] + [""]):
        if option == "--preset":
            assert value in PRESETS
        elif option == "--target":
            assert value in EXAMPLES
        elif option == "-R":
            fortran = ROOT / "tests" / "fortran" / f"{value}.f90"
            assert value.removeprefix("example_") in EXAMPLES or fortran.exists(), f"there is no test {value}"
        elif option in ("--build", "--install") and not value.startswith("-") and value != "build":
            assert value.removeprefix("build/") in PRESETS
        elif option.startswith("-D"):
            names = "CMAKE_BUILD_TYPE|CMAKE_PREFIX_PATH|Python_EXECUTABLE|FTN_PYTORCH_OFFLOAD_FLAGS|FTN_PYTORCH_FTORCH"
            assert re.match(rf"-D({names})=", option), option
        elif option.startswith("-"):
            known = ("-S", "-B", "--build", "--install", "--prefix", "--test-dir", "--output-on-failure")
            assert option in known, option


def check_python(arguments: list[str], page: Path) -> None:
    if arguments[:2] == ["-X", "faulthandler"]:
        arguments = arguments[2:]
    if arguments[:3] == ["-m", "pip", "install"]:
        packages = {"lightning", "ninja", "nvidia-pytriton==0.7.0", "onnx", "onnxruntime", "onnxscript", "tensorboard"}
        packages |= {"tritonclient[grpc]", "ftn-pytorch[torch]", "cmake", "matplotlib"}
        assert set(arguments[3:]) <= packages
    elif arguments[:2] == ["-m", "ftn_pytorch"]:
        check_subcommand(arguments[2:], page)
    else:
        check_files(arguments, page)


def help_of(*command: str) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), pytest.raises(SystemExit) as ended:
        command_line.main([*command, "--help"])
    assert ended.value.code == 0
    return text.getvalue()


def check_subcommand(arguments: list[str], page: Path) -> None:
    """Options are those of its help; argparse knows nothing of files. A former name is not shown to anybody."""
    assert arguments[0] not in command_line._FORMER
    text = help_of(arguments[0])
    for option in arguments[1:]:
        assert not option.startswith("--") or re.search(rf"{option}\b", text), f"no option {option}"
    check_files([argument for argument in arguments[1:] if ".py" in argument], page)


def sections_of_the_page() -> dict[str, str]:
    """docs/commands.md: the text below each heading, and, without a name, that above the first one."""
    first, *rest = re.split(r"^## (.+)$", (ROOT / "docs" / "commands.md").read_text(), flags=re.MULTILINE)
    return {"": first, **dict(zip(rest[::2], rest[1::2]))}


def long_ones(options: list[str]) -> set[str]:
    """``--output FILE`` of ``-o FILE, --output FILE``: short forms look different in each Python."""
    return {name for names in options for name in names.split(", ") if name.startswith("--")}


def options_in_the_table(text: str) -> set[str]:
    """Each with what it takes, as usage lines of argparse have it: ``--to {pt,pt2}``."""
    table = text.partition("| option | |\n|---|---|\n")[2].partition("\n\n")[0]
    return long_ones(re.findall(r"^\| `([^`]+)` \| .", table, re.MULTILINE))


def options_of_the_parser(name: str) -> set[str]:
    """Those of the help: lines that begin with two blanks and a hyphen."""
    return long_ones(re.findall(r"^  (-.+?)(?:  .*)?$", help_of(*[name] * bool(name)), re.MULTILINE)) - {"--help"}


def test_the_page_has_all_commands() -> None:
    text = sections_of_the_page()
    names = {"doctor", *command_line._COMMANDS}
    assert set(re.findall(r"^\| \[`([\w-]+)`\]\(#\1\)", text[""], re.MULTILINE)) == names
    assert set(text) == {"", *names}


@pytest.mark.parametrize("name", ["", "doctor", *command_line._COMMANDS])
def test_the_page_has_all_options(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # argparse folds long lines
    listed = options_in_the_table(sections_of_the_page()[name])
    assert listed == options_of_the_parser(name)
    assert listed or "no options" in sections_of_the_page()[name]


@pytest.mark.parametrize("name", command_line._COMMANDS)
def test_output_has_the_same_short_form_everywhere(name: str) -> None:
    text = help_of(name)
    assert ("--output" in text) == ("-o " in text)


@pytest.mark.parametrize("block", blocks("sh"), ids=lambda block: block.name)
def test_sh(block: Block) -> None:
    found = commands(block)
    # variables alone: those that the benchmarks set for themselves
    assert found or dict(re.findall(r"(\w+)=(\w+)", block.text)) == MALLOC
    for words in found:
        check(words, block.page)
    # that folder may have a space in its name
    assert not re.search(r'^(?!export )[^"\n]*\$PWD', block.text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_inline(page: Path) -> None:
    """The same for commands between backticks; an ellipsis stands for arguments."""
    for found in re.findall(r"`((?:make|ctest|ftn_pytorch(?! ckpt| checkpoint)) [^`]+)`", page.read_text()):
        check(found.replace(" ...", "").split(), page)
    # that Python has the package only where the wheel is installed
    assert page.name == "commands.md" or not re.search(r"python.* -m ftn_pytorch\b", page.read_text())


@pytest.mark.parametrize("program", ["cmake", "ctest", "make", "python"])
def test_programs_of_the_commands_are_there(program: str) -> None:
    assert shutil.which(program)


@pytest.mark.parametrize(
    "wrong",
    [
        "make tests",
        "cmake --preset devel",
        "ctest --test-dir build/dev -R example_error",
        "python -m ftn_pytorch doctor --xml",
        "python -m ftn_pytorch bench closure.py",
        "python examples/none.py",
        "build/dev/examples/errors/error examples/errors",
        "cmake --build --preset dev --target nothing",
        "curl example.org",
    ],
)
def test_a_wrong_command_is_noticed(wrong: str) -> None:
    with pytest.raises(AssertionError):
        check(wrong.split(), ROOT / "README.md")
