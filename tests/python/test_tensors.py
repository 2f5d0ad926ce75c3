# SPDX-License-Identifier: MIT
"""What the core asks for about tensors that Fortran holds."""

import pytest

from ftn_pytorch import tensors

torch = pytest.importorskip("torch")


def test_adapted_tensors_keep_graph_and_memory_where_they_can():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert tensors.adapt(x, None, False, False) is x
    turned = tensors.adapt(x, None, True, False)
    assert turned.shape == (3, 2) and turned.data_ptr() == x.data_ptr() and turned.grad_fn is not None
    wide = tensors.adapt(x, "float64", True, False)
    assert wide.dtype == torch.float64 and wide.shape == (3, 2) and wide.requires_grad
    assert tensors.adapt(x, "float32", False, False) is x
    for dtype in (None, "float32"):
        copied = tensors.adapt(x, dtype, False, True)
        assert copied.data_ptr() != x.data_ptr() and torch.equal(copied, x) and copied.requires_grad


def test_reversed_view_of_every_rank():
    assert tensors.reversed_view(torch.zeros(())).shape == ()
    assert tensors.reversed_view(torch.zeros(2, 3, 4)).shape == (4, 3, 2)


def test_values_are_written_through_with_their_graph():
    memory = torch.zeros(3)
    x = torch.ones(3, requires_grad=True)
    tensors.write_through(memory, x * 2, True, False)
    assert memory.tolist() == [2, 2, 2] and memory.requires_grad
    tensors.write_through(memory, x * 3, True, False)
    memory.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_overlapping_values_are_copied_first():
    memory = torch.arange(4.0)
    tensors.write_through(memory[1:], memory[:3], True, True)
    assert memory.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("same_layout", [True, False])
def test_nothing_is_broadcast_or_converted(fails, same_layout):
    memory = torch.zeros(2, 3)
    order = "" if same_layout else ", Fortran (3, 2)"
    with fails("SHAPE", f"the array is float32 (2, 3){order}, and", "float32 (3,); nothing is broadcast or converted"):
        tensors.write_through(memory, torch.ones(3), same_layout, False)
    with fails("DTYPE", f"float64 (2, 3){order}; nothing is broadcast or converted"):
        tensors.write_through(memory, torch.ones(2, 3, dtype=torch.float64), same_layout, False)
    assert memory.sum() == 0


def test_operands_are_described_in_both_orders():
    text = tensors.describe_operands(torch.zeros(2, 3), 1.5, False)
    assert text == "  left: float32 (2, 3), Fortran (3, 2)\n  right: 1.5"
    assert tensors.describe_operands(1, torch.zeros(2, 3), True) == "  left: 1\n  right: float32 (2, 3)"
