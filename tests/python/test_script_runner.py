# SPDX-License-Identifier: MIT
"""Scripts: options, set-up, hooks, saving and restoring."""

import random

import pytest

import program

FORWARD = "ftn_pytorch_forward"
EMPTY = "def ftn_pytorch_forward(): return 1\n"


# ---- options


def test_defaults_of_the_options(load):
    runner = load(EMPTY)
    assert (runner.backend, runner.framework, runner.device) == ("script", "numpy", None)
    assert (runner.layout, runner.mode, runner.dtype, runner.inputs) == ("reversed", "checked", "keep", "share")
    assert runner.cast is False


def test_options_become_attributes(load):
    runner = load(EMPTY, layout="same", mode="safe", dtype="float32", inputs="copy", cast=True, device="cpu", flags=2)
    assert (runner.layout, runner.mode, runner.dtype, runner.inputs) == ("same", "safe", "float32", "copy")
    assert runner.cast is True
    assert runner.device is None


@pytest.mark.parametrize("load", [program.load, program.load_model])
def test_content_decides_whatever_was_expected(write, load):
    assert load(write("model.py", EMPTY)).backend == "script"


# ---- set-up

SETUP = """
calls = []
def ftn_pytorch_setup(lr=0.1, *, name="net"): calls.append((lr, name))
def ftn_pytorch_forward(): return calls
"""


@pytest.mark.parametrize(
    ("config", "call"), [({}, (0.1, "net")), ({"lr": 0.5}, (0.5, "net")), ({"name": "b", "lr": 1}, (1, "b"))]
)
def test_setup_is_called_once_with_the_configuration(load, config, call):
    assert program.call(load(SETUP, config), FORWARD) == [call]


def test_configuration_may_have_any_names(load):
    names = {"path": 1, "function": 2, "args": 3, "kwargs": 4, "config": 5}
    text = f"def ftn_pytorch_setup({', '.join(names)}):\n    global got\n    got = locals()\ndef ask(): return got\n"
    assert program.call(load(text, names), "ask") == names


def test_setup_is_called_again_with_the_same_configuration_by_reload(load, write):
    runner = load(SETUP, {"lr": 0.5})
    write("model.py", SETUP + "calls.append('new')\n")
    program.reload(runner)
    assert program.call(runner, FORWARD) == ["new", (0.5, "net")]


def test_configuration_without_setup_is_refused(load, fails):
    with fails("HOOK", "no ftn_pytorch_setup", "lr, depth"):
        load(EMPTY, {"lr": 0.1, "depth": 3})


@pytest.mark.parametrize("hook", ["forward", "train", "save", "restore", "setup"])
def test_a_hook_that_is_no_function_is_refused(load, fails, hook):
    with fails("HOOK", f"model.py: ftn_pytorch_{hook} is of type int, not a function"):
        load(f"ftn_pytorch_{hook} = 3\n")
    load(f"ftn_pytorch_{hook} = None\n")


def test_configuration_that_setup_does_not_take_is_refused(load, fails):
    with fails("SIGNATURE", "ftn_pytorch_setup(lr=0.1, *, name='net')", "depth=int"):
        load(SETUP, {"depth": 3})


def test_exception_in_setup_is_told_with_its_place(load, fails):
    with fails("SCRIPT", "ValueError: lr", 'model.py", line 2'):
        load("def ftn_pytorch_setup():\n    raise ValueError('lr')\n")


def test_missing_module_in_setup_is_an_import_error(load, fails):
    with fails("IMPORT", "no_such_module"):
        load("def ftn_pytorch_setup():\n    import no_such_module\n")


@pytest.mark.parametrize("text", ["def ftn_pytorch_setup(): yield\n", "async def ftn_pytorch_setup(): pass\n"])
def test_setup_that_would_do_nothing_is_refused(load, fails, text):
    with fails("SCRIPT", "did nothing"):
        load(text)


def test_setup_that_is_no_function_is_refused(load, fails):
    with fails("HOOK", "ftn_pytorch_setup is of type dict"):
        load("ftn_pytorch_setup = {}\n")


# ---- functions

FUNCTIONS = """
from json import loads
value = 3
class Net: pass
def _private(): pass
def diagnose(x): return x
def ftn_pytorch_foward(x): return x
"""


