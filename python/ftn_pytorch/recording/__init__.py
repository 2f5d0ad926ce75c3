# SPDX-License-Identifier: MIT
"""Recorded functions: forward and training steps of a script, made again without Python.

``function`` decides when a function is recorded and when a recording holds; ``build`` makes a recording of one call
with ``tape`` (the operator calls), ``watch`` (the names it depends on) and ``settings`` (numbers of optimizers);
``checking`` compares; ``library`` finds the extension that runs recordings (src/recording).
"""

from __future__ import annotations

from .function import RecordedFunction, recorded

__all__ = ["RecordedFunction", "recorded"]
