# SPDX-License-Identifier: MIT
"""One network over several ranks."""

import network_of_all
import torch

import ftn_pytorch
from ftn_pytorch import average_gradients

at_load = [ftn_pytorch.rank(), ftn_pytorch.world_size()]


def new_network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()


def ftn_pytorch_setup(limit=60.0):
    global net, alone, optimizer, optimizer_alone, timeout
    net, alone, timeout = new_network(), new_network(), limit
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    optimizer_alone = torch.optim.Adam(alone.parameters(), lr=1e-2)


def numbers_at_load():
    return torch.tensor(at_load, dtype=torch.int32)


def numbers_now():
    return torch.tensor([ftn_pytorch.rank(), ftn_pytorch.world_size()], dtype=torch.int32)


def join():
    ftn_pytorch.init_process_group(timeout=timeout)


def loss_of(network, x):
    return (network(x) - x.sum(1, keepdim=True)).square().mean()


def ftn_pytorch_train(x, target):
    """The samples of this rank; ``target`` is there because every training has one."""
    optimizer.zero_grad()
    loss = loss_of(net, x)
    if len(x):
        loss.backward()
    average_gradients(net, samples=len(x))
    optimizer.step()
    return False, loss.detach()


def train_without_samples():
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, torch.nan)
    average_gradients(net, samples=0)
    return sum(float(parameter.grad.abs().sum()) for parameter in net.parameters())


def average_of_all():
    network_of_all.average()


def train_alone(x):
    """One rank with the samples of all."""
    optimizer_alone.zero_grad()
    loss_of(alone, x).backward()
    optimizer_alone.step()


def difference_from_alone():
    """Of the two networks, as what single precision would not see."""
    pairs = zip(net.parameters(), alone.parameters())
    return max(float((one - other).detach().abs().max()) for one, other in pairs)


def weight():
    return float(next(net.parameters()).detach()[0, 0])


def require_equal():
    ftn_pytorch.require_equal(net)


def spoil(change):
    with torch.no_grad():
        net[2].bias += change


def fail_if(asked):
    if asked:
        raise ValueError("this rank fails")
    torch.distributed.all_reduce(torch.ones(1))


def in_parallel(x):
    """DistributedDataParallel, one step with the samples of this rank; parameters, to be the same on all ranks."""
    join()
    torch.manual_seed(0)
    parallel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1).double())
    loss_of(parallel, x).backward()
    return torch.cat([parameter.grad.flatten() for parameter in parallel.parameters()])
