# SPDX-License-Identifier: MIT
"""Calls of a script in a fresh load, with a checkpoint after them or before them."""

from ftn_pytorch import _embed


def run(load, text, calls, place=None, restores=False):
    """What step() of a script gives, bit for bit; saved to ``place``, or restored from it first."""
    runner = load(text)
    if restores:
        _embed.restore(runner, place)
    function = _embed.bind(runner, "step", 0)[0]
    results = [function().hex() for _ in range(calls)]
    if place and not restores:
        _embed.save(runner, place)
    return results
