# SPDX-License-Identifier: MIT
"""Types of the samples of a Replay: what they hold, and what is too large for them."""

import numpy as np
import pytest
import torch

from ftn_pytorch.kit import Replay


@pytest.mark.parametrize("kind", ["ring", "reservoir"])
@pytest.mark.parametrize(
    "dtype, fits, large, told",
    [
        (torch.float16, [65504.0, -65504.0, torch.inf, 0.0], 1e5, "100000.0"),
        (torch.float16, [1, 2, 3, 4], -70000, "-70000"),
        (torch.float32, torch.tensor([3e38, -3e38, -torch.inf, 0], dtype=torch.float64), 1e39, "1e+39"),
        (torch.complex64, torch.tensor([3e38, 1j, 0, 1], dtype=torch.complex128), 1e39j, "1e+39"),
        (torch.int8, [127, -128, 0, 1], 128, "128"),
        (torch.uint8, [255, 0, 1, 2], -1, "-1"),
    ],
)
def test_numbers_that_are_too_large_for_the_type_are_refused(fails, kind, dtype, fits, large, told):
    fits = torch.as_tensor(fits)
    wrong = fits.clone()
    wrong[1] = large
    replay = Replay(10, kind, dtype=dtype)
    with fails("DTYPE", f"array 0 has the number {told}, which is too large for {dtype}", "wider dtype="):
        replay.add(wrong)
    replay.add(fits)
    with fails("DTYPE", told):
        replay.add(wrong)
    assert torch.equal(replay[:][0], fits.to(dtype))


def test_numbers_that_come_in_a_wider_type_than_the_first_ones_are_looked_at(fails):
    replay = Replay(10)
    replay.add(torch.ones(2, dtype=torch.float16))
    replay.add(torch.ones(2))
    with fails("DTYPE", "100000.0", "torch.float16"):
        replay.add(torch.tensor([1.0, 1e5]))
    assert len(replay) == 4


def test_a_type_that_numpy_lacks_is_exported_as_a_wider_one(tmp_path):
    x = torch.randn(5, 2).bfloat16()
    replay = Replay(10, dtype=torch.bfloat16)
    replay.add(x)
    replay.export(str(tmp_path / "samples.npz"))
    found = np.load(tmp_path / "samples.npz")["x0"]
    assert found.dtype == np.float32 and torch.equal(torch.from_numpy(found), x.float())


def test_types_are_converted_into_those_that_are_kept():
    replay = Replay(10, dtype=torch.float32)
    replay.add(torch.ones(3, 2, dtype=torch.float64), torch.ones(3))
    assert [column.dtype for column in replay.sample(2)] == [torch.float32] * 2
    replay.add(np.full((1, 2), 2.0), np.full(1, 2.0))
    assert replay[3][0].tolist() == [2, 2]
