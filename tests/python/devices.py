# SPDX-License-Identifier: MIT
"""Tests on the host, and on a GPU where there is one."""

import pytest
import torch

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
"""What only a GPU can show."""


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=GPU)])
def device(request):
    """Where tensors are made unless a test says so."""
    if request.param != "cpu":
        torch.set_default_device(request.param)
    yield request.param
    torch.set_default_device(None)


def count_on_host(optimizer):
    """Put counts of steps where torch makes them without a default device: to the host, if no kernel reads them."""
    for group in optimizer.param_groups:
        states = [optimizer.state.get(parameter, {}) for parameter in group["params"]]
        if not group.get("fused") and not group.get("capturable"):
            for state in states:
                state.update({name: state[name].cpu() for name in ("step", "mu_product") if name in state})
