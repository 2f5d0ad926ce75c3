# SPDX-License-Identifier: MIT
"""Fresh processes of Python that have imported torch already: a server has, and forks them.

``run`` is for ``python -m MODULE ...`` and ``python -c CODE ...`` what ``subprocess.run`` is, in a tenth of the time.
``command`` is for what starts processes itself, such as mpirun.
What torch reads from variables when it is imported, and how a process begins or ends, is another thing there. Each
PYTHONHASHSEED has a server of its own.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import types
from collections.abc import Mapping, Sequence
from pathlib import Path

import warm_request


def run(
    arguments: Sequence[object],
    *,
    cwd: object = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 600,
    imports: tuple[str, ...] = (),
) -> subprocess.CompletedProcess:
    """What became of ``python ARGUMENTS``; TimeoutExpired as from ``subprocess.run``.

    ``imports``: what a server of its own has imported beside torch, from the PYTHONPATH of the first call.
    """
    arguments = [*map(str, arguments)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull) as nothing:
        files = {place: each.fileno() for place, each in enumerate((nothing, out, err))}
        environment = os.environ if env is None else env
        seed, path = environment.get("PYTHONHASHSEED", "random"), environment["PYTHONPATH"] if imports else ""
        server = _server(seed, imports, path)
        with warm_request.ask(server.address, arguments, str(cwd or Path.cwd()), environment, files) as asked:
            asked.settimeout(timeout)
            try:
                code = warm_request.exit_code(asked)
            except TimeoutError:
                raise subprocess.TimeoutExpired(arguments, timeout) from None
        texts = [(each.seek(0), each.read().decode())[1] for each in (out, err)]
    return subprocess.CompletedProcess([sys.executable, *arguments], code, *texts)


def command(arguments: Sequence[object]) -> list[str]:
    """In place of ``python ARGUMENTS``: a process that lends its files to one of the server, and ends as that does."""
    return [sys.executable, "-IS", warm_request.__file__, _server().address, *map(str, arguments)]


@functools.cache
def _server(hash_seed: str = "random", imports: tuple[str, ...] = (), path: str = "") -> _Server:
    server = _Server(hash_seed, imports, path)
    atexit.register(server.end)
    return server


class _Server:
    """The process that forks, as the tests see it."""

    def __init__(self, hash_seed: str, imports: tuple[str, ...], path: str) -> None:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, **({"PYTHONPATH": path} if imports else {})}
        self._folder = tempfile.TemporaryDirectory()
        self.address = f"{self._folder.name}/server"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen(100)
            command = [sys.executable, __file__, str(listener.fileno()), *imports]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()], env=environment
            )

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def _serve(listener: socket.socket) -> None:
    import torch  # noqa: F401
    import torch._dynamo  # noqa: F401  (the first optimizer imports it)

    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the memory of all objects
    keepers = set()
    while listener in select.select([sys.stdin, listener], [], [])[0]:
        with listener.accept()[0] as asked:
            keepers.add(keeper := os.fork())
            if keeper == 0:
                listener.close()
                _keep(asked)
        keepers -= {each for each in keepers if os.waitpid(each, os.WNOHANG)[0]}
    for keeper in keepers:
        os.waitpid(keeper, 0)


def _keep(asked: socket.socket) -> None:
    """Start what is asked for, tell its exit code, and kill it where nobody waits for that any more."""
    _, files, *_ = socket.recv_fds(asked, 1, 100)
    *request, places = json.loads(asked.makefile().readline())
    child = os.fork()
    if child == 0:
        asked.close()
        _become(*request, dict(zip(places, files)))
    for file in files:
        os.close(file)
    ended = os.pidfd_open(child)
    if ended not in select.select([asked, ended], [], [])[0]:
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        asked.sendall(f"{code}\n".encode())
    finally:
        os._exit(0)


def _become(
    arguments: list[str], folder: str, environment: dict[str, str], cores: list[int], files: dict[int, int]
) -> None:
    """Run the command in this process, which was forked for it, and end."""
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.sched_setaffinity(0, cores)
    _number(files)
    is_file = not arguments[0].startswith("-")
    folders = [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    # In place of the folder of this file
    sys.path[:1] = [os.path.dirname(arguments[0]) if is_file else "", *folders]
    code: object = 0
    try:
        if is_file:
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")
        elif arguments[0] == "-m":
            sys.argv[1:] = arguments[2:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = ["-c", *arguments[2:]]
            sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(arguments[1], "<string>", "exec"), vars(sys.modules["__main__"]))
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


def _number(files: dict[int, int]) -> None:
    """Give files the numbers that they are to have."""
    beyond = [fcntl.fcntl(file, fcntl.F_DUPFD, max(files) + 1) for file in files.values()]
    for file in files.values():
        os.close(file)
    for file, number in zip(beyond, files):
        os.dup2(file, number)
        os.close(file)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
