# SPDX-License-Identifier: MIT
"""Functions with Fortran's axes, shapes and order of elements: the same in both layouts."""

import numpy
import pytest

from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.tensors.fortran_axes import FortranFunctions, torch_dtype

torch = pytest.importorskip("torch")


class Seen:
    """The functions of one layout for arrays as Fortran sees them."""

    def __init__(self, layout):
        self.functions = FortranFunctions(layout)
        self.is_reversed = layout == "reversed"

    def tensor(self, array):
        array = torch.from_numpy(numpy.asarray(array))
        return array.permute(tuple(range(array.dim()))[::-1]) if self.is_reversed else array

    def array(self, tensor):
        return tensor.numpy().transpose() if self.is_reversed else tensor.numpy()

    def __call__(self, name, *args):
        """Of NumPy arrays; the result as Fortran sees it."""
        passed = [self.tensor(arg) if isinstance(arg, numpy.ndarray) else arg for arg in args]
        return self.array(self.functions.find(name)(*passed))


@pytest.fixture(params=["reversed", "same"])
def seen(request):
    return Seen(request.param)


A = numpy.asfortranarray([[3.0, -4.0, 5.0], [1.0, 1.5, -9.0]])


@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_take_axes_from_1(seen, keepdim):
    for axis in (1, 2):
        expected = A.sum(axis=axis - 1, keepdims=keepdim)
        assert numpy.array_equal(seen("reduce.sum", A, keepdim, axis), expected)
        assert numpy.allclose(
            seen("reduce.linalg.vector_norm", A, keepdim, axis), numpy.sqrt((A**2).sum(axis - 1, keepdims=keepdim))
        )
        assert numpy.array_equal(
            seen("reduce.count_nonzero", A > 0, keepdim, axis), (A > 0).sum(axis - 1, keepdims=keepdim)
        )
        assert numpy.array_equal(seen("reduce.max", A, keepdim, axis), A.max(axis - 1, keepdims=keepdim))


def test_reductions_of_everything(seen):
    assert seen("reduce.sum", A, False) == A.sum()
    assert seen("reduce.sum", A, True).shape == (1, 1)
    assert numpy.allclose(seen("reduce.logsumexp", A, False), numpy.log(numpy.exp(A).sum()))
    assert seen("reduce.std", A, False) == pytest.approx(A.std(ddof=1))


def test_places_count_from_1_in_the_order_of_fortran(seen):
    assert seen("place.argmax", A) == 5
    assert seen("place.argmin", A) == 6
    assert seen("place.argmax", A, 1).tolist() == [1, 2, 1]
    assert seen("place.argmin", A, 2).tolist() == [2, 3]


def test_functions_along_an_axis(seen):
    assert numpy.array_equal(seen("along.cumsum", A, 2), A.cumsum(axis=1))
    assert numpy.array_equal(seen("along.flip", A, 1), A[::-1])
    assert numpy.array_equal(seen("along.sort", A, 1), numpy.sort(A, axis=0))
    assert numpy.array_equal(seen("along.diff", A, 2), numpy.diff(A, axis=1))


def test_reshape_permute_slice_and_join(seen):
    assert numpy.array_equal(seen("reshape", A, (3, -1)), A.reshape((3, 2), order="F"))
    assert numpy.array_equal(seen("permute", A, (2, 1)), A.transpose())
    deep = numpy.arange(24.0).reshape(2, 3, 4)
    assert numpy.array_equal(seen("permute", deep, (3, 1, 2)), deep.transpose(2, 0, 1))
    assert numpy.array_equal(seen("slice", A, 2, 1, 2), A[:, ::2])
    assert numpy.array_equal(seen("slice", A, 2, 2, 1, 3), A[:, 1:3])
    assert seen("slice", A, 2, 1, 1, 0).shape == (2, 0)
    assert numpy.array_equal(seen("join.cat", 2, A, A), numpy.concatenate([A, A], axis=1))
    assert numpy.array_equal(seen("join.stack", 1, A, A), numpy.stack([A, A], axis=0))


def test_views_stay_views(seen):
    tensor = seen.tensor(A)
    for view in (
        seen.functions.reshape(tensor, (6,)),
        seen.functions.permute(tensor, (2, 1)),
        seen.functions.slice(tensor, 1, 1, 2),
    ):
        assert view.data_ptr() == tensor.data_ptr()


def test_makers_take_shapes_of_fortran(seen):
    made = seen.functions.create("full", torch.tensor([2, 3]), "float64", "", True, 1.5)
    assert seen.array(made.detach()).shape == (2, 3) and made.requires_grad and made.dtype == torch.float64
    assert seen.functions.like("zeros_like", made, "", "", False).shape == made.shape
    assert seen.functions.spread("arange", "int32", "cpu", False, 1, 7, 2).tolist() == [1, 3, 5]
    assert seen.functions.strides(seen.tensor(A)).tolist() == [1, 2]


