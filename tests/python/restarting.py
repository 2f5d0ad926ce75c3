# SPDX-License-Identifier: MIT
"""Calls of a script in a fresh load, with a checkpoint after them or before them."""

import program


def run(load, text, calls, place=None, restores=False):
    """What step() of a script gives, bit for bit; saved to ``place``, or restored from it first."""
    runner = load(text)
    if restores:
        program.restore(runner, place)
    function = program.function(runner, "step")
    results = [function().hex() for _ in range(calls)]
    if place and not restores:
        program.save(runner, place)
    return results
