# SPDX-License-Identifier: MIT
"""How ``warm`` is asked for a process. As a program, what stands for that process: see ``warm.command``.

It starts in hundredths of a second, so it imports little.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence


def ask(
    address: str, arguments: Sequence[str], folder: str, environment: Mapping[str, str], files: Mapping[int, int]
) -> socket.socket:
    """Where the exit code will come; the process is killed when this is closed. files: their numbers there and here."""
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(address)
    socket.send_fds(asked, [b"\n"], list(files.values()))
    cores = sorted(os.sched_getaffinity(0))
    asked.sendall(json.dumps([arguments, folder, dict(environment), cores, list(files)]).encode() + b"\n")
    return asked


def exit_code(asked: socket.socket) -> int:
    """As in ``subprocess.CompletedProcess``: negative for a signal."""
    return int(asked.makefile().readline())


def _open_files() -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:  # that of the list
            continue
        found.append(int(name))
    return found


def _main(address: str, *arguments: str) -> int:
    code = exit_code(ask(address, arguments, os.getcwd(), os.environ, {each: each for each in _open_files()}))
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
