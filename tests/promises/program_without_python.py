# SPDX-License-Identifier: MIT
"""The other end of tests/c/run_recording.c: a process without Python that runs saved recordings as it is told."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

import torch

from ftn_pytorch.recording.arguments import leaves
from ftn_pytorch.values.dtypes import TABLE

CODES = {f"torch.{each.name}": each.code for each in TABLE if each.code is not None}
IN, OUT, TEXT = 0, 1, 10
SCALARS = {bool: (CODES["torch.bool"], "?", 1), int: (CODES["torch.int64"], "q", 8), float: (7, "d", 8)}
SECONDS = 600


class Failed(Exception):
    """What the library said."""


class Program:
    """A process that lasts, one file after the other."""

    def __init__(self, build: Path) -> None:
        self._process = subprocess.Popen(
            [build / "tests" / "c" / "run_recording"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "FTN_PYTORCH_PYTHON": "/nonexistent", "OMP_NUM_THREADS": "1"},
        )

    def ask(self, *words: str) -> str:
        """The answer to a command. A process that gives none in time is killed, and the pipe ends."""
        watch = threading.Timer(SECONDS, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write("\t".join(words) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not answer:
            raise AssertionError(f"the program ended with {self._process.wait()} after {words}")
        return answer.rstrip("\n")

    def tell(self, *words: str) -> None:
        """The same where all must go well; Failed with what the library said."""
        answer = self.ask(*words)
        if answer != "ok":
            raise Failed(answer)

    def has_python(self) -> bool:
        return self.ask("python") != "0"

    def end(self) -> int:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        return self._process.wait(SECONDS)

    def call(self, name: str, args: tuple, named: dict[str, Any], wanted: list[Any], written: set[int], folder: Path):
        """Results like ``wanted``, and the arguments afterwards. ``written``: which tensors may be written."""
        given, found = folder / "given.bin", folder / "found.bin"
        memory = Memory()
        described = b"".join(memory.argument(each, name, written) for name, each in _named(args, named))
        count = len(list(leaves((args, named))))
        results = b"".join(_wanted(each) for each in wanted)
        given.write_bytes(memory.content() + _pack(count) + described + _pack(len(wanted)) + results)
        self.tell("call", name, str(given), str(found))
        content = found.read_bytes()
        begin = memory.take(content)
        made = []
        for each in wanted:
            value, begin = _result(each, content, begin)
            made.append(value)
        assert begin == len(content)
        return made


def lacks(value: Any) -> bool:
    """Whether Fortran has no argument like one of these."""
    return any(
        str(each.dtype) in ("torch.uint8", "torch.float16", "torch.bfloat16") or str(each.dtype) not in CODES
        if isinstance(each, torch.Tensor)
        else type(each) is not str and type(each) not in SCALARS
        for each in leaves(value)
    )


class Memory:
    """Storages of arguments, each once, so that those that share memory do so in the program."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[int, Any]] = {}
        self._tensors = 0

    def argument(self, value: Any, name: str, written: set[int]) -> bytes:
        label = name.encode()
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            block, _ = self._storages.setdefault(storage.data_ptr(), (len(self._storages), storage))
            size = value.element_size()
            # a scalar that is an input would arrive as a number
            access = OUT if self._tensors in written or value.ndim == 0 else IN
            self._tensors += 1
            axes = [*reversed(value.shape), *(size * stride for stride in reversed(value.stride()))]
            head = (CODES[str(value.dtype)], access, block, value.storage_offset() * size, value.ndim)
            return _pack(*head, *axes, len(label)) + label
        if isinstance(value, str):
            return _pack(TEXT, IN, -1, len(value.encode())) + value.encode() + _pack(len(label)) + label
        code, form, _ = SCALARS[type(value)]
        return _pack(code, IN, -1) + struct.pack(form, value).ljust(8, b"\0") + _pack(len(label)) + label

    def content(self) -> bytes:
        parts = [_bytes(storage) for _, storage in self._storages.values()]
        return _pack(len(parts)) + b"".join(_pack(len(each)) + each for each in parts)

    def take(self, content: bytes) -> int:
        """What the program has made of the memory; where that ends."""
        begin = 0
        for _, storage in self._storages.values():
            size = storage.nbytes()
            if size:
                torch.tensor([], dtype=torch.uint8).set_(storage).copy_(
                    torch.frombuffer(bytearray(content[begin : begin + size]), dtype=torch.uint8)
                )
            begin += size
        return begin


def _named(args: tuple, named: dict[str, Any]) -> list[tuple[str, Any]]:
    return [("", each) for each in leaves(args)] + [*named.items()]


def _wanted(value: Any) -> bytes:
    if isinstance(value, torch.Tensor):
        return _pack(CODES[str(value.dtype)], value.element_size(), value.ndim)
    if type(value) not in SCALARS:  # a text, or what is refused before anybody asks for it
        return _pack(TEXT, 0, 0)
    code, _, size = SCALARS[type(value)]
    return _pack(code, size, -1)


def _result(like: Any, content: bytes, begin: int) -> tuple[Any, int]:
    if isinstance(like, torch.Tensor):
        shape = struct.unpack_from(f"={like.ndim}q", content, begin)[::-1]
        begin += 8 * like.ndim
        end = begin + torch.Size(shape).numel() * like.element_size()
        data = torch.frombuffer(bytearray(content[begin:end]), dtype=torch.uint8) if end > begin else torch.empty(0)
        return data.view(like.dtype).reshape(shape) if end > begin else like.new_empty(shape), end
    if isinstance(like, str):
        end = begin + len(like.encode())
        return content[begin:end].decode(), end
    _, form, size = SCALARS[type(like)]
    return struct.unpack_from(form, content, begin)[0], begin + size


def _bytes(storage: Any) -> bytes:
    return torch.tensor([], dtype=torch.uint8).set_(storage).numpy().tobytes()


def _pack(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)
