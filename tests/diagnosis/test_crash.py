# SPDX-License-Identifier: MIT
"""A crash in native code leaves a Python traceback, and the program keeps its handlers."""

import signal

import pytest


def test_crash_leaves_a_traceback_and_the_signal(run, script) -> None:
    done = run(f"load={script}", "call=crash", code=-signal.SIGSEGV)
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert 'weather.py", line 18 in crash' in done.stderr


def test_fortran_program_shows_where_python_and_where_it_was_itself(run, script, cache, is_gnu_fortran) -> None:
    if "CMAKE_Fortran_COMPILER" not in cache:
        pytest.skip("built without Fortran")
    text = run(script, program="diagnosis_crash", code=-signal.SIGSEGV).stderr
    assert 'weather.py", line 18 in crash' in text
    if is_gnu_fortran:
        assert text.index("weather.py") < text.index("Backtrace for this error")


def test_handler_of_the_program_stays(run, script) -> None:
    done = run("handler", f"load={script}", "call=crash", code=7)
    assert "the program's own handler" in done.stdout
    assert done.stderr == ""


def test_ignored_signals_stay_ignored_and_others_are_shown(run, script) -> None:
    text = script.read_text().replace("ctypes.string_at(0)", "import os; os.kill(os.getpid(), 8)")
    script.write_text(text)
    done = run("ignore", f"load={script}", "call=crash", "forward")
    assert "forward FTN_PYTORCH_OK 12" in done.stdout
    assert done.stderr == ""


def test_it_can_be_switched_off(run, script) -> None:
    assert run(f"load={script}", "call=crash", FAULTHANDLER=0, code=-signal.SIGSEGV).stderr == ""


SHARES = """
import torch
from torch.distributed import HashStore, init_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, distribute_tensor

calls = 0
init_process_group("gloo", store=HashStore(), rank=0, world_size=1)

def ftn_pytorch_forward(x):
    global calls
    calls += 1
    if calls >= 3:
        shared = distribute_tensor(torch.ones(3), init_device_mesh("cpu", (1,)), [Replicate()])
        assert (shared + shared).full_tensor().tolist() == [2.0] * 3
    return 2 * x
"""


@pytest.mark.parametrize("actions", [["forward"] * 3, ["forward", "threads", "forward"]], ids=["first", "threads"])
def test_what_torch_keeps_for_a_thread_goes_with_it(run, tmp_path, actions) -> None:
    """A later call may be the first that makes such an object of Python: the thread ends with the lock held."""
    pytest.importorskip("torch")
    script = tmp_path / "shares.py"
    script.write_text(SHARES)
    assert run(f"load={script}", *actions).stdout.count("forward FTN_PYTORCH_OK 12") == 3 + 5 * ("threads" in actions)
