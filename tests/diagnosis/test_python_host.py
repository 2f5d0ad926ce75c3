# SPDX-License-Identifier: MIT
"""The host program is Python, which loads the library by ctypes: how it ends."""

import subprocess
import sys
import textwrap
from pathlib import Path

HOST = """
    import ctypes, sys, threading
    library = ctypes.CDLL(sys.argv[1])
    name = sys.argv[2].encode()
    module = ctypes.c_int64()
    assert library.fpt_module_load(ctypes.byref(module), 0, name, ctypes.c_int64(len(name)), None, 0, None, 0) == 0

    def call():
        return library.fpt_module_call(module, b"work", ctypes.c_int64(4), None, 0, None, 0, None)

    assert call() == 0
"""

# Until Python ends, and beyond: threads that nobody waits for are in a call, wait for the lock, or come back later.
DAEMONS = """
    import time

    begin = threading.Event()

    def call_for_ever():
        begin.wait()
        while True:
            call()

    for _ in range(64):
        threading.Thread(target=call_for_ever, daemon=True).start()
    begin.set()
    time.sleep(0.5)
"""

# Registered before the library is loaded, and therefore run after what that does at the end.
CALL_LATE = """
    import atexit, threading

    python_ends, has_called = threading.Event(), threading.Event()

    def call_late():
        python_ends.wait()
        library.fpt_status_name.restype = ctypes.c_char_p
        print(library.fpt_status_name(call()).decode())
        has_called.set()

    def let_it_call():
        python_ends.set()
        has_called.wait()

    atexit.register(let_it_call)
    threading.Thread(target=call_late, daemon=True).start()
"""

RELEASE_IN_THE_END = """
    class Owner:
        def __del__(self, free=library.fpt_module_free, handle=module):
            free(handle)

    sys.modules["kept"] = Owner()
"""


def end_of(build_dir: Path, tmp_path: Path, host: str) -> subprocess.CompletedProcess:
    script, program = tmp_path / "weather.py", tmp_path / "system.py"
    script.write_text("def work(): sum(range(20_000))\n")
    program.write_text(textwrap.dedent(host))
    (library,) = build_dir.glob("lib*/libftn_pytorch.so")
    return subprocess.run([sys.executable, program, library, script], capture_output=True, text=True, timeout=600)


def test_a_module_may_be_released_while_python_ends(build_dir, tmp_path) -> None:
    done = end_of(build_dir, tmp_path, HOST + RELEASE_IN_THE_END)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_call_begins_while_python_ends(build_dir, tmp_path) -> None:
    done = end_of(build_dir, tmp_path, CALL_LATE + HOST)
    assert (done.returncode, done.stdout, done.stderr) == (0, "FTN_PYTORCH_ERR_INTERPRETER\n", "")


def test_threads_may_call_while_python_ends(build_dir, tmp_path) -> None:
    for _ in range(5):
        done = end_of(build_dir, tmp_path, HOST + DAEMONS)
        assert (done.returncode, done.stderr) == (0, "")
