# SPDX-License-Identifier: MIT
"""Results of a function: whatever it returned, as names and plain values."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from types import MemberDescriptorType
from typing import Any

from ..errors import FtnPytorchError
from ..values import is_array, is_number, is_tensor, plain

Names = tuple[str, ...] | None

_ALLOWED = "tensors, NumPy arrays, numbers, strings, or a tuple, dict, dataclass or namedtuple of those"
_LISTS = "in it, lists of equal length with numbers alone, or logicals alone, are an array"


def unpack(result: Any) -> tuple[Names, tuple[Any, ...]]:
    """Names (None if the results have none) and values of a result.

    Values are strided torch.Tensor objects without conjugate or negative bit (with the graph behind them), arrays of
    NumPy, bool, int, float, complex or str. Memory is shared with what the function returned. None has no values, and
    an entry of a dict or dataclass that is None is left out. A NumPy scalar becomes an array of rank 0, which keeps
    its type; numpy.bool_ and numpy.str_ become bool and str. Numbers in lists of a container become an array.
    Raises RESULT_TYPE for all else, DEVICE for tensors without data.
    """
    if result is None:
        return None, ()
    names, values = parts_of(result)
    if values is None:
        return None, (_value(result, "the result"),)
    if names is None:
        return None, tuple(_part(value, f"result {number}") for number, value in enumerate(values, 1))
    if not isinstance(result, tuple):  # which has an order, too
        names, values = _present(names, values)
    return names, tuple(_part(value, f"result {name!r}") for name, value in zip(names, values))


def to_host(value: Any, widened: bool) -> Any:
    """An array in host memory, ``widened``: and of single in place of half precision. Other values pass.

    What needs no change is returned as the same object, else a copy.
    """
    if is_tensor(value):
        import torch

        value = value.cpu()
        return value.float() if widened and value.dtype in (torch.float16, torch.bfloat16) else value
    return value.astype("float32") if widened and is_array(value) and value.dtype == "float16" else value


def parts_of(result: Any) -> tuple[Names, tuple[Any, ...] | None]:
    """Names and values of a container; (None, None) for anything else."""
    if isinstance(result, Mapping):
        for key in result:
            if not isinstance(key, str):
                raise FtnPytorchError(
                    "RESULT_TYPE",
                    f"the result is a dict with a key {key!r} of type {type(key).__name__}; keys must be strings",
                )
        return tuple(result), tuple(result.values())
    if isinstance(result, (tuple, list)):
        return _tuple_names(result), tuple(result)
    if _is_record(result):
        import dataclasses

        names = tuple(field.name for field in dataclasses.fields(result))
        return names, tuple(getattr(result, name) for name in names)
    return None, None


def _is_record(value: Any) -> bool:
    """True for an object of a dataclass; dataclasses themselves are types."""
    return hasattr(type(value), "__dataclass_fields__") and not isinstance(value, type)


def _tuple_names(result: Any) -> Names:
    names = getattr(type(result), "_fields", None)
    if names is not None:
        return tuple(names)
    length = getattr(type(result), "n_sequence_fields", None)
    if length is None:
        return None
    # A struct sequence, such as torch.return_types.max: its fields are members of the type, in order.
    members = [name for name, kind in vars(type(result)).items() if isinstance(kind, MemberDescriptorType)]
    return tuple(members[:length]) if len(members) >= length else None


def _present(names: tuple[str, ...], values: tuple[Any, ...]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    if not any(value is None for value in values):
        return names, values
    there = [(name, value) for name, value in zip(names, values) if value is not None]
    return tuple(name for name, _ in there), tuple(value for _, value in there)


def _part(value: Any, what: str) -> Any:
    """A value of a container."""
    return _array_of_numbers(value, what) if type(value) in (list, tuple) else _value(value, what)


def _array_of_numbers(value: Any, what: str) -> Any:
    """Numbers or logicals in lists of equal length. Integers get 32 bits where that holds all of them."""
    leaves: list[Any] = []
    shape = _shape_of_lists(value, leaves)
    kinds = {type(leaf) for leaf in leaves}
    if shape is None or not kinds <= {bool, int, float, complex} or (bool in kinds and len(kinds) > 1):
        raise FtnPytorchError("RESULT_TYPE", f"{what} is {_explain(value)}; {_LISTS}")
    import numpy

    if kinds == {int}:
        dtype = next((each for each in ("int32", "int64") if _holds(numpy.iinfo(each), leaves)), "float64")
    else:
        dtype = "bool" if kinds == {bool} else "complex128" if complex in kinds else "float64"
    return numpy.array(leaves, dtype).reshape(shape)


def _shape_of_lists(value: Any, leaves: list[Any]) -> tuple[int, ...] | None:
    """Extents of nested lists, whose innermost values come into ``leaves``; None where lengths differ."""
    if type(value) not in (list, tuple):
        leaves.append(value)
        return ()
    shapes = {_shape_of_lists(each, leaves) for each in value}
    if len(shapes) > 1 or None in shapes:
        return None
    return (len(value), *(shapes.pop() if shapes else ()))  # type: ignore[misc]


def _holds(range_of: Any, numbers: list[int]) -> bool:
    return range_of.min <= min(numbers) and max(numbers) <= range_of.max


def _value(value: Any, what: str) -> Any:
    if isinstance(value, (bool, int, float, complex, str)) and not is_number(value):
        return plain(value)
    if is_tensor(value):
        return _tensor(value, what)
    if is_array(value) or is_number(value):
        return _array(value, what)
    raise FtnPytorchError("RESULT_TYPE", f"{what} is {_explain(value)}")


def _tensor(value: Any, what: str) -> Any:
    import torch

    advice = ""
    if value.is_nested:
        advice = "a nested tensor; return torch.nested.to_padded_tensor(...)"
    elif value.layout is not torch.strided:
        advice = f"a tensor of layout {value.layout}; return x.to_dense()"
    elif value.is_quantized:
        advice = "a quantized tensor; return x.dequantize()"
    if advice:
        raise FtnPytorchError("RESULT_TYPE", f"{what} is {advice}")
    if value.device.type == "meta":
        raise FtnPytorchError("DEVICE", f"{what} is a tensor on the device 'meta', which holds no numbers")
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        value = value.as_subclass(torch.Tensor)
    return value.resolve_conj().resolve_neg()


def _array(value: Any, what: str) -> Any:
    import numpy

    if isinstance(value, (numpy.bool_, numpy.str_)):
        return plain(value)
    # NumPy imports this one when somebody asks for it.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(value, masked):
        raise FtnPytorchError("RESULT_TYPE", f"{what} is a masked array; return x.filled(value)")
    if value.dtype.kind not in "biufc":
        raise FtnPytorchError(
            "RESULT_TYPE", f"{what} is a NumPy array of type {value.dtype}; return an array of numbers or logicals"
        )
    if not value.dtype.isnative:
        raise FtnPytorchError(
            "RESULT_TYPE", f"{what} is a NumPy array of foreign byte order; return x.astype(x.dtype.newbyteorder('='))"
        )
    return numpy.asarray(value)


def _explain(value: Any) -> str:
    kind = type(value).__name__
    if inspect.iscoroutine(value):
        # Python would warn at some later time that it was never awaited.
        value.close()
        return "a coroutine, the function is declared with async def; declare it with def"
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return "a generator, the function contains yield; return the results with return"
    if value is None:
        return "None; a function has either no result at all or every result has a value"
    if isinstance(value, (Mapping, tuple, list)) or _is_record(value):
        return f"a {kind} inside another container; results may not be nested, return {_ALLOWED}"
    if isinstance(value, (bytes, bytearray)):
        return f"of type {kind}; return a string, as bytes.decode() makes one"
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return f"of type {kind}; return numpy.asarray(...) or torch.as_tensor(...) of it"
    return f"of type {kind}; return {_ALLOWED}"
