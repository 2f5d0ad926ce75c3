# SPDX-License-Identifier: MIT
"""What parts of ftn_pytorch.kit cost beside the one operation that each cannot do without.

``python benchmarks/kit/run.py``: a table on standard output. One thread; both sides of a row take turns, call by call.
"""

import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks")]
from analysis.turns import medians  # noqa: E402

from ftn_pytorch.kit import Log, Replay  # noqa: E402

SAMPLES, BATCH, CALLS = 10**6, 256, 4000


def compare(name, ours, bare):
    """Median times of both in microseconds, and their ratio."""
    one, other = medians([ours, bare], CALLS)
    print(f"| {name} | {one:.1f} | {other:.1f} | {one / other:.2f} |")


def add():
    """1 MB from memory that stays, into 256 places that have all been written before."""
    x = torch.randn(1000, 262)
    replay, plain, place = Replay(256 * len(x)), torch.zeros(256 * len(x), 262), 0
    for _ in range(256):
        replay.add(x)

    def copy():
        nonlocal place
        plain[place : place + len(x)].copy_(x)
        place = (place + len(x)) % len(plain)

    compare("`Replay.add` of 1 MB; `copy_`", lambda: replay.add(x), copy)


def sample(features):
    replay = Replay(SAMPLES)
    replay.add(torch.randn(SAMPLES, features))
    (column,) = replay[:]
    random = torch.Generator()
    rows = iter([torch.randint(SAMPLES, (BATCH,)) for _ in range(CALLS)])
    name = f"`Replay.sample` of {BATCH} out of {SAMPLES:,}, {features} features; "
    compare(f"{name}`index_select`", lambda: replay.sample(BATCH), lambda: column.index_select(0, next(rows)))
    compare(
        f"{name}`randint` and `index_select`",
        lambda: replay.sample(BATCH),
        lambda: column.index_select(0, torch.randint(SAMPLES, (BATCH,), generator=random)),
    )


def prioritised():
    replay = Replay(SAMPLES, "prioritised")
    replay.add(torch.randn(SAMPLES, 5))
    (column,) = replay[:]
    errors = torch.rand(BATCH)
    replay.prioritise(torch.arange(SAMPLES), torch.rand(SAMPLES))
    name = f"{BATCH} out of {SAMPLES:,} by priority, 5 features; `randint` and `index_select`"

    def uniformly():
        return column.index_select(0, torch.randint(SAMPLES, (BATCH,)))

    compare(f"`Replay.sample` of {name}", lambda: replay.sample(BATCH), uniformly)
    compare(f"`Replay.prioritise` of {name}", lambda: replay.prioritise(replay.draw(BATCH), errors), uniformly)


def log():
    loss, step = torch.tensor(0.123456), 0
    with tempfile.TemporaryDirectory() as folder:
        written = Log(f"{folder}/log.csv")

        def write():
            nonlocal step
            step += 1
            written.write(step, loss=loss, lr=1e-3, score=0.3 * step)

        compare("`Log.write` of three numbers, one a tensor; `item()`", write, loss.item)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("| what; beside what | us | us | ratio |\n|---|---|---|---|")
    add()
    sample(5)
    sample(128)
    prioritised()
    log()
