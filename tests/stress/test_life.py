# SPDX-License-Identifier: MIT
"""Ends that a script or a user brings about, files that change while a program runs, what is loaded from where."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from driving import Died

OK, FILE, SYNTAX, PYTHON, MEMORY = 0, 2, 4, 9, 27


@pytest.fixture
def write(tmp_path):
    def to(name: str, source: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return path

    return to


def wait_for(path: Path) -> None:
    """Until a script has said that it is where it should be; a driver that has died never does."""
    for _ in range(6_000):
        if path.exists():
            return
        time.sleep(0.01)
    pytest.fail("the script has not got there in a minute")


# ---- ends


def test_exit_of_the_operating_system_ends_the_process_at_once(start, write, way):
    driver = start(way)
    driver.load(0, write("leaves.py", "import atexit, os\natexit.register(print, 'no')\ndef leave(): os._exit(7)\n"))
    with pytest.raises(Died, match="exit code 7"):
        driver.call(0, "leave")


def test_exit_of_python_is_an_error_like_any_other(start, write, way):
    driver = start(way)
    driver.load(0, write("leaves.py", "import sys\ndef leave(): sys.exit(7)\ndef stays(): pass\n"))
    status, text = driver.call(0, "leave")
    assert status == PYTHON and "SystemExit: 7" in text
    assert driver.call(0, "stays") == (OK, "")


WAITS = """
    import time
    from pathlib import Path
    def wait(path):
        Path(path).touch()
        time.sleep(600)
    def stays(): pass
"""


def test_interrupt_during_a_long_call_ends_the_program_as_it_ends_any(start, write, tmp_path):
    driver = start("embedded")
    driver.load(0, write("waits.py", WAITS))
    driver.text(0, str(tmp_path / "waiting"))
    driver.send("call 0 77616974 1 0 0")
    wait_for(tmp_path / "waiting")
    assert driver.kill(signal.SIGINT) == -signal.SIGINT


@pytest.mark.parametrize("way", ["CDLL", "PyDLL"])
def test_interrupt_during_a_long_call_is_an_exception_where_python_is_the_program(start, write, tmp_path, way):
    driver = start(way)
    driver.load(0, write("waits.py", WAITS))
    driver.text(0, str(tmp_path / "waiting"))
    driver.send("call 0 77616974 1 0 0")
    wait_for(tmp_path / "waiting")
    os.kill(driver.pid, signal.SIGINT)
    status, text = driver.receive()
    assert int(status) == PYTHON and b"KeyboardInterrupt" in bytes.fromhex(text)
    assert driver.call(0, "stays") == (OK, "")


def test_failure_in_a_thread_of_the_script_stays_there(start, write, way):
    driver = start(way)
    driver.load(
        0,
        write(
            "threads.py",
            """
        import threading
        threading.excepthook = lambda failure: seen.append(failure.exc_value)
        seen = []
        def start():
            thread = threading.Thread(target=lambda: 1 / 0)
            thread.start()
            thread.join()
            assert isinstance(seen[0], ZeroDivisionError)
    """,
        ),
    )
    assert driver.call(0, "start") == (OK, "")


def test_memory_that_runs_out_in_python_is_told_and_survived(start, write, way):
    driver = start(way)
    driver.load(
        0,
        write(
            "hungry.py",
            """
        import resource, torch
        def ftn_pytorch_setup():
            size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), resource.RLIM_INFINITY))
        def python(): return [bytearray(1 << 20) for i in range(1000)] and None
        def torch_(): return torch.ones(1 << 28) and None
        def stays(): pass
    """,
        ),
    )
    for function in ("python", "torch_", "python"):
        status, text = driver.call(0, function)
        assert status == MEMORY, text
        assert driver.call(0, "stays") == (OK, "")


# ---- files


def test_script_that_is_replaced_goes_on_until_it_is_reloaded(start, write, way):
    driver = start(way)
    source = "def f(): raise ValueError('{}')\n"
    path = write("changing.py", source.format("first"))
    assert driver.load(0, path)[0] == OK
    path.write_text("def f(:\n")
    assert "ValueError: first" in driver.call(0, "f")[1]
    assert driver.tell("reload", 0)[0] == str(SYNTAX)
    assert "ValueError: first" in driver.call(0, "f")[1]
    path.unlink()
    assert driver.tell("reload", 0)[0] == str(FILE)
    assert "ValueError: first" in driver.call(0, "f")[1]
    path.write_text(source.format("other"))
    assert driver.tell("reload", 0)[0] == str(OK)
    assert "ValueError: other" in driver.call(0, "f")[1]


def test_nothing_is_written_beside_a_script(start, write, tmp_path, way):
    write("read only/beside.py", "value = 1\n")
    path = write("read only/script.py", "import beside\ndef f(): pass\n")
    path.parent.chmod(0o555)
    try:
        driver = start(way, environment={"PYTHONDONTWRITEBYTECODE": ""})
        assert driver.load(0, path) == (OK, "")
        assert driver.call(0, "f") == (OK, "")
        assert driver.tell("reload", 0)[0] == str(OK)
        # for root, folders cannot be read-only
        found = {entry.name for entry in path.parent.iterdir()}
        assert found - {"__pycache__"} == {"beside.py", "script.py"}
        if os.geteuid() != 0:
            assert "__pycache__" not in found
        assert not list(path.parent.glob("__pycache__/script.*"))
    finally:
        path.parent.chmod(0o755)


# ---- where code comes from

EVIL = """
    from pathlib import Path
    Path(__file__).with_suffix(".loaded").touch()
