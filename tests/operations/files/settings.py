# SPDX-License-Identifier: MIT
"""Settings of torch in the process that calls, as numbers."""

import torch


def settings():
    return torch.tensor(
        [
            torch.get_default_dtype() == torch.float64,
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.get_float32_matmul_precision() == "highest",
            torch.backends.cudnn.enabled,
            torch.backends.cudnn.benchmark,
            torch.backends.cudnn.deterministic,
            torch.backends.mkldnn.enabled,
            torch.get_num_threads(),
        ],
        dtype=torch.float64,
    )
