# SPDX-License-Identifier: MIT
"""What the core asks for about tensors that Fortran holds."""

import pytest

from ftn_pytorch.tensors import engine, fortran_tensors

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


def test_types_by_name(fails):
    assert engine.torch_dtype("float64") is torch.float64
    assert engine.torch_dtype("torch.int32") is torch.int32
    assert engine.torch_dtype("half") is torch.float16
    with fails("ARGUMENT", "torch has no element type 'int23'; did you mean 'int32'?"):
        engine.torch_dtype("int23")
    with fails("ARGUMENT", "torch has no element type 'nn'"):
        engine.torch_dtype("nn")
