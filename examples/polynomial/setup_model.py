# SPDX-License-Identifier: MIT
"""Write an untrained network of one variable as a TorchScript model.

python setup_model.py <model.pt>
"""

import sys
import warnings

import torch
from torch import nn


def make_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    # PyTorch advises against TorchScript for new code. It is what saved models of many existing programs are.
    warnings.simplefilter("ignore", DeprecationWarning)
    torch.jit.script(make_network()).save(sys.argv[1])
    print(f"untrained network written to {sys.argv[1]}")
