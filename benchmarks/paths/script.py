# SPDX-License-Identifier: MIT
"""What the paths script, compiled and copy run, and floor.py in a plain loop: the networks of ../models.py."""
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import models  # noqa: E402


def ftn_pytorch_setup(case, size, folder, copied=False, recorded=False):
    """Make the network of a case, and ftn_pytorch_forward for it.

    copied: the script gets NumPy arrays and returns them, as with a plain binding. recorded: what it does can be
    recorded, so the loss stays a tensor, and the optimizer has the form that takes no numbers out of tensors.
    What is recorded can be saved with the state of the script, so there is one.
    """
    global net, optimizer, ftn_pytorch_forward, ftn_pytorch_framework, loss_of
    net = models.make(case, size)
    if recorded and case == "tiny":
        net.register_buffer("state", torch.zeros(1))
    if models.CASES[case].optimizer:
        optimizer = models.make_optimizer(case, net, **({"fused": True} if recorded else {}))
    loss_of = torch.Tensor.detach if recorded else torch.Tensor.item
    ftn_pytorch_forward = models.TINY[size] if case == "tiny" else torch.inference_mode()(net)
    if copied:
        ftn_pytorch_framework = "numpy"
        ftn_pytorch_forward = with_arrays(ftn_pytorch_forward)


def with_arrays(function):
    """The same function from NumPy arrays to a NumPy array."""

    def forward(*arrays):
        result = function(*map(torch.from_numpy, arrays))
        return None if result is None else result.numpy()

    return forward


def ftn_pytorch_train(x, target):
    """One step; see models.train_step."""
    if not isinstance(x, torch.Tensor):
        x, target = torch.from_numpy(x), torch.from_numpy(target)
    return False, loss_of(models.train_step(net, optimizer, x, target))
