# SPDX-License-Identifier: MIT
"""What parts of ftn_pytorch.kit cost beside the one operation that each cannot do without.

Both sides of a row are in one process with one thread, and take turns. Median times. It needs a built library.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import machine  # noqa: E402
from harness.serve import repeated, serve  # noqa: E402
from harness.tables import page, table  # noqa: E402
from harness.turns import Effort, pivoted, rows  # noqa: E402
from harness.worker import workers  # noqa: E402

SAMPLES, BATCH = 10**6, 256
EFFORT = Effort(seconds=0.5, rounds=50)
ADDED = 1000  # rows of 262 numbers, which are 1 MB
SAMPLED = f"`Replay.sample` of {BATCH} out of {SAMPLES:,}"
# Case: what is measured, and beside what: a way of the process, as it is called in the table
CASES = {
    "add": ("`Replay.add` of 1 MB", {"copy": "`copy_`"}),
    "sample 5": (f"{SAMPLED}, 5 features", {"rows": "`index_select`", "drawn": "`randint` and `index_select`"}),
    "sample 128": (f"{SAMPLED}, 128 features", {"rows": "`index_select`", "drawn": "`randint` and `index_select`"}),
    "prioritised": (f"{SAMPLED} by priority, 5 features", {"drawn": "`randint` and `index_select`"}),
    "prioritise": (
        f"`Replay.prioritise` of {BATCH} out of {SAMPLES:,} by priority, 5 features",
        {"drawn": "`randint` and `index_select`"},
    ),
    "log": ("`Log.write` of three numbers, one a tensor", {"item": "`item()`"}),
}


def measure(chosen, keep):
    environment = {**machine.worker_environment(), "PYTHONPATH": machine.package_of(chosen.build)}
    effort = EFFORT.of(chosen.rounds)
    with machine.described() as found:
        found["results"] = []
        for case, (_, besides) in CASES.items():
            with workers({"kit": [sys.executable, __file__, case]}, environment, machine.last_core()) as started:
                ways = {way: (started["kit"], way) for way in ("ours", *besides)}
                found["results"] += rows({"case": case}, ways, effort)
            keep(found)
    return found


def markdown(found):
    lines = []
    for (case,), times in pivoted(found["results"], ["case"]).items():
        what, besides = CASES[case]
        for way, beside in besides.items():
            ours, bare = times["ours"]["median"], times[way]["median"]
            lines.append((f"{what}; {beside}", f"{ours:.1f}", f"{bare:.1f}", f"{ours / bare:.2f}"))
    return page("Parts of the kit", found, table(("what; beside what", "us", "us", "ratio"), lines))


def add():
    """Into places that have all been written before, from memory that stays."""
    x = torch.randn(ADDED, 262)
    replay, plain, place = Replay(BATCH * ADDED), torch.zeros(BATCH * ADDED, 262), 0
    for _ in range(BATCH):
        replay.add(x)

    def copy():
        nonlocal place
        plain[place : place + ADDED].copy_(x)
        place = (place + ADDED) % len(plain)

    return {"ours": lambda: replay.add(x), "copy": copy}


def sample(features, kind="ring", sets_priorities=False):
    replay = Replay(SAMPLES, kind)
    replay.add(torch.randn(SAMPLES, features))
    (column,) = replay[:]
    if kind == "prioritised":
        replay.prioritise(torch.arange(SAMPLES), torch.rand(SAMPLES))
    random, errors, place = torch.Generator(), torch.rand(BATCH), -1
    chosen = torch.randint(SAMPLES, (4000, BATCH))

    def rows():
        nonlocal place
        place = (place + 1) % len(chosen)
        return column.index_select(0, chosen[place])

    def drawn():
        return column.index_select(0, torch.randint(SAMPLES, (BATCH,), generator=random))

    def prioritise():
        return replay.prioritise(replay.draw(BATCH), errors)

    return {"ours": prioritise if sets_priorities else lambda: replay.sample(BATCH), "rows": rows, "drawn": drawn}


def log():
    loss, step, written = torch.tensor(0.123456), 0, Log(f"{folder}/log.csv")

    def write():
        nonlocal step
        step += 1
        written.write(step, loss=loss, lr=1e-3, score=0.3 * step)

    return {"ours": write, "item": loss.item}


MAKERS = {
    "add": add,
    "sample 5": lambda: sample(5),
    "sample 128": lambda: sample(128),
    "prioritised": lambda: sample(5, "prioritised"),
    "prioritise": lambda: sample(5, "prioritised", sets_priorities=True),
    "log": log,
}

if __name__ == "__main__":
    import torch

    from ftn_pytorch.kit import Log, Replay

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        serve({way: repeated(function) for way, function in MAKERS[sys.argv[1]]().items()})
