# SPDX-License-Identifier: MIT
"""Any result as names and values."""

import collections
import dataclasses
import enum
import warnings

import numpy
import pytest

import program
from ftn_pytorch.script import results


@dataclasses.dataclass
class Flux:
    heat: object
    mass: object


Pair = collections.namedtuple("Pair", "heat mass")


class Opaque:
    pass


class Labelled:
    def __array__(self):
        return numpy.zeros(1)


# ---- containers


def test_none_has_no_results():
    assert program.unpack(None) == (None, ())


@pytest.mark.parametrize("result", [(1, 2.5), [1, 2.5]])
def test_tuple_and_list_have_values_without_names(result):
    assert program.unpack(result) == (None, (1, 2.5))


@pytest.mark.parametrize(
    "result",
    [{"heat": 1, "mass": 2}, collections.OrderedDict(heat=1, mass=2), Flux(1, 2), Pair(1, 2)],
    ids=["dict", "mapping", "dataclass", "namedtuple"],
)
def test_named_containers_have_names_in_their_order(result):
    assert program.unpack(result) == (("heat", "mass"), (1, 2))


def test_empty_containers_have_no_results():
    assert program.unpack(()) == (None, ())
    assert program.unpack({}) == ((), ())


@pytest.mark.parametrize("value", [True, 3, 2.5, 1j, "text", ""])
def test_plain_value_is_one_result(value):
    names, values = program.unpack(value)
    assert names is None
    assert values == (value,)
    assert type(values[0]) is type(value)


def test_values_of_derived_types_become_plain():
    class Phase(enum.IntEnum):
        ICE = 2

    class Name(str, enum.Enum):
        ICE = "ice"

    class Angle(complex):
        pass

    (value,) = program.unpack(Phase.ICE)[1]
    assert value == 2
    assert type(value) is int
    for derived, kind in ((Name.ICE, str), (Angle(1j), complex)):
        (value,) = program.unpack(derived)[1]
        assert value == derived and type(value) is kind


@pytest.mark.parametrize(
    ("result", "pieces"),
    [
        (({"a": 1}, 2), ("result 1 is a dict inside",)),
        ({"a": (1, "b")}, ("result 'a' is a tuple inside", "lists of equal length")),
        ({"a": [True, 2]}, ("result 'a' is a list inside",)),
        ({"a": [[1], [2, 3]]}, ("result 'a' is a list inside",)),
        ({"a": [1, [2]]}, ("result 'a' is a list inside",)),
        ([Flux(1, 2)], ("result 1 is a Flux inside",)),
        ((1, None), ("result 2 is None",)),
        ({1: 2.0}, ("key 1 of type int",)),
        ({1, 2}, ("of type set",)),
        (Opaque(), ("of type Opaque", "return tensors")),
        (Flux, ("of type type",)),
        (b"text", ("of type bytes", "decode")),
        (Labelled(), ("of type Labelled", "numpy.asarray")),
        (range(3), ("of type range",)),
    ],
)
def test_what_is_no_array_number_or_text_is_refused(fails, result, pieces):
    with fails("RESULT_TYPE", *pieces):
        program.unpack(result)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([1, 2, 3], "int32"),
        ([[1, 2, 3], [4, 5, 1 << 31]], "int64"),
        ([1, 1 << 64], "float64"),
        ((1, 2.5), "float64"),
        ([[0.5], [1]], "float64"),
        ([1, 2j], "complex128"),
        ([[True], [False]], "bool"),
        ([], "float64"),
        ([[], []], "float64"),
    ],
)
@pytest.mark.parametrize("container", [lambda value: {"a": value}, lambda value: (value,)], ids=["dict", "tuple"])
def test_numbers_in_lists_of_a_container_are_an_array(value, dtype, container):
    (array,) = program.unpack(container(value))[1]
    assert array.dtype == dtype
    assert array.tolist() == numpy.array(value, dtype).tolist()
    assert array.shape == numpy.array(value).shape


def test_what_is_none_in_a_dict_is_left_out():
    assert program.unpack({"a": None, "b": 2, "c": None}) == (("b",), (2,))
    assert program.unpack({"a": None}) == ((), ())


def test_generator_is_told_from_its_function(fails):
    def forward():
        yield 1

    with fails("RESULT_TYPE", "contains yield"):
        program.unpack(forward())


def test_coroutine_is_told_from_its_function_and_closed(fails):
    async def forward():
        return 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fails("RESULT_TYPE", "async def"):
            program.unpack(forward())


# ---- NumPy


def test_array_is_passed_as_it_is():
    array = numpy.arange(6.0).reshape(2, 3)[:, ::-1]
    (value,) = program.unpack(array)[1]
    assert value is array


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "uint16", "complex64"])
def test_scalar_of_numpy_keeps_its_type(kind):
    (value,) = program.unpack(numpy.ones(3, kind).sum(dtype=kind))[1]
    assert isinstance(value, numpy.ndarray)
    assert (value.shape, str(value.dtype), value.item()) == ((), kind, 3)