@pytest.mark.parametrize("kind", [torch.int8, torch.int32, torch.int64])
def test_numbers_of_classes_are_of_any_integer_type(seen, kind):
    scores, classes = torch.randn(5, 3), torch.tensor([0, 2, 1, 1, 0])
    found = seen.functions.loss("cross_entropy", scores, classes.to(kind), "sum")
    assert found == torch.nn.functional.cross_entropy(scores, classes, reduction="sum")
    probabilities = torch.softmax(torch.randn(5, 3), 1)
    found = seen.functions.loss("cross_entropy", scores, probabilities, "")
    assert found == torch.nn.functional.cross_entropy(scores, probabilities)


def test_values_are_overwritten_beside_the_graph(seen):
    tensor = torch.zeros(2, 3, requires_grad=True)
    seen.functions.overwrite(tensor, torch.ones(2, 3))
    assert tensor.sum() == 6 and tensor.grad_fn is None
    seen.functions.overwrite(tensor, 2.0)
    assert tensor.sum() == 12


def test_what_is_refused(seen, fails):
    tensor = seen.tensor(A)
    for axis in (0, 3, -1):
        with fails("ARGUMENT", f"there is no axis {axis} in a tensor of rank 2: axes count from 1"):
            seen.functions.along("cumsum", tensor, axis)
        with fails("ARGUMENT", f"there is no axis {axis}"):
            seen.functions.reduce("sum", tensor, False, axis)
    for section in ((0, 1), (1, 0), (1, 1, 4), (1, -1)):
        with fails("ARGUMENT", "of an axis with 3 elements"):
            seen.functions.slice(tensor, 2, *section)
    with fails("ARGUMENT", "there are no tensors to join"):
        seen.functions.join("cat", 1)
    with fails("SHAPE", "nothing is broadcast"):
        seen.functions.overwrite(tensor, torch.ones(3))


def test_types_by_name(fails):
    assert torch_dtype(torch, "float64") is torch.float64
    assert torch_dtype(torch, "torch.int32") is torch.int32
    assert torch_dtype(torch, "half") is torch.float16
    with fails("ARGUMENT", "torch has no element type 'int23'; did you mean 'int32'?"):
        torch_dtype(torch, "int23")
    with fails("ARGUMENT", "torch has no element type 'nn'"):
        torch_dtype(torch, "nn")


def test_names_of_functions():
    functions = FortranFunctions("same")
    assert functions.find("nonsense") is None
    assert functions.find("reshape") == functions.reshape


def leaf(*values, wanted=True):
    return torch.tensor(values, requires_grad=wanted)


def test_assign_takes_over_values_graph_and_requires_grad():
    assign = FortranFunctions("same").assign
    source, target = leaf(2.0, 3.0), torch.zeros(2, dtype=torch.float64)
    assign(target, source * source)
    assert target.tolist() == [4, 9] and target.requires_grad
    target.sum().backward()
    assert source.grad.tolist() == [4, 6]
    assign(target, source + 1)
    target.sum().backward()
    assert source.grad.tolist() == [5, 7]  # the graph of the first assignment is gone
    assign(target, torch.ones(2))
    assert target.tolist() == [1, 1] and not target.requires_grad
    parameter = leaf(1.0)
    assign(parameter, torch.tensor(5.0))
    assert parameter.item() == 5 and not parameter.requires_grad


def test_assign_does_not_let_graphs_grow():
    target = torch.zeros(1)
    for _ in range(3):
        FortranFunctions("same").assign(target, leaf(1.0) * 2)
    depth, node = 0, target.grad_fn
    while node is not None:
        depth, node = depth + 1, max((each for each, _ in node.next_functions if each), key=str, default=None)
    assert depth <= 3


def test_assign_copies_within_a_memory():
    memory = torch.arange(4.0)
    FortranFunctions("reversed").assign(memory[1:], memory[:3])
    assert memory.tolist() == [0, 0, 1, 2]


def test_results_losses_and_gradients_are_assigned():
    functions, source, target = FortranFunctions("same"), leaf(1.0, 3.0), torch.zeros(1)
    functions.find("assign_result.mean")(target, source)
    assert target.item() == 2
    functions.find("assign_loss.mse_loss")(target, source, torch.zeros(2), "sum")
    assert target.item() == 10
    with pytest.raises(FtnPytorchError, match="no gradient yet"):
        functions.assign_grad(target, source)
    functions.clear_grad(source)
    assert source.grad is None
    target.backward()
    gradient = torch.zeros(2)
    functions.assign_grad(gradient, source)
    assert gradient.tolist() == [2, 6]
    functions.clear_grad(source)
    assert source.grad.tolist() == [0, 0]
