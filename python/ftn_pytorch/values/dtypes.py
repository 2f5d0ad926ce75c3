# SPDX-License-Identifier: MIT
"""The one table of element types: names of torch and NumPy, codes of ftn_pytorch.h, words of file formats."""

from __future__ import annotations

from typing import NamedTuple


class ElementType(NamedTuple):
    """A row. ``name`` is that of torch and of NumPy, which lacks bfloat16."""

    name: str
    code: int | None
    """FPT_... of the C interface; None for what models may take and Fortran cannot receive."""
    onnx: str = ""
    """The T of "tensor(T)" in ONNX; empty where arrays of NumPy cannot be of the type."""
    triton: str = ""
    """What a Triton server calls it, empty as above."""
    tolerance: float = 0.0
    """Largest difference, relative to the largest value, that is put down to another order of the same sums."""


TABLE = (
    ElementType("bool", 1, "bool", "BOOL"),
    ElementType("int8", 2, "int8", "INT8"),
    ElementType("int16", 3, "int16", "INT16"),
    ElementType("int32", 4, "int32", "INT32"),
    ElementType("int64", 5, "int64", "INT64"),
    ElementType("float32", 6, "float", "FP32", 1e-5),
    ElementType("float64", 7, "double", "FP64", 1e-12),
    ElementType("complex64", 8, tolerance=1e-5),
    ElementType("complex128", 9, tolerance=1e-12),
    ElementType("uint8", 11, "uint8", "UINT8"),
    ElementType("float16", 12, "float16", "FP16", 1e-2),
    ElementType("bfloat16", 13, tolerance=1e-1),
    ElementType("uint16", None, "uint16", "UINT16"),
    ElementType("uint32", None, "uint32", "UINT32"),
    ElementType("uint64", None, "uint64", "UINT64"),
)

BY_NAME = {each.name: each for each in TABLE}
OF_CODE = {each.code: each.name for each in TABLE if each.code is not None}
"""Names of the types of arrays that can reach Fortran, by their codes."""
OF_ONNX = {f"tensor({each.onnx})": each for each in TABLE if each.onnx}
OF_TRITON = {each.triton: each for each in TABLE if each.triton}
