# SPDX-License-Identifier: MIT
"""Processes that take turns: each says "ready", and then answers a line with the seconds that it took."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence


def start(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """A process that is ready; ``environment``: variables that it gets beside those of this process."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    )
    assert process.stdout
    if process.stdout.readline().strip() != "ready":
        raise RuntimeError(f"{' '.join(command)} did not start")
    return process


def ask(process: subprocess.Popen[str], request: str) -> float:
    """Its answer to a line."""
    assert process.stdin and process.stdout
    print(request, file=process.stdin, flush=True)
    return float(process.stdout.readline())