def test_missing_function_is_told_with_those_there_are(load, fails):
    runner = load(FUNCTIONS)
    with fails("HOOK", "model.py has no function ftn_pytorch_forward", "it has diagnose, ftn_pytorch_foward;", "mean"):
        program.function(runner, FORWARD)


def test_script_without_functions_says_so(load, fails):
    with fails("HOOK", "it has none"):
        program.function(load("x = 1\n"), FORWARD)


def test_name_of_something_else_is_no_function(load, fails):
    runner = load(FUNCTIONS)
    assert not program.has(runner, "value")
    with fails("HOOK", "value"):
        program.function(runner, "value")


@pytest.mark.parametrize(("name", "there"), [("diagnose", True), ("loads", True), ("Net", True), ("nothing", False)])
def test_has_tells_what_can_be_called(load, name, there):
    assert program.has(load(FUNCTIONS), name) is there


def test_first_call_of_a_missing_function_is_told(load, fails):
    with fails("HOOK"):
        program.first_call(load(FUNCTIONS), FORWARD, (), {})


# ---- save and restore

STORE = """
value = 1
def ftn_pytorch_save(filename):
    with open(filename, "w") as f: f.write(str(value))
def ftn_pytorch_restore(filename):
    global value
    with open(filename) as f: value = int(f.read())
def increase():
    global value
    value += 1
    return value
"""


def test_restore_reads_what_save_wrote(load, tmp_path):
    runner = load(STORE)
    increase = program.function(runner, "increase")
    increase()
    program.save(runner, str(tmp_path / "state"))
    assert increase() == 3
    program.restore(runner, str(tmp_path / "state"))
    assert increase() == 3


def test_a_script_without_state_and_hooks_has_random_states(load, tmp_path):
    runner, place = load(EMPTY), str(tmp_path / "state")
    program.save(runner, place)
    expected = random.random()
    program.restore(runner, place)
    assert random.random() == expected


def test_save_that_takes_no_file_is_told(load, fails):
    with fails("SIGNATURE", "ftn_pytorch_save()"):
        program.save(load("def ftn_pytorch_save(): pass\n"), "state")


def test_save_that_would_do_nothing_is_refused(load, fails):
    with fails("RESULT_TYPE", "did nothing"):
        program.save(load("def ftn_pytorch_save(file): yield\n"), "state")


def test_exception_in_restore_keeps_its_traceback(load, fails):
    with fails("PYTHON", "FileNotFoundError", "model.py"):
        program.restore(load(STORE), "/no/such/file")


# ---- misspelt names


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ftn_pytorch_setpu", "setup"), ("ftn_pytorch_shape", "shapes"), ("ftn_pytorch_load_restore", "restore")],
)
def test_hook_that_is_misspelt_is_warned_of_once(load, name, meant):
    text = f"def {name}(): raise ValueError\n"
    with pytest.warns(UserWarning, match=f"defines {name}, .* did you mean 'ftn_pytorch_{meant}'"):
        runner = load(text)
    program.reload(runner)


def test_function_beside_the_hook_that_it_resembles_is_none_misspelt(load):
    load("def ftn_pytorch_setup(): pass\ndef ftn_pytorch_setup_2(): pass\ndef ftn_pytorch_forward_2(): pass\n")


def test_keyword_that_is_misspelt_is_told(load, fails):
    runner = load("def ftn_pytorch_forward(temperature): pass\n")
    with fails("SIGNATURE", "there is no 'temprature'; did you mean 'temperature'?"):
        program.first_call(runner, "ftn_pytorch_forward", (), {"temprature": 1})
    with fails("SIGNATURE", "did you mean 'size'?"):
        load("def ftn_pytorch_setup(size=1): pass\n", {"sise": 2})


@pytest.mark.parametrize("options", [{}, {"record": True}])
def test_the_recording_of_a_function_that_is_replaced_is_another_one(load, options):
    if options:
        pytest.importorskip("torch")
    runner = load("import torch\ndef ftn_pytorch_forward(x): return x\ndef other(x): return 2 * x\n", **options)
    first = program.function(runner, FORWARD)
    assert program.function(runner, FORWARD) is first
    runner.names[FORWARD] = runner.names["other"]
    second = program.function(runner, FORWARD)
    assert second is not first
    assert hasattr(second, "recording") == bool(options)
