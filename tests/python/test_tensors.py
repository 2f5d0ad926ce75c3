# SPDX-License-Identifier: MIT
"""What the core asks for about tensors that Fortran holds."""

import numpy as np
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


def test_functions_are_called_by_the_names_that_they_have_below_torch():
    x = torch.tensor([[3.0, -4.0], [1.0, 2.0]])
    assert engine.call_torch("linalg.vector_norm", (x,), {"dim": 1})[0] == 5
    assert engine.call_torch("max", (x,), {"dim": 1}).tolist() == [3, 2]  # of values and places
    assert engine.call_torch("Tensor.stride", (x,), {}) == (2, 1)
    assert engine.call_torch("Tensor.to", (x,), {"dtype": "int64"}).dtype == torch.int64
    assert engine.call_torch("Tensor.grad.__get__", (x,), {}) is None
    assert engine.call_torch("ops.aten.slice", (x, 1, 0, 2, 2), {}).tolist() == [[3], [1]]


def test_a_method_is_that_of_the_class_of_the_tensor():
    class Doubled(torch.Tensor):
        def sum(self):
            return "its own"

    assert engine.call_torch("Tensor.sum", (torch.ones(2).as_subclass(Doubled),), {}) == "its own"


def test_tensors_are_described_as_they_are():
    x = torch.ones(2, 3, requires_grad=True)
    assert engine.describe_tensor(x) == ("float32", (2, 3), True, False, False, True)
    assert engine.describe_tensor((2 * x)[0]) == ("float32", (3,), True, True, True, True)
    assert engine.describe_tensor(np.zeros(4)) == ("float64", (4,), False, False, False, False)


def test_the_memory_behind_a_tensor_is_all_of_its_storage():
    x = torch.arange(6.0)
    assert engine.memory_of(x[2:3]) == (x.data_ptr(), x.data_ptr() + 24)


def test_types_by_name(fails):
    assert engine.torch_dtype(torch, "float64") is torch.float64
    assert engine.torch_dtype(torch, "torch.int32") is torch.int32
    assert engine.torch_dtype(torch, "half") is torch.float16
    with fails("ARGUMENT", "torch has no element type 'int23'; did you mean 'int32'?"):
        engine.torch_dtype(torch, "int23")
    with fails("ARGUMENT", "torch has no element type 'nn'"):
        engine.torch_dtype(torch, "nn")
