# SPDX-License-Identifier: MIT
"""What recorded functions do on a GPU, as they are and recorded: what graphs could get wrong."""

import torch

from ftn_pytorch import recorded

nn = torch.nn
CALLS = 24
MIB = 1 << 20


def plain(function):
    def call(*args):
        found = function(*args)
        return found.detach() if isinstance(found, torch.Tensor) else found

    return call


def both_ways(case):
    """What a case yields with a function as it is, and recorded; the generators begin in the same state."""
    found = []
    for record in (plain, recorded):
        torch.manual_seed(0)
        found.append([each.detach().clone() for each in case(record)])
    assert len(found[0]) == len(found[1])
    for number, (one, other) in enumerate(zip(*found)):
        assert torch.equal(one, other), (number, one, other)


def network(*widths):
    torch.manual_seed(1)
    layers = [layer for one, two in zip(widths, widths[1:]) for layer in (nn.Linear(one, two), nn.Tanh())]
    return nn.Sequential(*layers[:-1]).cuda()


def step_of(net, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


# ---- numbers of the host


def a_number_as_argument(record):
    apply = record(lambda x, dt: x * dt)
    for call in range(CALLS):
        yield apply(torch.ones(3, device="cuda"), torch.tensor(0.5 if call < 12 else 0.1 * call))


def a_number_of_the_script(record):
    dt = torch.tensor(0.5)
    apply = record(lambda x: x * dt + dt.cuda())
    for call in range(CALLS):
        if call > 11:
            dt.fill_(0.1 * call)
        yield apply(torch.ones(3, device="cuda"))


def a_rate_on_the_host(record):
    net, rate = network(4, 8, 2), torch.tensor(1e-2)
    step = record(step_of(net, torch.optim.AdamW(net.parameters(), lr=rate, fused=True)))
    for call in range(CALLS):
        rate.fill_(1e-2 / (1 + call))
        yield step(torch.ones(8, 4, device="cuda"))


def numbers_of_python(record):
    apply = record(lambda x: x * torch.tensor([1.0, 2.0, 3.0]).cuda() + torch.tensor(0.5))
    for call in range(CALLS):
        yield apply(torch.full((3,), float(call), device="cuda"))


# ---- memory


def a_large_pinned_array(record):
    """It is written again as soon as the call returns, while the GPU is busy with something else."""
    array = torch.empty(64 * MIB // 4, pin_memory=True)
    apply, work = record(lambda x: x.cuda().mean()), torch.randn(4096, 4096, device="cuda")
    for call in range(CALLS):
        array.fill_(float(call))
        for _ in range(10):
            work = work @ work * 1e-4
        found = apply(array)
        array.fill_(-1e4)
        yield found


def arrays_that_overlap(record):
    memory = torch.zeros(4096, device="cuda")
    apart = [torch.zeros(512, device="cuda") for _ in range(2)]

    def function(x, y):
        y.mul_(0.5)
        return x.sum()

    apply = record(function)
    for call in range(CALLS):
        memory.copy_(torch.linspace(0, 1, 4096))
        x, y = apart if call < 8 else (memory[:512], memory[(call % 3) * 100 :][:512])
        yield apply(x.fill_(1.0), y)
        yield memory


def strides_at_other_addresses(record):
    apply = record(lambda x: torch.as_strided(x, (4, 3), (x.stride(0), 1)) * 2)
    arrays = [torch.arange(40.0, device="cuda").reshape(5, 8) for _ in range(3)]
    for call in range(CALLS):
        yield apply(arrays[call % 3][:4, :6])


def half_precision_on_sections(record):
    net = nn.Linear(64, 64).cuda().bfloat16()
    apply = record(lambda x: net(x))
    arrays = [torch.randn(129, 67, device="cuda").bfloat16() for _ in range(3)]
    for call in range(CALLS):
        yield apply(arrays[call % 3][1:, (call % 2) : 64 + (call % 2)])


def gradients_that_are_kept(record):
    net, kept = network(4, 8, 2), []
    step = record(step_of(net, torch.optim.SGD(net.parameters(), lr=0.1)))
    for call in range(CALLS):
        step(torch.full((8, 4), 0.1 * call, device="cuda"))
        kept += [each.grad for each in net.parameters()]
    yield from kept


def gradients_beside_other_graphs(record):
    net, wide = network(4, 8, 2), network(4, 64, 64, 2)
    step = record(step_of(net, torch.optim.SGD(net.parameters(), lr=0.1)))
    apply = record(lambda x: wide(x))
    for call in range(CALLS):
        x = torch.full((8, 4), 0.1 * call, device="cuda")
        step(x)
        yield apply(x + 1)
        yield from [each.grad for each in net.parameters()]


# ---- settings, generators, captures that fail


def settings_of_kernels(record):
    net = network(512, 512, 512)
    apply, x = record(lambda x: net(x)), torch.randn(512, 512, device="cuda")
    before = torch.backends.cuda.matmul.allow_tf32
    for call in range(CALLS):
        torch.backends.cuda.matmul.allow_tf32 = call > 11
        yield apply(x)
    torch.backends.cuda.matmul.allow_tf32 = before


def recurrent_with_dropout(record):
    net = nn.LSTM(4, 8, 2, dropout=0.5).cuda()
    apply = record(lambda x: net(x)[0])
    for _ in range(CALLS):
        yield apply(torch.ones(5, 2, 4, device="cuda"))


def unsuccessful(function):
    """A function that no graph can hold, and random numbers after it."""

    def case(record):
        apply = record(function)
        for _ in range(CALLS):
            yield apply(torch.eye(3, device="cuda") + 0.1 * torch.randn(3, 3, device="cuda"))
            yield nn.functional.dropout(torch.ones(16, device="cuda"))

    case.__name__ = function.__name__
    return case


def solve(x):
    return torch.linalg.solve(x, x.sum(0))


def eigenvalues(x):
    return torch.linalg.eigh(x @ x.T)[0]


ROWS = torch.tensor([2, 0])


def rows_by_index_of_the_host(x):
    return x[ROWS]


CASES = [
    a_number_as_argument,
    a_number_of_the_script,
    a_rate_on_the_host,
    numbers_of_python,
    a_large_pinned_array,
    arrays_that_overlap,
    strides_at_other_addresses,
    half_precision_on_sections,
    gradients_that_are_kept,
    gradients_beside_other_graphs,
    settings_of_kernels,
    unsuccessful(solve),
    unsuccessful(eigenvalues),
    unsuccessful(rows_by_index_of_the_host),
]
