# SPDX-License-Identifier: MIT
"""Modules of Python that this package imports long after a script was loaded, and files of users of their names."""

import ast
import sys
from pathlib import Path

import pytest

import ftn_pytorch
from ftn_pytorch.script import shadowing

PACKAGE = Path(ftn_pytorch.__file__).parent
# Nor were they before: a few rooms need them, and scripts may have files of these names.
FREE = {"mmap", "queue", "resource", "zoneinfo"}
NAMES = ("random", "inspect", "zipfile", "traceback", "difflib", "json", "hashlib", "base64", "textwrap", "tempfile")

# A script with a state, which fails; {begin} comes first in the file, {late} in its function.
SCRIPT = "{begin}\nsteps = 0\ndef advance(x):\n    global steps\n    steps += 1\n    {late}\n    fail()\n"
USE = """
    from ftn_pytorch import _embed, errors
    _embed.on_start({{"adopted": "0"}})
    runner = _embed.load(0, {script!r}, {{}}, {{}})
    def use():
        try:
            runner.require("advance")(1)
        except NameError as failure:
            print("NameError" in errors.describe(failure, "here")[1])
            print("x: 1" in _embed.describe_arguments(runner, "advance", (1,), {{}}, ""))
        try:
            runner.require("advanec")
        except errors.FtnPytorchError as failure:
            print("did you mean 'advance'?" in failure.text)
        _embed.checkpoint(runner, {kept!r})
        print(_embed.restore(runner, {kept!r}))
"""
WORKED = ["True", "True", "True", "1"]


@pytest.fixture
def folder(tmp_path):
    """A folder with a file for each of the names, none of which may be run."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    for name in NAMES:
        (place / f"{name}.py").write_text(f"raise SystemExit('the {name} of the user ran')")
    return place


@pytest.fixture
def use(python, tmp_path):
    """use(script's file, how): what USE prints."""

    def use(script, how="use()"):
        text = USE.format(script=str(script), kept=str(tmp_path / "kept"))
        return python(text + "    " + how.replace("\n", "\n    ")).split()

    return use


def test_all_that_this_package_imports_is_reserved(python):
    wanted = set()
    for path in PACKAGE.rglob("*.py"):
        if {"project", "commands"} & {*path.parts}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            wanted |= {*names, node.module} if isinstance(node, ast.ImportFrom) and not node.level else {*names}
    wanted = {name for name in wanted if name.partition(".")[0] in sys.stdlib_module_names} - {"__future__"}
    code = f"""
        import sys
        from ftn_pytorch import _embed
        at_start = {{name.partition(".")[0] for name in sys.modules}}
        import {", ".join(sorted(wanted))}
        print(*{{name.partition(".")[0] for name in sys.modules}} - at_start)
    """
    late = {name for name in python(code).split() if name in sys.stdlib_module_names and not name.startswith("_")}
    assert len(late) > 40
    assert late - {*shadowing.RESERVED} - FREE <= {*sys.builtin_module_names}


def test_files_beside_the_script(use, folder):
    (folder / "closure.py").write_text(SCRIPT.format(begin="", late="pass"))
    assert use(folder / "closure.py") == WORKED


@pytest.mark.parametrize("when", ["begin", "late"])
def test_a_folder_that_the_script_puts_first(use, tmp_path, folder, when):
    change = f"import sys; sys.path.insert(0, {str(folder)!r})"
    (tmp_path / "closure.py").write_text(SCRIPT.format(**{"begin": "", "late": "pass", when: change}))
    assert use(tmp_path / "closure.py") == WORKED


def test_in_a_thread(use, folder):
    (folder / "closure.py").write_text(SCRIPT.format(begin="", late="pass"))
    how = "from threading import Thread\nthread = Thread(target=use)\nthread.start()\nthread.join()"
    assert use(folder / "closure.py", how) == WORKED


def test_at_exit(use, folder):
    (folder / "closure.py").write_text(SCRIPT.format(begin="", late="pass"))
    assert (
        use(folder / "closure.py", "import atexit\natexit.register(use)\n_embed.at_exit()\natexit.unregister(use)")
        == WORKED
    )


def test_the_script_gets_the_module_of_python_and_is_told(python, folder):
    (folder / "closure.py").write_text("import random, statistics\nnumber = random.random()\n")
    (folder / "statistics.py").write_text("ours = 1\n")
    code = f"""
        import warnings
        from ftn_pytorch import _embed
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            runner = _embed.load(0, {str(folder / "closure.py")!r}, {{}}, {{}})
        print(runner.find("statistics") is None, [str(each.message) for each in told])
        import statistics, random
        print(statistics.ours, random.__file__)
    """
    first, second = python(code).splitlines()
    assert "imports 'random' and got" in first and "rename one of the two" in first
    assert second.startswith("1 ") and str(folder) not in second


def test_a_script_of_such_a_name(python, tmp_path):
    """It does not hide the module, so nothing is to be warned of."""
    (tmp_path / "json.py").write_text("import json\ntext = json.dumps(3)\n")
    code = f"""
        import sys, warnings
        from ftn_pytorch import _embed
        assert "json" not in sys.modules
        warnings.simplefilter("error")
        runner = _embed.load(0, {str(tmp_path / "json.py")!r}, {{}}, {{}})
        print(runner.names["text"], sys.modules["json"].dumps(4))
    """
    assert python(code).split() == ["3", "4"]


def test_errors_are_told_when_no_file_can_be_opened(python, tmp_path):
    """As before: the traceback needs no import then."""
    (tmp_path / "closure.py").write_text("def advance(x):\n    raise ValueError('no room')\n")
    code = f"""
        import os, resource
        from ftn_pytorch import _embed
        _embed.on_start({{"adopted": "0"}})
        runner = _embed.load(0, {str(tmp_path / "closure.py")!r}, {{}}, {{}})
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        try:
            runner.require("advance")(1)
        except ValueError as failure:
            status, text = _embed.describe_error(failure, "advance of closure")
        print(status, "no room" in text and "closure.py" in text)
    """
    assert python(code).split() == ["PYTHON", "True"]


def test_the_thread_that_starts_python_is_its_main_thread(python):
    code = """
        import _thread, sys, time
        assert "threading" not in sys.modules
        from ftn_pytorch import _embed
        _embed.on_start({"adopted": "0"})
        found = []
        def other():
            import threading
            found.append(threading.current_thread() is threading.main_thread())
        _thread.start_new_thread(other, ())
        while not found:
            time.sleep(0.01)
        print(*found)
    """
    assert python(code).split() == ["False"]
