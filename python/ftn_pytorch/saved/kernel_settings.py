# SPDX-License-Identifier: MIT
"""Settings of torch on which the numbers of a saved recording depend. torch has one of each for the process.

src/ftr/call_settings.cpp has the same names, and holds them during calls.
"""

from __future__ import annotations

from typing import Any

import torch

_CUDNN, _MKLDNN, _MATMUL = torch.backends.cudnn, torch.backends.mkldnn, torch.backends.cuda.matmul
_PLACES: dict[str, tuple[Any, str]] = {
    "mkldnn": (_MKLDNN, "enabled"),
    "mkldnn_deterministic": (_MKLDNN, "deterministic"),
    "mkldnn_matmul_fp32": (getattr(_MKLDNN, "matmul", None), "fp32_precision"),
    "mkldnn_conv_fp32": (getattr(_MKLDNN, "conv", None), "fp32_precision"),
    "mkldnn_rnn_fp32": (getattr(_MKLDNN, "rnn", None), "fp32_precision"),
    "cuda_matmul_fp32": (_MATMUL, "fp32_precision"),
    "cuda_conv_fp32": (getattr(_CUDNN, "conv", None), "fp32_precision"),
    "cuda_rnn_fp32": (getattr(_CUDNN, "rnn", None), "fp32_precision"),
    "fp16_reduction": (_MATMUL, "allow_fp16_reduced_precision_reduction"),
    "bf16_reduction": (_MATMUL, "allow_bf16_reduced_precision_reduction"),
    "fp16_accumulation": (_MATMUL, "allow_fp16_accumulation"),
    "cudnn": (_CUDNN, "enabled"),
    "cudnn_benchmark": (_CUDNN, "benchmark"),
    "cudnn_deterministic": (_CUDNN, "deterministic"),
}
"""Attributes of torch by their names in a file."""


def _attributes() -> dict[str, Any]:
    """Those that this torch has."""
    missing = object()
    found = {name: getattr(holder, attribute, missing) for name, (holder, attribute) in _PLACES.items()}
    return {name: each for name, each in found.items() if each is not missing}


def _meant(value: Any) -> Any:
    """There are two names for a computation with all digits."""
    return "ieee" if value == "none" else value


def current() -> dict[str, Any]:
    """The settings of the process, as a file holds them."""
    found = {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        **{name: _meant(each) for name, each in _attributes().items()},
    }
    # the names of 0.2.0, which reads no others
    if "cuda_matmul_fp32" not in found:
        return {
            "matmul_precision": torch.get_float32_matmul_precision(),
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
            **found,
        }
    on_gpu, on_host = found["cuda_matmul_fp32"], found["mkldnn_matmul_fp32"]
    older = "medium" if on_host == "bf16" else "high" if "tf32" in (on_gpu, on_host) else "highest"
    return {"matmul_precision": older, "cudnn_tf32": found["cuda_conv_fp32"] == "tf32", **found}
