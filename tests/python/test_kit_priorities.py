# SPDX-License-Identifier: MIT
"""The tree behind prioritised samples: proportions, restarts to the last bit, and rounding at its edges."""

import pytest
import torch

from ftn_pytorch.kit import Replay, priorities
from ftn_pytorch.kit.priorities import Priorities

CAPACITIES = [1, 2, 32, 33, 1024, 1025, 40_000]


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_rows_come_in_proportion(capacity):
    values = torch.arange(capacity, dtype=torch.float64) % 7 + 1
    tree = Priorities(capacity)
    tree.set(torch.arange(capacity), values)
    assert torch.equal(tree.of(slice(capacity)), values)
    assert tree.total() == values.sum()  # of small integers: exactly
    drawn = tree.draw(70_000, torch.Generator().manual_seed(1))
    assert drawn.shape == (70_000,) and 0 <= drawn.min() <= drawn.max() < capacity
    counts = torch.zeros(7).double().index_add_(0, drawn % 7, torch.ones(70_000).double())
    shares = torch.zeros(7).double().index_add_(0, torch.arange(capacity) % 7, values) / values.sum()
    torch.testing.assert_close(counts / 70_000, shares, atol=0.01, rtol=0)


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_a_tree_made_at_once_is_that_of_many_changes(capacity):
    random = torch.Generator().manual_seed(2)
    changed = Priorities(capacity)
    changed.set(torch.arange(capacity), 1.0)
    for n in (1, 0, 3, 64, 257, 5000):
        rows = torch.randperm(capacity, generator=random)[:n]
        changed.set(rows, torch.rand(len(rows), generator=random, dtype=torch.float64) * 1e3)
    made = Priorities(capacity)
    made.set(torch.arange(capacity), changed.of(slice(capacity)).clone())
    assert made.total() == changed.total()
    assert all(torch.equal(one, other) for one, other in zip(made._bounds, changed._bounds))
    draws = [tree.draw(1000, torch.Generator().manual_seed(3)) for tree in (made, changed)]
    assert torch.equal(*draws)


@pytest.mark.parametrize("there", [1, 31, 32, 33, 1000, 1025])
@pytest.mark.parametrize("mass", [0.0, 1 - 2**-53, 1.0])
def test_rounding_leads_to_no_row_that_is_not_there(there, mass, monkeypatch):
    tree = Priorities(40_000)
    tree.set(torch.arange(there), torch.logspace(-8, 8, there, dtype=torch.float64) / 3)
    monkeypatch.setattr(priorities.torch, "rand", lambda *shape, **_: torch.full(shape, mass, dtype=torch.float64))
    (row,) = tree.draw(1, torch.Generator())
    assert row == (0 if mass == 0 else there - 1)


def test_no_rows_have_no_weights():
    replay = Replay(4, kind="prioritised")
    replay.add(torch.zeros(2, 1))
    assert torch.equal(replay.weights(replay.draw(0)), torch.empty(0, dtype=torch.float64))
