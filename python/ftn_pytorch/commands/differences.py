# SPDX-License-Identifier: MIT
"""How far two arrays are apart: the one comparison for commands that check what another way of computing gave."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..values import dtype_name, is_tensor
from ..values.dtypes import BY_NAME


class Difference(NamedTuple):
    """The largest one among the elements, and relative to the largest value. Infinite for another type or shape."""

    absolute: float
    relative: float


def between(found: Any, wanted: Any, least: float = 1.0) -> Difference:
    """Of tensors and arrays of NumPy. Where both are NaN, or the same infinity, they are equal.

    least: values below that are not what differences are measured by.
    """
    import numpy

    if dtype_name(found) != dtype_name(wanted) or tuple(found.shape) != tuple(wanted.shape):
        return Difference(math.inf, math.inf)
    one, other = _in_numpy(found), _in_numpy(wanted)
    wide = numpy.complex128 if other.dtype.kind == "c" else numpy.float64
    with numpy.errstate(all="ignore"):
        apart = ~((one == other) | ((one != one) & (other != other)))
        if not apart.any():
            return Difference(0.0, 0.0)
        one, other = one.astype(wide), other.astype(wide)
        error = float(numpy.abs(one - other)[apart].max())
        scale = max(least, float(numpy.abs(other[numpy.isfinite(other)]).max(initial=0.0)))
    if math.isnan(error):
        return Difference(math.inf, math.inf)
    error = error or 1.0  # of integers that are too large for doubles
    return Difference(error, error / scale if scale else math.inf)


def tolerance(array: Any) -> float:
    """What another order of the same sums may make of an array of this type, relative to its largest value."""
    known = BY_NAME.get(dtype_name(array))
    return known.tolerance if known else 0.0


def _in_numpy(array: Any) -> Any:
    import numpy

    if not is_tensor(array):
        return numpy.asarray(array)
    array = array.detach().cpu().resolve_conj().resolve_neg()
    return (array.float() if dtype_name(array) == "bfloat16" else array).numpy()
