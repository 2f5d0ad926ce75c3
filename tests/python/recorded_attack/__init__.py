# SPDX-License-Identifier: MIT
"""An attack on recorded functions: small scripts whose state changes late, run recorded and as they are.

``running`` runs a case both ways and gives a verdict. ``crossing`` makes cases of places, kinds of values and ways to
reach them, ``own_optimizers`` cases of rules for a step; the folder ``cases`` has those that were written by hand.
``python recorded_attack`` in tests/python prints the verdicts.
"""

from __future__ import annotations

from .crossing import crossed
from .own_optimizers import own_optimizers, steps
from .texts import FOLDER, blocks, file

# steps that many cases have, each in place of a line of that name
_STEPS = {
    "@predict": "@recorded\ndef step(x): return net(x)",
    "@slope": """@recorded
def step(x):
    net.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    return loss""",
    "@train": """@recorded
def step(x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss""",
}


def by_hand() -> dict[str, str]:
    """The cases that were written by hand, by name."""
    text = "".join(each.read_text() for each in sorted((FOLDER / "cases").glob("*.txt")))
    return {**own_optimizers(), **blocks(_with_steps(text))}


def recordable() -> dict[str, str]:
    """Steps that must be recorded, by name."""
    return blocks(_with_steps(file("recordable.txt")))


def _with_steps(text: str) -> str:
    for line, step in _STEPS.items():
        text = text.replace(f"\n{line}\n", f"\n{step}\n")
    return text


__all__ = ["by_hand", "crossed", "recordable", "steps"]
