# SPDX-License-Identifier: MIT
"""Cases of test_kit_recorded: kit.Replay in a recorded function."""

import itertools
import os

import torch

from ftn_pytorch.kit import Replay


def replay(kind="ring", **options):
    """A Replay of few samples, to which the change adds others."""
    made = Replay(64, kind, **options)
    numbers = itertools.count()

    def add():
        for _ in range(4):
            first = 8.0 * next(numbers)
            made.add(torch.arange(first, first + 8), -torch.arange(first, first + 8))

    add()
    return made, add


def of_sample():
    samples, add = replay()
    return lambda x: x * samples.sample(3)[0].sum(), add


def of_draw():
    samples, add = replay()
    return lambda x: x * samples.draw(3).sum(), add


def of_priorities():
    samples, add = replay("prioritised")
    rows = torch.arange(4)

    def change():
        add()
        samples.prioritise(rows, torch.full((4,), 3.0))

    return lambda x: x * samples.weights(rows).sum() + samples.sample(2)[1].sum(), change


def of_prioritise():
    samples, add = replay("prioritised")
    rows = torch.arange(4)

    def step(x):
        samples.prioritise(rows, x.new_full((4,), 2.0) + x.sum())
        return x * 1

    return step, add, lambda: samples.weights(torch.arange(32))


def of_length():
    samples, add = replay()
    return lambda x: x * len(samples), add


def of_seen():
    samples, add = replay()
    return lambda x: x * samples.seen, add


def of_slice():
    samples, add = replay()
    return lambda x: x * samples[:][0].sum(), add


def of_rows():
    samples, add = replay()
    return lambda x: x * samples[[1, len(samples) - 1]][0].sum(), add


def of_add():
    samples, add = replay()

    def step(x):
        samples.add(x, 2 * x)
        return x + 1

    return step, add, lambda: samples[:][0]


def of_held_out():
    samples, add = replay(held_out=0.5)
    return lambda x: x * samples.held_out[:][1].sum(), add


def of_state():
    samples, add = replay()
    return lambda x: x * len(samples.state_dict()["columns"][0]), add


def of_load_state():
    samples, add = replay()
    states = [samples.state_dict()]

    def step(x):
        samples.load_state_dict(states[0])
        return x + 1

    return step, add, lambda: torch.tensor(samples.seen)


def of_export(tmp_path="."):
    samples, add = replay()
    name = f"samples{os.getpid()}.npz"

    def step(x):
        samples.export(name)
        return x + 1

    def result():
        from ftn_pytorch.kit import storage

        return storage.load(name)["x0"]

    return step, add, result
