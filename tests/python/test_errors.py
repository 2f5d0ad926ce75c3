# SPDX-License-Identifier: MIT
"""Any exception as status and text."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ftn_pytorch
import program
from ftn_pytorch.errors import FtnPytorchError

PACKAGE = Path(ftn_pytorch.__file__).parent


def failure_of(runner, name="ftn_pytorch_forward", *args):
    with pytest.raises(BaseException) as caught:
        program.call(runner, name, *args)
    return caught.value


def described(runner, context=""):
    return program.describe_error(failure_of(runner), context)


def test_known_failure_keeps_status_and_text():
    assert program.describe_error(FtnPytorchError("SHAPE", "x is flat"), "") == ("SHAPE", "x is flat")
    assert program.describe_error(FtnPytorchError("SHAPE", "x is flat"), "f of m") == ("SHAPE", "f of m: x is flat")


def test_gradients_that_find_no_threads_for_gpus_say_what_to_do():
    failure = RuntimeError("device.index() < device_ready_queues_.size() INTERNAL ASSERT FAILED")
    status, text = program.describe_error(failure, "")
    assert status == "PYTHON" and text.endswith("before the first gradient of a tensor or a saved model is computed.")


def test_exception_of_a_function_has_type_message_file_line_and_source(load):
    runner = load("def helper(x):\n    return 1 / x\ndef ftn_pytorch_forward():\n    return helper(0)\n")
    status, text = described(runner, "ftn_pytorch_forward of model")
    assert status == "PYTHON"
    assert text.startswith("ftn_pytorch_forward of model: ZeroDivisionError: division by zero\n")
    assert 'model.py", line 4, in ftn_pytorch_forward\n    return helper(0)' in text
    assert 'model.py", line 2, in helper\n    return 1 / x' in text


def test_frames_of_this_package_and_of_importlib_are_left_out(load, fails):
    with pytest.raises(FtnPytorchError) as caught:
        load("import json\njson.loads('{')\n")
    text = program.describe_error(caught.value, "")[1]
    assert 'model.py", line 2' in text
    assert str(PACKAGE) not in text
    assert "importlib" not in text


def test_defect_of_this_package_keeps_its_frames():
    with pytest.raises(AttributeError) as caught:
        program.has(None, "x")
    caught.value.__traceback__ = caught.value.__traceback__.tb_next
    assert str(PACKAGE) in program.describe_error(caught.value, "")[1]


def test_chained_exceptions_are_kept(load):
    text = (
        "def ftn_pytorch_forward():\n    try: {}['ice']\n    except KeyError as e: raise ValueError('no ice') from e\n"
    )
    _, described_text = described(load(text))
    assert described_text.startswith("ValueError: no ice\n")
    assert "KeyError: 'ice'" in described_text
    assert "direct cause" in described_text


def test_message_of_several_lines_opens_with_its_first(load):
    _, text = described(load("def ftn_pytorch_forward(): raise ValueError('one\\ntwo')\n"))
    assert text.startswith("ValueError: one\nTraceback")
    assert text.endswith("ValueError: one\ntwo")


def test_exit_is_an_exception_like_others(load):
    status, text = described(load("import sys\ndef ftn_pytorch_forward(): sys.exit('enough')\n"))
    assert status == "PYTHON"
    assert "asked Python to exit" in text
    assert "enough" in text


def test_interrupt_is_an_exception_like_others(load):
    status, text = described(load("def ftn_pytorch_forward(): raise KeyboardInterrupt\n"))
    assert status == "PYTHON"
    assert "KeyboardInterrupt" in text


def test_pickle_of_a_script_that_was_run_directly_says_what_to_do(load, tmp_path):
    file = str(tmp_path / "net.pickle")
    code = f"import pickle\nclass Net: pass\npickle.dump(Net(), open({file!r}, 'wb'))"
    subprocess.run([sys.executable, "-c", code], check=True)
    runner = load("import pickle\ndef ftn_pytorch_forward(file): return pickle.load(open(file, 'rb'))")
    failure = failure_of(runner, "ftn_pytorch_forward", file)
    status, text = program.describe_error(failure, "")
    assert (status, type(failure)) == ("PYTHON", AttributeError)
    assert "'Net'" in text and text.endswith("put it into a module beside the file, and save the model again.")


def test_endless_recursion_is_told_in_few_lines(load):
    status, text = described(load("def ftn_pytorch_forward(): ftn_pytorch_forward()\n"))
    assert status == "PYTHON"
    assert "RecursionError" in text
    assert len(text.splitlines()) < 40


def test_missing_memory_has_its_own_status(load):
    assert described(load("def ftn_pytorch_forward(): raise MemoryError\n"))[0] == "MEMORY"


def test_missing_memory_of_a_device_has_the_same_status(load):
    pytest.importorskip("torch")
    runner = load("import torch\ndef ftn_pytorch_forward(): raise torch.OutOfMemoryError('full')\n")
    assert described(runner)[0] == "MEMORY"
    told = "The following operation failed in the TorchScript interpreter. CUDA out of memory. Tried to allocate 1 GiB."
    runner = load(f"def ftn_pytorch_forward(): raise RuntimeError({told!r})\n")
    assert described(runner)[0] == "MEMORY"


def test_exception_that_cannot_be_printed_is_still_described(load):
    text = """
    class Broken(Exception):
        def __str__(self): raise RuntimeError("no")
    def ftn_pytorch_forward(): raise Broken
    """
    status, text = described(load(text), "f of m")
    assert status == "PYTHON"
    assert text.startswith("f of m: ")
    assert "Broken" in text


def test_exception_whose_type_lies_is_still_described():
    class Liar(Exception):
        @property
        def __class__(self):
            raise RuntimeError("no")

        @property
        def __traceback__(self):
            raise RuntimeError("no")

    status, text = program.describe_error(Liar(), "f of m")
    assert status == "PYTHON"
    assert text == "f of m: Liar (it cannot be described: RuntimeError)"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="ExceptionGroup came with Python 3.11")
def test_groups_of_exceptions_are_described_whole(load):
    runner = load("def ftn_pytorch_forward(): raise ExceptionGroup('two', [ValueError('a'), KeyError('b')])\n")
    _, text = described(runner)
    assert "ValueError: a" in text
    assert "KeyError: 'b'" in text


def test_every_status_used_is_one_of_the_header():
    header = Path(__file__).parents[2] / "src" / "ftn_pytorch.h"
    known = set(re.findall(r"FPT_ERR_(\w+) =", header.read_text()))
    sources = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    used = set(re.findall(r'FtnPytorchError\(\s*"(\w+)"', sources))
    assert {"HOOK", "SHAPE", "FILE"} <= used <= known


def test_frames_of_the_package_are_known_where_its_path_has_steps_back(tmp_path):
    """As in the command of an installation; code objects keep such a path."""
    (tmp_path / "model.py").write_text(
        "import ftn_pytorch, place\n"
        "@ftn_pytorch.recorded\n"
        "def ftn_pytorch_forward():\n"
        "    raise ValueError(place.of_user())\n"
    )
    (tmp_path / "place.py").write_text("from ftn_pytorch.recording.operations import place_of_user as of_user\n")
    code = """
import sys
sys.path[:0] = sys.argv[1:]
import program
try:
    program.call(program.load("model.py"), "ftn_pytorch_forward")
except ValueError as failure:
    print(*program.describe_error(failure, ""))
"""
    arguments = [sys.executable, "-c", code, f"{PACKAGE.parent}/../{PACKAGE.parent.name}", Path(__file__).parent]
    text = subprocess.run(arguments, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "ValueError: model.py:4" in text
    assert f'File "{tmp_path}/model.py"' in text and "/../" not in text
