# SPDX-License-Identifier: MIT
"""Settings of torch in the process that calls, and its state of random numbers, as numbers."""

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
            torch.get_num_interop_threads(),
            torch.is_autocast_enabled("cpu"),
            torch.is_anomaly_enabled(),
            torch.utils.deterministic.fill_uninitialized_memory,
            torch.get_default_device().type == "cpu",
            torch.backends.mha.get_fastpath_enabled(),
        ],
        dtype=torch.float64,
    )


def random(is_first):
    if is_first:
        torch.manual_seed(99)
    state = torch.get_rng_state().double()
    return (state * torch.arange(1, len(state) + 1)).sum()
