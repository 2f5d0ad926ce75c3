# SPDX-License-Identifier: MIT
"""How a file is found, and how a script becomes a module."""

import gc
import os
import pickle
import sys

import pytest

import program
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.script import loading

EMPTY = "def ftn_pytorch_forward(): return 1\n"


@pytest.fixture(autouse=True)
def no_leftovers(isolated):
    """A runner of an earlier test that only the collector finds still has the name "model"."""
    gc.collect()


def name_of(runner):
    return program.function(runner, "ftn_pytorch_forward").__module__


# ---- files


def test_a_script_that_is_gone_leaves_the_name_to_another(load, write, monkeypatch):
    runner = load("x = 1")
    monkeypatch.delitem(sys.modules, runner.name)
    other = program.load(write("elsewhere/model.py", "x = 2"))
    del runner
    gc.collect()
    assert sys.modules[other.name].x == 2
    del other
    gc.collect()
    assert "model" not in sys.modules


def test_missing_file_is_named_with_a_close_one(write, fails, tmp_path):
    write("emulator.py", EMPTY)
    with fails("FILE", "emulater.py does not exist", "did you mean 'emulator.py'"):
        program.load(str(tmp_path / "emulater.py"))


def test_missing_file_of_relative_name_says_where_it_was_looked_for(fails, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with fails("FILE", str(tmp_path), "relative to the working directory"):
        program.load("model.py")


def test_missing_directory_is_told(fails, tmp_path):
    with fails("FILE", "there is no directory"):
        program.load(str(tmp_path / "nowhere" / "model.py"))


def test_link_to_nowhere_is_told(fails, tmp_path):
    (tmp_path / "model.py").symlink_to("gone.py")
    with fails("FILE", "model.py does not exist: it is a link to 'gone.py', which is not there"):
        program.load(str(tmp_path / "model.py"))


def test_directory_is_no_file(fails, tmp_path):
    with fails("FILE", "is a directory"):
        program.load(str(tmp_path))


def test_file_that_cannot_be_read_is_told(fails, tmp_path):
    (tmp_path / "loop.py").symlink_to("loop.py")
    with fails("FILE", "cannot be read"):
        program.load(str(tmp_path / "loop.py"))


def test_pipe_is_refused_rather_than_waited_for(fails, tmp_path):
    os.mkfifo(tmp_path / "model.py")
    with fails("FILE", "no regular file"):
        program.load(str(tmp_path / "model.py"))


@pytest.mark.parametrize(("name", "piece"), [("", "is empty"), ("  ", "is empty"), ("a\0b.py", "cannot be read")])
def test_name_that_is_none_is_refused(fails, name, piece):
    with fails("FILE", piece):
        program.load(name)


# ---- names of modules


def test_first_instance_is_imported_under_its_stem(load):
    runner = load(EMPTY, name="emulator.py")
    assert name_of(runner) == runner.name == "emulator"
    assert sys.modules["emulator"].ftn_pytorch_forward is program.function(runner, "ftn_pytorch_forward")


def test_second_instance_is_independent_of_the_first(load):
    text = "calls = []\ndef ftn_pytorch_forward():\n    calls.append(1)\n    return len(calls)\n"
    first, second = load(text), load(text)
    assert [name_of(first), name_of(second)] == ["model", "model__2"]
    assert second.name == "model"
    functions = [program.function(runner, "ftn_pytorch_forward") for runner in (first, second)]
    assert [functions[0](), functions[0](), functions[1]()] == [1, 2, 1]


def test_name_is_free_again_when_the_runner_is_gone(load):
    runner = load(EMPTY)
    function = program.function(runner, "ftn_pytorch_forward")
    del runner
    gc.collect()
    assert "model" not in sys.modules
    assert function() == 1
    assert name_of(load(EMPTY)) == "model"


def test_script_does_not_take_the_name_of_an_imported_module(load):
    runner = load("import json\n" + EMPTY, name="json.py")
    assert name_of(runner) == "json__2"
    assert sys.modules["json"].loads("1") == 1


def test_script_does_not_take_the_name_of_a_module_that_can_be_imported(load):
    assert "this" not in sys.modules
    with pytest.warns(UserWarning, match="has the name of a Python module"):
        assert name_of(load(EMPTY, name="this.py")) == "this__2"


def test_script_does_not_take_the_name_of_a_builtin_module(load):
    name = min(set(sys.builtin_module_names) - set(sys.modules))
    with pytest.warns(UserWarning, match="has the name of a Python module"):
        assert name_of(load(EMPTY, name=f"{name}.py")) == f"{name}__2"


def test_script_whose_folder_is_searched_already_keeps_its_stem(load, tmp_path):
    sys.path.append(str(tmp_path))
    assert name_of(load(EMPTY)) == "model"


def test_folder_of_the_same_name_does_not_take_the_stem(load, tmp_path):
    (tmp_path / "site" / "model").mkdir(parents=True)
    sys.path.append(str(tmp_path / "site"))
    assert name_of(load(EMPTY)) == "model"


def test_script_of_the_same_stem_elsewhere_does_not_take_it_for_good(load):
    runner = load(EMPTY, name="a/model.py")
    del runner
    gc.collect()
    assert name_of(load(EMPTY, name="b/model.py")) == "model"


# ---- running the script


def test_functions_can_be_pickled_by_name(load):
    runner = load(EMPTY)
    function = program.function(runner, "ftn_pytorch_forward")
    assert pickle.loads(pickle.dumps(function)) is function


def test_worker_processes_find_the_script(write, python):
    path = write("model.py", "def square(x): return x * x\ndef ftn_pytorch_forward(x): return pool.map(square, x)\n")
    code = """
        import multiprocessing, program, sys
        if __name__ == "__main__":
            runner = program.load(sys.argv[1])
            forward = program.function(runner, "ftn_pytorch_forward")
            with multiprocessing.get_context("spawn").Pool(1) as forward.__globals__["pool"]:
                print(forward([1, 2, 3]))
    """
    assert python(code, path) == "[1, 4, 9]\n"


def test_folder_of_the_script_comes_first_and_stays(load, tmp_path, write):
    write("neighbour.py", "value = 7\n")
    runner = load("def ftn_pytorch_forward():\n    import neighbour\n    return neighbour.value\n")
    assert sys.path[0] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
    assert program.call(runner, "ftn_pytorch_forward") == 7


def test_working_directory_is_not_searched(write, fails, tmp_path, monkeypatch, load):
    write("work/beside.py", "")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", os.getcwd())])
    with fails("IMPORT", "beside"):
        load("import beside\n")


def test_module_of_another_script_under_the_name_of_a_neighbour_is_warned_of(write, load):
    write("a/helpers.py", "which = 'a'\n")
    write("b/helpers.py", "which = 'b'\n")
    first = load("import helpers\n" + EMPTY, name="a/one.py")
    with pytest.warns(UserWarning, match=r"imports 'helpers' and got .*a.helpers.py, not .*b.helpers.py"):
        load("import helpers\n" + EMPTY, name="b/two.py")
    assert first


def test_encoding_and_byte_order_mark_are_honoured(tmp_path):
    marked, latin = tmp_path / "marked.py", tmp_path / "latin.py"
    marked.write_bytes(b"\xef\xbb\xbfdef ftn_pytorch_forward(): return '\xc3\xa9'\n")
    latin.write_bytes(b"# coding: latin-1\ndef ftn_pytorch_forward(): return '\xe9'\n")
    for path in (marked, latin):
        assert program.call(program.load(str(path)), "ftn_pytorch_forward") == "é"


def test_syntax_error_tells_file_line_and_source(load, fails):
    with fails("SYNTAX", "model.py", "line 2", "def f(:"):
        load("x = 1\ndef f(:\n    pass\n")


def test_binary_content_is_a_syntax_error(tmp_path, fails):
    (tmp_path / "model.py").write_bytes(b"x = 1\0\n")
    with fails("SYNTAX", "model.py"):
        program.load(str(tmp_path / "model.py"))


def test_missing_module_is_named_with_interpreter_and_path(load, fails, tmp_path):
    with fails("IMPORT", "No module named 'no_such_module'", sys.executable, str(tmp_path), "line 1"):
        load("import no_such_module\n")


def test_missing_name_of_a_module_is_an_import_error(load, fails):
    with fails("IMPORT", "no_such_name"):
        load("from json import no_such_name\n")


def test_exception_while_the_script_runs_tells_file_and_line(load, fails):
    with fails("SCRIPT", "ZeroDivisionError", 'model.py", line 2', "y = x / 0"):
        load("x = 1\ny = x / 0\n")


def test_syntax_error_in_code_that_the_script_runs_is_not_its_own(load, fails):
    with fails("SCRIPT", 'model.py", line 1'):
        load("eval('1 +')\n")


def test_exit_of_the_script_does_not_end_the_process(load, fails):
    with fails("SCRIPT", "asked Python to exit", "3"):
        load("import sys\nsys.exit(3)\n")


def test_interrupt_of_the_script_does_not_end_the_process(load, fails):
    with fails("SCRIPT", "KeyboardInterrupt"):
        load("raise KeyboardInterrupt\n")


def test_failed_load_leaves_no_trace(load, write, fails):
    write("neighbour.py", "")
    write("package/__init__.py", "")
    write("package/part.py", "")
    paths, modules = list(sys.path), set(sys.modules)
    with fails("SCRIPT"):
        load("import sys, neighbour, package.part\nsys.path.append('elsewhere')\nraise ValueError\n")
    assert sys.path == paths
    assert set(sys.modules) == modules


def test_failed_reload_puts_back_the_name_after_what_the_script_did_to_it(load, write, fails):
    runner = load(EMPTY)
    before = sys.modules["model"]
    write("model.py", "import sys, types\nsys.modules['model'] = types.ModuleType('model')\nraise ValueError\n")
    with fails("SCRIPT"):
        program.reload(runner)
    assert sys.modules["model"] is before


def test_failed_load_keeps_modules_of_others(load, fails):
    sys.modules.pop("this", None)
    with fails("SCRIPT"):
        load("import this\nraise ValueError\n")
    assert sys.modules.pop("this")


# ---- reload


def test_reload_runs_the_current_source(load, write, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    runner = load("def ftn_pytorch_forward(): return 1\n")
    # Of the same size and time: byte code on disk would count as current.
    time = os.stat(tmp_path / "model.py").st_mtime_ns
    write("model.py", "def ftn_pytorch_forward(): return 2\n")
    os.utime(tmp_path / "model.py", ns=(time, time))
    before = sys.modules["model"]
    program.reload(runner)
    assert program.call(runner, "ftn_pytorch_forward") == 2
    assert sys.modules["model"] is not before
    assert runner.name == "model"


@pytest.mark.parametrize("text", ["raise ValueError\n", "def f(:\n", "def ftn_pytorch_setup(): raise ValueError\n"])
def test_failed_reload_keeps_the_old_module(load, write, text):
    runner = load(EMPTY)
    before = sys.modules["model"]
    write("model.py", text)
    with pytest.raises(FtnPytorchError):
        program.reload(runner)
    assert sys.modules["model"] is before
    assert program.call(runner, "ftn_pytorch_forward") == 1


def test_reload_of_a_deleted_file_keeps_the_old_module(load, tmp_path, fails):
    runner = load(EMPTY)
    (tmp_path / "model.py").unlink()
    with fails("FILE", "does not exist"):
        program.reload(runner)
    assert program.call(runner, "ftn_pytorch_forward") == 1


def test_traceback_after_reload_shows_the_new_source(load, write, fails, tmp_path):
    runner = load("def ftn_pytorch_forward():\n    raise ValueError('old')\n")
    with fails("PYTHON", "raise ValueError('old')"):
        program.call(runner, "ftn_pytorch_forward")
    times = (tmp_path / "model.py").stat().st_atime_ns, (tmp_path / "model.py").stat().st_mtime_ns
    write("model.py", "def ftn_pytorch_forward():\n    raise ValueError('new')\n")
    os.utime(tmp_path / "model.py", ns=times)
    program.reload(runner)
    with fails("PYTHON", "raise ValueError('new')"):
        program.call(runner, "ftn_pytorch_forward")


# ---- relative imports, names that hide others


@pytest.mark.parametrize("line", ["from . import helpers", "from .helpers import value", "from ..helpers import value"])
def test_relative_import_is_told_without_anything_to_install(load, write, line):
    write("helpers.py", "value = 1\n")
    with pytest.raises(FtnPytorchError) as caught:
        load(f"{line}\n{EMPTY}")
    assert caught.value.status == "IMPORT"
    assert 'write "import name"' in caught.value.text
    assert "nstall" not in caught.value.text


def test_missing_name_of_a_module_is_nothing_to_install(load):
    with pytest.raises(FtnPytorchError) as caught:
        load("from json import no_such_name\n")
    assert "no_such_name" in caught.value.text
    assert "nstall" not in caught.value.text


def test_second_script_does_not_take_the_name_of_an_installed_module(load):
    load(EMPTY)
    assert "this" not in sys.modules
    with pytest.warns(UserWarning, match="has the name of a Python module"):
        assert name_of(load(EMPTY, name="this.py")) == "this__2"


@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py"])
@pytest.mark.parametrize("name", ["torch", "numpy"])
def test_file_that_hides_what_the_library_needs_is_refused(write, python, name, form):
    pytest.importorskip(name)
    hiding = write(form.format(name), EMPTY)
    other, script = write("other/model.py", EMPTY), write("model.py", EMPTY)
    code = f"""
        import program, sys
        def load(path):
            try: program.load(path)
            except Exception as failure: print(failure.status, failure.text)
        for path in sys.argv[1:]: load(path)
        print("{name}" in sys.modules)
        import {name}
        print({name}.zeros(1).shape)
        load(sys.argv[2])
    """
    printed = python(code, other, script, hiding).splitlines()
    # a package is loaded from its own folder, which hides nothing
    refused = (script, hiding) if form == "{}.py" else (script,)
    assert len(printed) == len(refused) + 2
    for line, path in zip(printed, refused):
        assert line.startswith(f"IMPORT {path} cannot be loaded: {hiding} hides the module {name!r} of Python (")
        assert line.endswith("rename the file")
    assert printed[-2] == "False"
    assert "1" in printed[-1]


@pytest.mark.filterwarnings("ignore:.*has the name of a Python module")
def test_script_that_imports_itself_in_place_of_a_module_is_told(load, fails):
    assert "this" not in sys.modules
    with fails("SCRIPT", "AttributeError", "this.py hides the module 'this' of Python ("):
        load("import this\nthis.nothing\n", name="this.py")
    assert "this" not in sys.modules


def test_neighbour_that_hides_another_module_is_warned_of(load, write):
    hiding = write("this.py", "value = 1\n")
    with pytest.warns(UserWarning, match="this.py hides the module 'this' of Python"):
        load("def ftn_pytorch_forward():\n    import this\n    return this.value\n")
    assert hiding


def test_without_a_working_directory_no_file_is_found(tmp_path, monkeypatch, fails):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with fails("FILE", "net.py does not exist"):
        loading.find("net.py")