@pytest.mark.parametrize(("scalar", "plain"), [(numpy.bool_(True), True), (numpy.str_("ice"), "ice")])
def test_logical_and_text_of_numpy_become_plain(scalar, plain):
    (value,) = program.unpack(scalar)[1]
    assert value == plain
    assert type(value) is type(plain)


@pytest.mark.parametrize(
    ("array", "pieces"),
    [
        (numpy.array([None, 1]), ("type object",)),
        (numpy.array(["a", "b"]), ("type <U1",)),
        (numpy.zeros(2, "datetime64[s]"), ("datetime64",)),
        (numpy.zeros(2, [("a", "f4")]), ("type [",)),
        (numpy.zeros(2, ">f8"), ("byte order", "newbyteorder")),
        (numpy.ma.masked_array([1.0, 2.0], [True, False]), ("masked", "filled")),
    ],
)
def test_array_that_fortran_cannot_hold_is_refused(fails, array, pieces):
    with fails("RESULT_TYPE", *pieces):
        program.unpack(array)


# ---- torch


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_tensor_is_passed_as_it_is(torch):
    tensor = torch.arange(6.0).reshape(2, 3).t()
    assert program.unpack(tensor)[1][0] is tensor


def test_tensor_of_rank_zero_stays_a_tensor(torch):
    (value,) = program.unpack(torch.tensor(2.5))[1]
    assert isinstance(value, torch.Tensor)
    assert value.shape == ()


def test_graph_and_memory_are_kept(torch):
    tensor = torch.ones(3, requires_grad=True)
    for result in (tensor, tensor * 2, torch.nn.Parameter(torch.ones(3))):
        assert program.unpack(result)[1] == (result,)
        assert program.unpack(result)[1][0] is result


def test_subclass_of_tensor_becomes_a_tensor(torch):
    class Field(torch.Tensor):
        pass

    field = torch.ones(3).as_subclass(Field)
    (value,) = program.unpack(field)[1]
    assert type(value) is torch.Tensor
    assert value.data_ptr() == field.data_ptr()


def test_conjugate_and_negative_are_resolved(torch):
    tensor = torch.tensor([1 + 2j])
    (conjugate,) = program.unpack(tensor.conj())[1]
    (negative,) = program.unpack(tensor.conj().imag)[1]
    assert not conjugate.is_conj()
    assert conjugate.item() == 1 - 2j
    assert not negative.is_neg()
    assert negative.item() == -2


def test_named_tuple_of_torch_has_names(torch):
    names, values = program.unpack(torch.max(torch.tensor([[1.0, 3.0]]), dim=1))
    assert names == ("values", "indices")
    assert [value.item() for value in values] == [3.0, 1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (lambda torch: torch.ones(2, 2).to_sparse(), ("sparse", "to_dense")),
        (lambda torch: torch.ones(2, 2).to_sparse_csr(), ("sparse", "to_dense")),
        (lambda torch: torch.ones(2, 2).to_mkldnn(), ("mkldnn", "to_dense")),
        (lambda torch: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), ("nested",)),
        (lambda torch: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), ("quantized", "dequantize")),
    ],
    ids=["coo", "csr", "mkldnn", "nested", "quantized"],
)
def test_tensor_without_strided_memory_is_refused(torch, fails, make, pieces):
    tensor = make(torch)
    with fails("RESULT_TYPE", *pieces):
        program.unpack(tensor)


def test_tensor_without_data_is_refused(torch, fails):
    with fails("DEVICE", "meta"):
        program.unpack((1, torch.ones(2, device="meta")))


def test_host_values_are_not_copied(torch):
    tensor, array = torch.ones(2), numpy.ones(2)
    assert results.to_host(tensor, True).data_ptr() == tensor.data_ptr()
    assert program.to_host(array, widened=True) is array


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_tensors_of_half_precision_become_single(torch, kind):
    tensor = torch.tensor([[1.5, 2.0, -0.25]]).t().to(getattr(torch, kind))
    host = program.to_host(tensor, widened=True)
    assert host.dtype == torch.float32
    assert host.tolist() == [[1.5], [2.0], [-0.25]]


def test_arrays_of_half_precision_become_single():
    host = program.to_host(numpy.array([1.5, numpy.inf, -0.25], "float16"), widened=True)
    assert host.dtype == numpy.float32
    assert host.tolist() == [1.5, numpy.inf, -0.25]


@pytest.mark.parametrize("value", [1, 2.5, "text", None, numpy.ones(2, "int16"), numpy.ones(2, "complex64")])
def test_other_values_pass_on_the_way_to_the_host(value):
    assert program.to_host(value, widened=True) is value


def test_tensors_of_a_device_are_brought_to_the_host(torch):
    class Remote(torch.Tensor):
        def cpu(self):
            return torch.zeros(2)

    assert program.to_host(torch.ones(2).as_subclass(Remote), widened=True).tolist() == [0, 0]
