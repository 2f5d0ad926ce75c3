# SPDX-License-Identifier: MIT
"""The other end of driver.cpp: a process that calls the C interface, told what to do over a pipe."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

IN, OUT, COPY = 0, 1, 2
ADOPTS = "import ctypes, sys; sys.exit(ctypes.{}(sys.argv[1]).driver_main())"


def heed_interrupts() -> None:
    """What a shell starts in the background ignores interrupts, and so would a process that this test starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Died(AssertionError):
    """The driven process ended, with what it was told and how to tell it again."""


class Driver:
    """A process with the library. ``way``: "embedded", or how a running Python calls it: "CDLL", "PyDLL".

    All lines are kept, so that one command repeats the failure.
    """

    def __init__(self, build: Path, way: str, log: Path, environment: dict[str, str] | None = None) -> None:
        python = os.environ.get("FTN_PYTORCH_PYTHON", sys.executable)
        embedded = way == "embedded"
        self.command = (
            [str(build / "bin" / "driver")]
            if embedded
            else [python, "-c", ADOPTS.format(way), str(build / "bin" / "libdriver_library.so")]
        )
        self.log = log
        self._lines = open(log, "w")  # noqa: SIM115  closed with the driver
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "FTN_PYTORCH_PYTHON": python, **(environment or {})},
            preexec_fn=heed_interrupts,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def replay(self) -> str:
        return f"{shlex.join(self.command)} < {self.log}"

    def send(self, line: str) -> None:
        self._lines.write(line + "\n")
        self._lines.flush()
        self._process.stdin.write(line + "\n")

    def receive(self) -> list[str]:
        answer = self._process.stdout.readline()
        if not answer:
            raise Died(f"exit code {self._process.wait()}; replay: {self.replay()}")
        return answer.split()

    def tell(self, *words: object) -> list[str]:
        self.send(" ".join(map(str, words)))
        return self.receive()

    def outcome(self, *words: object) -> tuple[int, str]:
        """Status and text."""
        status, text = self.tell(*words)[:2]
        return int(status), unhex(text).decode()

    def end(self) -> int:
        self._process.stdin.close()
        rest = self._process.stdout.read()
        code = self._process.wait()
        self._lines.close()
        return code if not rest.strip() else f"{code}, and wrote {rest!r}"

    def kill(self, number: int) -> int:
        self._process.send_signal(number)
        return self._process.wait()

    # ---- commands

    def load(self, module: int, file: os.PathLike | str, **options: str) -> tuple[int, str]:
        words = [word for name, value in options.items() for word in (name, to_hex(value.encode()))]
        return self.outcome("load", module, to_hex(os.fsencode(file)), *words)

    def block(self, block: int, content: bytes) -> None:
        assert self.tell("block", block, to_hex(content)) == ["0"]

    def read(self, block: int) -> bytes:
        return unhex(self.tell("read", block)[1])

    def array(self, arg: int, block: int, offset: int, dtype: int, extents, strides, access: int, name: str = ""):
        return self.outcome(
            "array", arg, block, offset, dtype, len(extents), *extents, *strides, access, to_hex(name.encode())
        )

    def text(self, arg: int, text: str | bytes, name: str = "") -> tuple[int, str]:
        raw = text if isinstance(text, bytes) else text.encode()
        return self.outcome("text", arg, to_hex(raw), to_hex(name.encode()))

    def call(self, module: int, function: str, inputs=(), outputs=()) -> tuple[int, str]:
        return self.outcome("call", module, to_hex(function.encode()), len(inputs), *inputs, len(outputs), *outputs)

    def warnings(self) -> str:
        return unhex(self.tell("warnings")[1]).decode()


def to_hex(content: bytes) -> str:
    return content.hex() or "-"


def unhex(text: str) -> bytes:
    return b"" if text == "-" else bytes.fromhex(text)
