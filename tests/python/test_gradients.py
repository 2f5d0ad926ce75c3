# SPDX-License-Identifier: MIT
"""average_gradients: two ranks train one network, recorded and not, to the numbers of one rank with both batches."""

import pytest

import ftn_pytorch
from gradient_ranks import run

torch = pytest.importorskip("torch")

RANK = """
    import sys
    import torch
    from ftn_pytorch import average_gradients, recorded
    from ftn_pytorch.system import extension as library

    rank, size = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)


    def train(record):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
        unused = torch.nn.Linear(2, 2)
        parameters = [*net.parameters(), *unused.parameters()]
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
        x = torch.randn(8, 3, dtype=torch.float64)[rank::size]

        def step(x):
            optimizer.zero_grad()
            loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            average_gradients(parameters)
            optimizer.step()
            return loss

        step = recorded(step) if record else step
        for _ in range(20):
            step(x)
        assert not record or step.recording.is_ready, step.recording.obstacle
        assert unused.weight.grad.abs().sum() == 0
        return [parameter.tolist() for parameter in net.parameters()]


    plain = train(False)
    assert library.obstacle() or train(True) == plain, "recorded, the numbers are the same, bit for bit"
    print(plain)
    torch.distributed.destroy_process_group()
"""


def test_two_ranks_are_one_recorded_or_not(tmp_path):
    for one, two in zip(run(1, tmp_path, RANK), run(2, tmp_path, RANK)):
        assert torch.allclose(torch.tensor(one), torch.tensor(two), atol=1e-12)


def test_without_a_process_group(fails):
    with fails("ARGUMENT", "needs a process group", "communicator=MPI_COMM_WORLD", "init_process_group"):
        ftn_pytorch.average_gradients(torch.nn.Linear(1, 1))


@pytest.mark.parametrize("samples", [-1, True])
def test_numbers_of_samples_that_are_none(fails, samples):
    with fails("ARGUMENT", f"samples is {samples}, it must be 0 or more"):
        ftn_pytorch.average_gradients(torch.nn.Linear(1, 1), samples=samples)


WEIGHTED = """
    import sys
    import torch
    from ftn_pytorch import average_gradients, recorded, require_equal
    from ftn_pytorch.system import extension as library

    rank, size = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)


    def train(record):
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 1).double()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-1)

        def step(x):
            optimizer.zero_grad()
            loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            average_gradients(net, samples=len(x))
            optimizer.step()

        step = recorded(step) if record else step
        generator = torch.Generator().manual_seed(1)
        for number in range(20):
            all_samples = torch.randn(8 + 4 * (number >= 10), 3, dtype=torch.float64, generator=generator)
            parts = all_samples.split([2, len(all_samples) - 2]) if size == 2 else [all_samples]
            step(parts[rank])
            require_equal(net)
        assert not record or step.recording.obstacle, "ranks would record in different calls"
        assert not record or "number" in step.recording.obstacle, step.recording.obstacle
        return net.weight.tolist()


    plain = train(False)
    assert library.obstacle() or train(True) == plain
    print([plain])
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_unequal_numbers_of_samples_decorated_or_not(tmp_path):
    """2 and 6 samples, later 2 and 10, are one rank with 8, later 12."""
    for one, two in zip(run(1, tmp_path, WEIGHTED), run(2, tmp_path, WEIGHTED)):
        assert torch.allclose(torch.tensor(one), torch.tensor(two), atol=1e-12)


UNLIKE = """
    import datetime
    import json
    import os
    import sys
    import torch
    from ftn_pytorch import average_gradients, errors, require_equal

    rank, size = int(sys.argv[1]), int(sys.argv[2])
    torch.distributed.init_process_group(
        "gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size, timeout=datetime.timedelta(seconds=300)
    )


    def refused(*arguments, function=average_gradients, **named):
        try:
            function(*arguments, **named)
        except errors.FtnPytorchError as failure:
            return f"{failure.status}: {failure.text}"


    def network(sizes):
        torch.manual_seed(0)
        made = torch.nn.Sequential(torch.nn.Linear(3, sizes[0]), torch.nn.Linear(sizes[0], 1))
        for parameter in made.parameters():
            parameter.grad = torch.full_like(parameter, rank)
        return made


    found = [refused(network([4 + (rank == 1)])), refused(network([4 + (rank == 1)]), samples=1)]
    frozen = network([4])
    frozen[rank].requires_grad_(False)
    found.append(refused(frozen))
    alike = network([4])
    found.append(refused(alike) or alike[0].bias.grad.tolist())
    found.append(refused([[torch.nn.LazyLinear(1)], [alike[1]]][rank][0]))
    found.append(refused(set(alike.parameters())))
    table = torch.nn.Embedding(3, 1, sparse=True)
    if rank:
        table(torch.tensor([1, 1, 2])).sum().backward()
    found.append(refused(table) or table.weight.grad.flatten().tolist())
    alike.register_buffer("sparse", torch.eye(3).to_sparse_csr())
    torch.manual_seed(0)
    for parameter in alike.parameters():
        torch.nn.init.normal_(parameter)
    found.append(refused(alike, function=require_equal))
    alike.sparse = torch.eye(3).to_sparse() * (1 + rank)
    found.append(refused(alike, function=require_equal))
    unlike = network([4])
    with torch.no_grad():
        unlike[1].bias += rank
    before = unlike[1].bias.grad.clone()
    found += [refused(unlike), refused(unlike.parameters()), torch.equal(unlike[1].bias.grad, before)]
    print(json.dumps(found), flush=True)
    if rank == 0:
        text = refused(alike)
        assert text.startswith("PYTHON: average_gradients has not reached the other ranks"), text
    os._exit(0)  # a rank that is gone: threads of gloo may abort a process that ends with its group
"""


def test_ranks_with_unlike_networks_are_told_and_none_is_mixed(tmp_path):
    answer = run(2, tmp_path, UNLIKE)
    for text in answer[:2]:
        assert text.startswith("FORMAT: average_gradients: the ranks do not average the same parameters")
        assert "rank 1 differs from rank 0 in 0.weight, 0.bias, 1.weight. Make" in text
    assert "rank 1 differs from rank 0 in 1.weight, 1.bias, 0.weight, 0.bias. Make" in answer[2]
    assert answer[3] == [0.5] * 4
    assert answer[4].startswith("FORMAT: average_gradients")
    assert answer[5].startswith("ARGUMENT: average_gradients: a set has another order")
    assert answer[6] == [0.0, 1.0, 0.5]
    assert answer[7] is None
    assert "rank 1 differs from rank 0 in sparse." in answer[8]
    for text, name in ((answer[9], "1.bias"), (answer[10], "parameter 4")):
        assert text.startswith(
            "FORMAT: average_gradients: the ranks do not begin with the same network: rank 1 differs"
        )
        assert f"in {name}. Make it of the same random numbers" in text
    assert answer[11]
