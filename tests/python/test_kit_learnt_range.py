# SPDX-License-Identifier: MIT
"""A range that is learnt as a part of a network. Exported to each format: test_learnt_range.f90."""

import pytest
import torch

from ftn_pytorch.kit import Guard, LearntRange

nan, inf = float("nan"), float("inf")


def learnt(columns=3):
    made = LearntRange(columns)
    made.learn(torch.tensor([[0.0, -1.0, 0.1], [2.0, 1.0, 0.3]])[:, :columns])
    return made


def test_rows_with_a_value_that_was_not_learnt():
    x = torch.tensor([[1.0, 0.0, 0.2], [2.1, 0.0, 0.2], [1.0, 0.0, nan], [-inf, 0.0, 0.2], [2.0, -1.0, 0.3]])
    assert learnt()(x).tolist() == [False, True, True, True, False]
    assert learnt()(x.reshape(5, 1, 3)).shape == (5, 1)
    assert learnt().found(x)[1].tolist() == [True, False, False]
    assert LearntRange(3)(x).all(), "before anything was learnt"
    guard = Guard()
    guard.learn_range(torch.tensor([[0.0, -1.0, 0.1], [2.0, 1.0, 0.3]]))
    assert torch.equal(guard.outside(x), learnt()(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_was_learnt_stays_inside_in_any_type(dtype):
    x = torch.randn(500, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    made = LearntRange(4)
    for part in x.split([1, 0, 99, 400]):
        made.learn(part)
    assert torch.equal(made.low, x.amin(0)) and torch.equal(made.high, x.amax(0))
    assert not made(x.to(dtype)).any() and made((1.1 * x).to(dtype)).any()


def test_it_is_a_part_of_the_network_and_of_its_state():
    net = torch.nn.Sequential(learnt())
    other = torch.nn.Sequential(LearntRange(3))
    other.load_state_dict(net.state_dict())
    assert torch.equal(other[0].high, net[0].high) and list(net.parameters()) == []
    with torch.inference_mode():
        net[0].learn(torch.full((2, 3), 9.0))
    assert net[0].high.tolist() == [9.0] * 3


def test_what_does_not_fit_is_refused_and_nothing_learnt_of_it(fails):
    made = learnt()
    with fails("SHAPE", "LearntRange: inputs have shape (2, 4), expected is (n, 3)"):
        made.learn(torch.zeros(2, 4))
    with fails("DTYPE", "torch.complex64"):
        made.learn(torch.zeros(2, 3, dtype=torch.complex64))
    for bad in (nan, inf, -inf):
        with fails("ARGUMENT", "not finite"):
            made.learn(torch.tensor([[9.0, 9.0, 9.0], [9.0, bad, 9.0]]))
    assert made.high.tolist() == learnt().high.tolist()
    with fails("ARGUMENT", "columns is 0"):
        LearntRange(0)