"""
NAMES = [
    "numpy",
    "torch",
    "ftn_pytorch",
    "_embed",
    "sitecustomize",
    "usercustomize",
    "re",
    "threading",
    "resource",
    "_ftn_pytorch",
]


@pytest.mark.parametrize("embedded_way", ["embedded", "CDLL"])
def test_nothing_is_loaded_from_the_working_directory(build_dir, logs, write, tmp_path, embedded_way):
    """Not even where everybody may write into it, and it holds modules of the names that are imported."""
    from driving import Driver

    world = tmp_path / "world"
    for name in NAMES:
        write(f"world/{name}.py", EVIL)
    world.chmod(0o777)
    script = write(
        "own/script.py",
        """
        import re, threading
        import numpy, torch
        def ftn_pytorch_setup():
            assert numpy.ones(1)[0] == 1 and torch.ones(1)[0] == 1
    """,
    )
    before = os.getcwd()
    os.chdir(world)
    try:
        # a Python that is told to execute a text does look into the working directory, unless it is told not to
        driver = Driver(build_dir.resolve(), embedded_way, logs / "world.txt", environment={"PYTHONSAFEPATH": "1"})
    finally:
        os.chdir(before)
    assert driver.load(0, script) == (OK, "")
    assert driver.end() == 0
    assert list(world.glob("*.loaded")) == []


def test_path_of_imports_is_that_of_plain_python_and_two_folders(start, write, tmp_path):
    script = write("own/script.py", "import sys\ndef path(): raise ValueError('\\n'.join(['', *sys.path, '']))\n")
    driver = start("embedded")
    assert driver.load(0, script)[0] == OK
    _, text = driver.call(0, "path")
    found = [line for line in text.partition("Traceback")[2].splitlines() if line.startswith("/")]
    python = os.environ.get("FTN_PYTORCH_PYTHON", sys.executable)
    plain = subprocess.run(
        [python, "-P", "-c", "import sys; print(*sys.path, sep='\\n')"], capture_output=True, text=True
    )
    expected = plain.stdout.splitlines()
    assert found[0] == str(tmp_path / "own")
    (package,) = [folder for folder in found[1:] if folder not in expected]
    assert (Path(package) / "ftn_pytorch" / "_embed.py").is_file()
    assert [folder for folder in found if folder in expected] == expected
