# SPDX-License-Identifier: MIT
"""average_gradients where the ranks do not do the same: nothing is averaged with another call, and all are told."""

import pytest

from gradient_ranks import run

pytest.importorskip("torch")

ALONE = """
    import json
    import sys
    import torch
    from ftn_pytorch import average_gradients, recorded, require_equal
    from ftn_pytorch.system import extension as library

    rank, size = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)
    CALLS = 40


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
            self.scale = 1.0

        def forward(self, x):
            return self.layers(x) * self.scale


    def train(record, change, checks=3):
        torch.manual_seed(0)
        net = Net()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
        torch.manual_seed(rank)

        def step(x):
            optimizer.zero_grad()
            loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            average_gradients(net)
            optimizer.step()
            return loss

        step = recorded(step, checks=checks) if record else step
        generator = torch.Generator().manual_seed(rank)
        losses = []
        for number in range(CALLS):
            rows = change(net, number)
            losses.append(float(step(torch.randn(rows, 3, generator=generator))))
        require_equal(net)
        assert not record or change is every_shape or step.recording.is_ready, step.recording.obstacle
        return losses, [parameter.tolist() for parameter in net.parameters()]


    def flag(net, number):
        if number == 14 and rank == 1:
            net.scale = 3.0
        return 4


    def mode(net, number):
        if number in (13, 25) and rank == 1:
            net.train(number == 25)
        return 4


    def shape(net, number):
        return 4 + (rank == 1 and number > 20)


    def every_shape(net, number):
        return 4 + number % 12 if rank == 1 else 4


    for change in (flag, mode, shape, every_shape):
        plain = train(False, change)
        if not library.obstacle():
            assert train(True, change) == plain, change.__name__
    assert library.obstacle() or train(True, flag, 0) == train(False, flag)
    print(json.dumps(plain[1]))
    torch.distributed.destroy_process_group()
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_what_changes_on_one_rank_alone_mixes_no_calls(tmp_path):
    assert run(2, tmp_path, ALONE)


PASSED_OVER = """
    import datetime
    import json
    import sys
    import torch
    from ftn_pytorch import average_gradients, errors, recorded
    from ftn_pytorch.ranks import failed_calls
    from ftn_pytorch.system import extension as library

    rank, size = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size, timeout=datetime.timedelta(seconds=300)
    )


    def train(record, fails, calls=30, alike=False):
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)

        def inner(x):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            average_gradients(net)
            optimizer.step()

        inner = recorded(inner) if record else inner
        number, told = 0, []

        def ftn_pytorch_train(x):
            if number in fails and (alike or rank == 1):
                raise ZeroDivisionError
            inner(x)
            if number == 3 and rank == 1:
                raise KeyError  # after the average: nothing is shifted

        train = failed_calls.Counted(ftn_pytorch_train)
        for number in range(calls):
            before = net.weight.detach().clone()
            try:
                train(torch.full((4, 3), float(rank + 1)))
            except (ZeroDivisionError, KeyError):
                continue
            except Exception as failure:
                told.append([number, *errors.describe(failure, "")])
                assert torch.equal(net.weight, before)
                break
        return told


    found = []
    for record in [False, True][: 1 if library.obstacle() else 2]:
        assert train(record, (8, 20), alike=True) == []
        found.append(train(record, (18,), 30 + rank))
    found.append(train(False, (0,), 30 + rank))

    # exact in each type, also where the numbers begin anew
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        weight = torch.nn.Parameter(torch.ones(2, dtype=dtype))
        for call in range(300):
            weight.grad = torch.full_like(weight, rank + call)
            average_gradients([weight])
        assert weight.grad.tolist() == [299.5 if dtype != torch.bfloat16 else 300.0] * 2, weight.grad

    # another network of the same size
    one, two = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    for each in (one, two):
        each.grad = torch.ones(2)
        average_gradients([each])
    try:
        average_gradients([[one, two][rank]])
    except errors.FtnPytorchError as failure:
        found.append([0, failure.status, failure.text])
    for calls in found:
        assert len(calls) in (1, 3), calls
    found = [calls[0] if len(calls) == 1 else calls for calls in found]
    everywhere = [None, None]
    torch.distributed.all_gather_object(everywhere, found)
    print(json.dumps(everywhere))
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_an_error_that_one_rank_passes_over_is_told_to_all(tmp_path):
    """Rank 1 fails before it averages, and goes on: its next call meets the one that the others wait in."""
    for rank, found in enumerate(run(2, tmp_path, PASSED_OVER)):
        *recorded_or_not, first, network = found
        for number, (call, status, text) in enumerate([*recorded_or_not, first]):
            assert (call, status) == ((0 if (number, first) == (len(found) - 2, first) else 18) + rank, "PYTHON")
            assert "different calls of it" in text and "passed over on a rank (stat=)" in text
        assert "rank 1 is 1 ahead of rank 0. As a rule" in recorded_or_not[0][2]
        assert network[1] == "PYTHON" and "different calls" in network[2]
