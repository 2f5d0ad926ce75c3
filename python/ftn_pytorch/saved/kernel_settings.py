# SPDX-License-Identifier: MIT
"""Settings of torch on which the numbers of a saved recording depend. torch has one of each for the process.

src/ftr/call_settings.cpp has the same names, and holds them during calls.
"""

from __future__ import annotations

from typing import Any

import torch

_BACKENDS: Any = torch.backends  # what stands there at run time are objects of other types
_CUDNN, _MKLDNN, _MATMUL = _BACKENDS.cudnn, _BACKENDS.mkldnn, _BACKENDS.cuda.matmul
_PLACES: dict[str, tuple[Any, str]] = {
    "mkldnn": (_MKLDNN, "enabled"),
    "mkldnn_deterministic": (_MKLDNN, "deterministic"),
    "mkldnn_matmul_fp32": (_MKLDNN.matmul, "fp32_precision"),
    "mkldnn_conv_fp32": (_MKLDNN.conv, "fp32_precision"),
    "mkldnn_rnn_fp32": (_MKLDNN.rnn, "fp32_precision"),
    "cuda_matmul_fp32": (_MATMUL, "fp32_precision"),
    "cuda_conv_fp32": (_CUDNN.conv, "fp32_precision"),
    "cuda_rnn_fp32": (_CUDNN.rnn, "fp32_precision"),
    "fp16_reduction": (_MATMUL, "allow_fp16_reduced_precision_reduction"),
    "bf16_reduction": (_MATMUL, "allow_bf16_reduced_precision_reduction"),
    "fp16_accumulation": (_MATMUL, "allow_fp16_accumulation"),
    "cudnn": (_CUDNN, "enabled"),
    "cudnn_benchmark": (_CUDNN, "benchmark"),
    "cudnn_deterministic": (_CUDNN, "deterministic"),
}
"""Attributes of torch by their names in a file."""


def _meant(value: Any) -> Any:
    """There are two names for a computation with all digits."""
    return "ieee" if value == "none" else value


def current() -> dict[str, Any]:
    """The settings of the process, as a file holds them."""
    found = {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        **{name: _meant(getattr(*place)) for name, place in _PLACES.items()},
    }
    # the names of 0.2.0, which reads no others
    on_gpu, on_host = found["cuda_matmul_fp32"], found["mkldnn_matmul_fp32"]
    older = "medium" if on_host == "bf16" else "high" if "tf32" in (on_gpu, on_host) else "highest"
    return {"matmul_precision": older, "cudnn_tf32": found["cuda_conv_fp32"] == "tf32", **found}
