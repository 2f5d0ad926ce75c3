# SPDX-License-Identifier: MIT
"""The one comparison of arrays with a tolerance."""

import math

import pytest

from ftn_pytorch.commands import differences

torch = pytest.importorskip("torch")

nan, inf = math.nan, math.inf


@pytest.mark.parametrize(
    ("found", "wanted", "relative"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([100.0, 1.0], [100.0, 2.0], 0.01),
        ([0.0], [1e-3], 1e-3),
        ([nan, 1.0], [nan, 1.0], 0.0),
        ([nan, 1.0], [1.0, 1.0], inf),
        ([inf, 1.0], [inf, 2.0], 0.5),
        ([inf, 1.0], [-inf, 1.0], inf),
        ([1.0], [1.0, 2.0], inf),
        ([1, 2], [1.0, 2.0], inf),
        ([1 + 2j], [1 + 1j], 1 / abs(1 + 1j)),
        ([True, False], [True, True], 1.0),
        ([], [], 0.0),
    ],
)
def test_differences_are_relative_to_the_largest_value(found, wanted, relative):
    found, wanted = torch.tensor(found), torch.tensor(wanted)
    assert differences.between(found, wanted).relative == pytest.approx(relative)
    assert differences.between(found.numpy(), wanted).relative == pytest.approx(relative)


def test_small_values_count_where_that_is_asked_for():
    found, wanted = torch.tensor([1e-20, 2e-20]), torch.tensor([1e-20, 1e-20])
    assert differences.between(found, wanted).relative < 1e-19
    assert differences.between(found, wanted, least=0.0) == pytest.approx((1e-20, 1.0))
    assert differences.between(found, torch.zeros(2), least=0.0).relative == inf


def test_integers_are_compared_where_doubles_cannot_tell_them_apart():
    large = torch.tensor(2**60)
    assert differences.between(large, large + 1).relative > 0 == differences.tolerance(large)


def test_types_that_numpy_lacks():
    x = torch.tensor([1.0, 2.0], dtype=torch.bfloat16, requires_grad=True)
    assert differences.between(2 * x, x) == (2.0, 1.0) and differences.tolerance(x) == 0.1
    assert differences.between(torch.tensor([1j]).conj(), torch.tensor([-1j])) == (0.0, 0.0)
