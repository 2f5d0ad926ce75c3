# SPDX-License-Identifier: MIT
"""What call_overhead.f90 calls, and the same calls from a Python loop."""
import time
import types

import torch

SHAPE = (32, 64)
BATCH = 32


def ftn_pytorch_setup(forward="network"):
    """Make the network, and let `forward` be what ftn_pytorch_forward is."""
    global net, optimizer, ftn_pytorch_forward
    ftn_pytorch_forward = globals()[forward]
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)


def empty0():
    pass


def empty1(a):
    pass


def empty3(a, b, c):
    pass


def empty8(a, b, c, d, e, f, g, h):
    pass


def first3(a, b, c):
    return a


@torch.inference_mode()
def network(x):
    return net(x)


def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss


def _time(loop, *args):
    start = time.perf_counter_ns()
    loop(*args)
    return time.perf_counter_ns() - start


def _nothing(calls):
    for _ in calls:
        pass


def _loop0(calls, function):
    for _ in calls:
        function()


def _loop1(calls, function, a):
    for _ in calls:
        function(a)


def _loop2(calls, function, a, b):
    for _ in calls:
        function(a, b)


def _loop3(calls, function, a, b, c):
    for _ in calls:
        function(a, b, c)


def _loop8(calls, function, a, b, c, d, e, f, g, h):
    for _ in calls:
        function(a, b, c, d, e, f, g, h)


_own_loops = {}


def _own(case, loop):
    """The loop with a code object of its own: Python adapts that to the one function that it calls."""
    if case not in _own_loops:
        _own_loops[case] = types.FunctionType(loop.__code__.replace(co_name=f"{loop.__name__} of {case}"), globals())
    return _own_loops[case]


def python_loop(case, calls):
    """Nanoseconds per call of the same function from a Python loop, the empty loop subtracted."""
    tensors = [torch.zeros(SHAPE, dtype=torch.float64) for _ in range(8)]
    x, target = torch.full((BATCH, 16), 0.5), torch.full((BATCH, 4), 0.25)
    loop, *args = {
        "empty0": (_loop0, empty0),
        "empty1": (_loop1, empty1, *tensors[:1]),
        "empty3": (_loop3, empty3, *tensors[:3]),
        "empty8": (_loop8, empty8, *tensors),
        "first": (_loop3, first3, *tensors[:3]),
        "forward": (_loop1, network, x),
        "train": (_loop2, ftn_pytorch_train, x, target),
    }[case]
    calls = range(calls)
    return (_time(_own(case, loop), calls, *args) - _time(_nothing, calls)) / len(calls)
