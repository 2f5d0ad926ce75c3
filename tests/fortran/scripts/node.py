# SPDX-License-Identifier: MIT
"""Loaded once for all ranks of a node: what each worker has for itself, and what reaches it."""

import ctypes
import os
import random
import signal

import torch

import ftn_pytorch

net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
with torch.no_grad():
    for i, parameter in enumerate(net.parameters()):
        parameter.copy_(torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape) * (i + 1) / 4)
loader = os.getpid()
os.environ["SET_BY_THE_SCRIPT"] = "kept"
calls = 0
kept = []
copies = []
ranks_at_load = ftn_pytorch.world_size()


def ftn_pytorch_setup(lr=1e-2):
    for group in optimizer.param_groups:
        group["lr"] = lr


def ftn_pytorch_forward(x):
    return net(x[0] if isinstance(x, list) else x)


def ftn_pytorch_train(x, target):
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    ftn_pytorch.average_gradients(net)
    optimizer.step()
    return calls >= 3, loss


def places():
    """Rank, size, size while loading, and whether this process was forked from the one that has loaded."""
    return torch.tensor(
        [ftn_pytorch.rank(), ftn_pytorch.world_size(), ranks_at_load, int(os.getppid() == loader)], dtype=torch.int32
    )


def first_random_numbers():
    return torch.tensor([torch.rand(1).item(), random.random()], dtype=torch.float64)


def threads():
    return torch.get_num_threads()


def environment(name):
    """The variable, which Python and libraries of C see."""
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_char_p
    seen = (library.getenv(name.encode()) or b"none").decode()
    return seen if seen == os.environ.get(name, "none") else "two"


def kinds(x, *, n, scale, flag, name, z):
    return {
        "sum": x.sum() * scale + n,
        "name": name.upper(),
        "flag": not flag,
        "z": z * 2j,
        "x": x.flip(0),
        "half": x.half(),
        "complex": torch.complex(x, -x),
    }


def in_place(x):
    x += 1


def add(a, b, out):
    torch.add(a, b, out=out)


def fails(x):
    raise ValueError(f"no good: {tuple(x.shape)}")


def keeps(x):
    kept.append(x)


def first_copy(x):
    """Changes its copy and keeps it."""
    x += 1
    copies.append(x)
    return copies[0] + 0


def texts_of_ranks():
    from ftn_pytorch.ranks import communicator, sums

    ours = communicator.current()
    assert ours.gather(f"rank {ours.rank}" * ours.rank, purpose="test") == [f"rank {r}" * r for r in range(ours.size)]
    sent = ours.collect(b"x" * ours.rank, ours.rank // 2 * 2, purpose="test")
    assert [each for each in sent if each] == [[b"x"], [], [b"xx", b"xxx"], []][ours.rank]
    assert sums.combined(ours, torch.tensor([1, ours.rank]), "sum", 77, "test").tolist() == [4, 6]
    largest = sums.combined(ours, torch.tensor([float(ours.rank), 1.0]), "max", 77, "test")
    assert largest.tolist() == [3.0, 1.0]
    before = net[0].weight.detach().clone()
    with torch.no_grad():
        net[0].weight += ours.rank
    ftn_pytorch.broadcast(net)
    assert torch.equal(net[0].weight, before)
    ftn_pytorch.require_equal(net)
    return 1.0


def calls_procedure():
    return ftn_pytorch.procedure("of_the_rank")(torch.ones(3))


def gradients_are_on():
    return float(torch.is_grad_enabled())


def joins_group():
    ftn_pytorch.init_process_group()


def die(number):
    os.kill(os.getpid(), signal.Signals(number))


def kill_loader():
    os.kill(loader, signal.SIGKILL)
    return 0


def process():
    return os.getpid()
