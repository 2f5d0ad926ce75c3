# SPDX-License-Identifier: MIT
"""What the core asks for about tensors that Fortran holds."""

import numpy as np
import pytest

from ftn_pytorch.tensors import fortran_tensors

torch = pytest.importorskip("torch")


def test_adapted_tensors_keep_graph_and_memory_where_they_can():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert fortran_tensors.adapt(x, None, False, False) is x
    turned = fortran_tensors.adapt(x, None, True, False)
    assert turned.shape == (3, 2) and turned.data_ptr() == x.data_ptr() and turned.grad_fn is not None
    wide = fortran_tensors.adapt(x, "float64", True, False)
    assert wide.dtype == torch.float64 and wide.shape == (3, 2) and wide.requires_grad
    assert fortran_tensors.adapt(x, "float32", False, False) is x
    for dtype in (None, "float32"):
        copied = fortran_tensors.adapt(x, dtype, False, True)
        assert copied.data_ptr() != x.data_ptr() and torch.equal(copied, x) and copied.requires_grad


def test_reversed_view_of_every_rank():
    assert fortran_tensors.reversed_view(torch.zeros(())).shape == ()
    assert fortran_tensors.reversed_view(torch.zeros(2, 3, 4)).shape == (4, 3, 2)


def test_values_are_written_through_with_their_graph():
    memory = torch.zeros(3)
    x = torch.ones(3, requires_grad=True)
    fortran_tensors.write_through(memory, x * 2, True)
    assert memory.tolist() == [2, 2, 2] and memory.requires_grad
    fortran_tensors.write_through(memory, x * 3, True)
    memory.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def shared(memory: np.ndarray) -> "torch.Tensor":
    """A tensor of its own over memory, as the core makes one of each array: torch does not know what it shares."""
    return torch.from_numpy(memory)


@pytest.mark.parametrize(
    "write", [fortran_tensors.overwrite, lambda target, value: fortran_tensors.write_through(target, value, True)]
)
def test_overlapping_values_are_copied_first(write):
    before = np.random.default_rng(1).random((64, 65))
    for target, source in [
        (np.s_[:, 1:], np.s_[:, :-1]),
        (np.s_[:, :-1], np.s_[:, 1:]),
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-1], np.s_[1:]),
        (np.s_[1::2], np.s_[:-1:2]),
        (np.s_[0:0], np.s_[0:0]),
    ]:
        memory = before.copy()
        write(shared(memory[target]), shared(memory[source]))
        expected = before.copy()
        expected[target] = before[source]
        assert (memory == expected).all()


def test_values_that_do_not_overlap_are_not_copied(monkeypatch):
    memory = np.arange(6.0)
    monkeypatch.setattr(torch.Tensor, "clone", None)
    for value in (torch.from_numpy(memory[3:]), torch.tensor([4.0, 5.0, 6.0])):
        target = torch.from_numpy(memory[:3])
        fortran_tensors.overwrite(target, value)
        assert torch.equal(target, value)


def test_marked_tensors_are_resolved_and_others_stay():
    x = torch.tensor([1 + 2j, 3 - 4j])
    assert fortran_tensors.look_into(x)[1] is x
    for marked in (x.conj(), x.conj().imag):
        shown, instead = fortran_tensors.look_into(marked)
        assert shown is instead and torch.equal(shown, marked)
        assert not shown.is_conj() and not shown.is_neg()

    class Named(torch.Tensor):
        pass

    named = torch.ones(3).as_subclass(Named)
    shown, instead = fortran_tensors.look_into(named)
    assert instead is named and type(shown) is torch.Tensor and shown.data_ptr() == named.data_ptr()


def test_what_has_no_memory_to_look_into_is_refused(fails):
    with fails("RESULT_TYPE", "return x.to_dense()"):
        fortran_tensors.look_into(torch.eye(2).to_sparse())
    with fails("DEVICE", "meta"):
        fortran_tensors.look_into(torch.ones(2, device="meta"))


@pytest.mark.parametrize("same_layout", [True, False])
def test_nothing_is_broadcast_or_converted(fails, same_layout):
    memory = torch.zeros(2, 3)
    order = "" if same_layout else ", Fortran (3, 2)"
    with fails("SHAPE", f"the array is float32 (2, 3){order}, and", "float32 (3,); nothing is broadcast or converted"):
        fortran_tensors.write_through(memory, torch.ones(3), same_layout)
    with fails("DTYPE", f"float64 (2, 3){order}; nothing is broadcast or converted"):
        fortran_tensors.write_through(memory, torch.ones(2, 3, dtype=torch.float64), same_layout)
    assert memory.sum() == 0


def test_operands_are_described_in_both_orders():
    text = fortran_tensors.describe_operands(torch.zeros(2, 3), 1.5, False)
    assert text == "  left: float32 (2, 3), Fortran (3, 2)\n  right: 1.5"
    assert fortran_tensors.describe_operands(1, torch.zeros(2, 3), True) == "  left: 1\n  right: float32 (2, 3)"
