# SPDX-License-Identifier: MIT
"""Recorded functions where memory is short, and where several tensors stand for the same memory."""

import gc
import resource

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

CALLS = 10
MIB = 1 << 20

pytestmark = pytest.mark.usefixtures("extension")


class Limit:
    """While it is entered, the process cannot grow by more than that."""

    def __init__(self, room):
        self._room, self._before = room, resource.getrlimit(resource.RLIMIT_AS)

    def __enter__(self):
        gc.collect()
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + self._room, self._before[1]))

    def __exit__(self, *failure):
        resource.setrlimit(resource.RLIMIT_AS, self._before)


def heavy():
    """A step that needs memory for one gradient of 32 MiB; its weights, momentum and gradient take 96 MiB."""
    weight = torch.ones(2048, 4096, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = (x @ weight).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, optimizer


@pytest.mark.parametrize("room", [40, 100, 160])
def test_a_step_that_fits_goes_on_as_it_is(room):
    x, found = torch.ones(4, 2048), []
    for record in (lambda function: function, recorded):
        step, optimizer = heavy()
        for _ in range(2):
            step(x)
        optimizer.zero_grad()
        step = record(step)
        if record is recorded:
            with Limit(room * MIB), pytest.warns(FtnPytorchWarning, match="memory|fails"):
                found.append([step(x).item() for _ in range(CALLS)])
            assert not step.recording.is_ready
        else:
            with Limit(room * MIB):
                found.append([step(x).item() for _ in range(CALLS)])
    assert found[0] == found[1]


def views(array):
    """Tensors over one memory, as Fortran passes an array twice: each counts its own changes."""
    return torch.from_dlpack(array), torch.from_dlpack(array)


# What is written through which, and with which numbers
WRITES = {
    "the second": lambda x, y: y.mul_(2),
    "the first": lambda x, y: x.mul_(2),
    "both": lambda x, y: (x.mul_(2), y.add_(1)),
    "a view": lambda x, y: y[1:].fill_(3),
    "its data": lambda x, y: y.data.mul_(2),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("overlap", ["all", "some"])
def test_the_tensor_that_is_written_counts_it(write, overlap):
    def changed(record):
        memory = torch.arange(6.0).numpy()

        def function(x, y):
            WRITES[write](x, y)
            return x.sum() + y.sum()

        function, found = record(function), []
        for _ in range(CALLS):
            x, y = views(memory) if overlap == "all" else (torch.from_dlpack(memory[:4]), torch.from_dlpack(memory[2:]))
            result = function(x, y)
            found.append((result.item(), x._version > 0, y._version > 0, memory.tolist()))
        return found, function

    plain, _ = changed(lambda function: function)
    found, function = changed(recorded)
    assert found == plain
    assert function.recording.is_ready, function.recording.obstacle


@pytest.mark.filterwarnings("ignore:.*index_put_ on expanded tensors")
def test_views_that_a_call_writes_are_as_they_would_be():
    """Sections, and what shows elements more than once."""

    def made():
        number, table, wave, first = torch.zeros(1), torch.zeros(4, 4), torch.zeros(4, dtype=torch.complex64), [0]

        def step(x):
            number.expand(3).index_put_((torch.tensor([0, 2]),), x.sum())
            table.t()[1:3, ::2].add_(x.sum())
            table.diagonal().add_(1)
            table.as_strided((2, 2), (1, 1)).index_put_((torch.tensor(first),), x.sum())
            torch.view_as_real(wave)[:, 0].add_(1)
            return number * 2 + table.sum()

        return step, (number, table, wave)

    (plain, expected), (step, found) = made(), made()
    step = recorded(step)
    for count in range(12):
        x = torch.full((2,), float(count))
        assert torch.equal(step(x), plain(x)) and all(map(torch.equal, found, expected))
    assert step.recording.is_ready, step.recording.obstacle
