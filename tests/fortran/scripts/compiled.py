# SPDX-License-Identifier: MIT
"""A network that a Fortran program has compiled while floating-point traps are on."""

import torch

net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
torch.manual_seed(2)
for parameter in net.parameters():
    torch.nn.init.uniform_(parameter)


def ftn_pytorch_forward(x):
    # 0/0 inside of what is compiled: NaN without compile, and no end of the program with it.
    return net(x) + 0 * (x / x).nan_to_num()


def eager(x):
    with torch.compiler.set_stance("force_eager"):
        return ftn_pytorch_forward(x)


def is_compiled():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]
