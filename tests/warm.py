# SPDX-License-Identifier: MIT
"""Fresh processes of Python that have imported torch already: a server has, and forks them.

``run`` is for ``python -m MODULE ...`` and ``python -c CODE ...`` what ``subprocess.run`` is, in a tenth of the time.
What torch reads from variables when it is imported, and how a process begins or ends, is another thing there.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
import types
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(
    arguments: Sequence[object], *, cwd: object = None, env: Mapping[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess:
    """What became of ``python ARGUMENTS``; TimeoutExpired as from ``subprocess.run``."""
    arguments = [*map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("stdout", "stderr")]
        request = [arguments, str(cwd or Path.cwd()), dict(os.environ if env is None else env), [*map(str, streams)]]
        code = _server().ask(request, timeout)
        out, err = (stream.read_text() for stream in streams)
    return subprocess.CompletedProcess([sys.executable, *arguments], code, out, err)


@functools.cache
def _server() -> _Server:
    server = _Server()
    atexit.register(server.end)
    return server


class _Server:
    """The process that forks, as the tests see it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask(self, request: object, timeout: float) -> int:
        """Exit code, negative for a signal."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([*request, timeout]) + "\n")
        code = json.loads(self._process.stdout.readline())
        if code is None:
            raise subprocess.TimeoutExpired(request[0], timeout)
        return code

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def _serve() -> None:
    import torch  # noqa: F401
    import torch._dynamo  # noqa: F401  (the first optimizer imports it)

    signal.signal(signal.SIGALRM, lambda *_: None)
    for line in sys.stdin:
        arguments, folder, environment, streams, timeout = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(arguments, folder, environment, streams)
        print(json.dumps(_end_of(child, timeout)), flush=True)


def _end_of(child: int, timeout: float) -> int | None:
    """Exit code of a child; None if it had to be killed. It is the leader of a group of processes."""

    class Late(Exception):
        pass

    def stop(*_: object) -> None:
        raise Late

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(int(timeout))
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except Late:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None
    finally:
        signal.alarm(0)


def _become(arguments: list[str], folder: str, environment: dict[str, str], streams: list[str]) -> None:
    """Run the command in this process, which was forked for it, and end."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for place, stream in enumerate([os.devnull, *streams]):
        opened = os.open(stream, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, place)
        os.close(opened)
    way, what, *sys.argv[1:] = arguments
    # In place of the folder of this file
    sys.path[:1] = ["", *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    code: object = 0
    try:
        if way == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.argv[0] = "-c"
            sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), vars(sys.modules["__main__"]))
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _serve()
