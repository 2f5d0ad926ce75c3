# SPDX-License-Identifier: MIT
"""Warm processes end as those that they stand for do, and none outlives who waits for it."""

import os
import signal
import subprocess

import pytest
import warm

pytest.importorskip("torch")

STAYS = "import time\nprint('there', flush=True)\ntime.sleep(600)"


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('why')", 1),
        ("1 / 0", 1),
        ("import os; os.kill(os.getpid(), 11)", -signal.SIGSEGV),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
    ],
)
def test_ends_are_those_of_python(code, end):
    assert warm.run(["-c", code]).returncode == end
    assert subprocess.run(warm.command(["-c", code]), capture_output=True, check=False).returncode == end


def test_a_process_that_takes_too_long_is_killed(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    output = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["-c", f"import sys\nsys.stdout = open({str(pipe)!r}, 'w')\n{STAYS}"], timeout=2)
    os.set_blocking(output, True)
    with open(output) as output:
        assert output.read() in ("there\n", ""), "its end closes the pipe; a busy machine may not have come so far"


def test_what_stands_for_a_process_takes_it_along():
    with subprocess.Popen(warm.command(["-c", STAYS]), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "there\n"
        process.terminate()
        assert process.stdout.read() == "", "its end closes the pipe"


def test_a_process_has_the_files_variables_folder_and_arguments_of_what_stands_for_it(tmp_path):
    read, write = os.pipe()
    (tmp_path / "neighbour.py").write_text("value = 7")
    file = tmp_path / "program.py"
    file.write_text(
        "import os, sys, neighbour\n"
        "found = os.environ['GIVEN'], neighbour.value, os.getcwd(), sys.stdin.read()\n"
        "os.write(int(sys.argv[1]), repr(found).encode())\n"
    )
    subprocess.run(
        warm.command([file, write]),
        input="input",
        text=True,
        cwd=tmp_path,
        env={"GIVEN": "variable"},
        pass_fds=[write],
        check=True,
    )
    os.close(write)
    with open(read) as output:
        assert output.read() == repr(("variable", 7, str(tmp_path), "input"))
