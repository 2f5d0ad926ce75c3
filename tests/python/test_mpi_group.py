# SPDX-License-Identifier: MIT
"""torch.distributed over the MPI of the program: what torch builds on process groups, and what is refused."""

import pytest

from mpi_ranks import implementations, run

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parametrize("mpi_name", implementations())

GROUP = """
    import threading
    from torch import distributed
    from torch.distributed import ReduceOp

    def sockets():
        files = [os.path.realpath(os.path.join("/proc/self/fd", each)) for each in os.listdir("/proc/self/fd")]
        return sum("socket:" in each for each in files)

    before = sockets()
    ftn_pytorch.init_process_group("ftn_pytorch")
    ftn_pytorch.init_process_group("ftn_pytorch")
    assert distributed.get_backend() == "ftn_pytorch" and distributed.get_rank() == rank
"""

OPERATIONS = """
    every = list(range(size))
    for kind in ("bool", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"):
        dtype = getattr(torch, kind)
        whole = [torch.randint(0, 5, (2, 3), generator=torch.Generator().manual_seed(each)).to(dtype) for each in every]
        row = torch.stack(whole)
        wanted = {ReduceOp.SUM: row.sum(0).to(dtype)}
        if not dtype.is_complex:
            wanted |= {ReduceOp.MAX: row.amax(0), ReduceOp.MIN: row.amin(0)}
        if dtype.is_floating_point or dtype.is_complex:
            wanted[ReduceOp.AVG] = row.mean(0)
        for operation, expected in wanted.items():
            x = whole[rank].clone()
            distributed.all_reduce(x, operation)
            assert torch.equal(x, expected), (kind, operation)
            y = whole[rank].clone()
            distributed.reduce(y, 1, operation)
            assert torch.equal(y, expected if rank == 1 else whole[rank]), (kind, operation)
        z = whole[rank].clone()
        distributed.broadcast(z, 2)
        assert torch.equal(z, whole[2])
        parts = [torch.empty_like(z) for _ in every]
        distributed.all_gather(parts, whole[rank])
        assert torch.equal(torch.stack(parts), row)
        flat = torch.empty_like(row)
        distributed.all_gather_into_tensor(flat, whole[rank].mT.contiguous().mT)
        assert torch.equal(flat, row)
        parts = [torch.empty_like(z) for _ in every] if rank == 3 else None
        distributed.gather(whole[rank], parts, 3)
        assert rank != 3 or torch.equal(torch.stack(parts), row)
        distributed.scatter(z, [each + each for each in whole] if rank == 1 else None, 1)
        assert torch.equal(z, whole[rank] + whole[rank])
        if not dtype.is_complex:
            distributed.reduce_scatter_tensor(z, row)
            assert torch.equal(z, (size * whole[rank].to(torch.int64)).to(dtype)), kind
            distributed.reduce_scatter(z, whole, ReduceOp.MAX)
            assert torch.equal(z, whole[rank])
    texts = [None] * size
    distributed.all_gather_object(texts, {"rank": rank, "text": "x" * rank})
    assert texts == [{"rank": each, "text": "x" * each} for each in every]
    found = [None]
    distributed.scatter_object_list(found, texts if rank == 0 else None, 0)
    assert found == [texts[rank]]
    operator = torch.ops._c10d_functional
    world = distributed.group.WORLD.group_name
    assert operator.wait_tensor(operator.all_reduce(torch.ones(2), "sum", world)).tolist() == [size, size]
    assert operator.wait_tensor(operator.all_gather_into_tensor(torch.ones(2), size, world)).tolist() == [1.0] * 8
    work = distributed.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    assert distributed.barrier() is None

    halves = [distributed.new_group([0, 2]), distributed.new_group([1, 3])]
    x = torch.full((1,), float(rank))
    distributed.all_reduce(x, group=halves[rank % 2])
    assert x.tolist() == [[2.0], [4.0]][rank % 2] and distributed.get_rank(halves[rank % 2]) == rank // 2
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.full((2,), float(rank))
    average_gradients([weight], group=halves[rank % 2])
    assert weight.grad.tolist() == [[1.0] * 2, [2.0] * 2][rank % 2]
    assert sockets() == before
    end("done")
"""

PARTS = """
    some, everyone = [distributed.new_group(ranks) for ranks in ([0, 1], range(size))]
    for group in [some, everyone] if rank < 2 else [everyone]:
        mean = (distributed.get_world_size(group) - 1) / 2
        x, weight = torch.full((2,), float(rank)), torch.nn.Parameter(torch.ones(2))
        distributed.all_reduce(x, ReduceOp.AVG, group)
        weight.grad = torch.full((2,), float(rank))
        average_gradients([weight], group=group)
        assert x.tolist() == weight.grad.tolist() == [mean] * 2
    end("done")
"""


def test_all_operations(tmp_path, mpi_name):
    assert run(4, tmp_path, GROUP + OPERATIONS, mpi_name) == ["done"] * 4


def test_ranks_may_have_other_numbers_of_groups(tmp_path, mpi_name):
    assert run(4, tmp_path, GROUP + PARTS, mpi_name) == ["done"] * 4


TWO_COMMUNICATORS = """
    part = ours.part([0, 1]) if rank < 2 else None
    some = communicator.opened(part.handle) if part else None
    for mine in [some, ours] if some else [ours]:
        weight = torch.nn.Parameter(torch.ones(2))
        weight.grad = torch.full((2,), float(rank))
        with communicator.of_module(mine):
            average_gradients([weight])
        assert weight.grad.tolist() == [(mine.size - 1) / 2] * 2
    end("done")
"""


def test_some_ranks_train_a_network_that_others_do_not_know(tmp_path, mpi_name):
    assert run(4, tmp_path, TWO_COMMUNICATORS, mpi_name) == ["done"] * 4


TRAINING = """
    from ftn_pytorch import recorded, require_equal, all_reduce_mean
    from ftn_pytorch.system import extension
    from torch.distributed import checkpoint
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def network():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()

    x = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(rank))

    def trained(net, average, module=None):
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        for _ in range(20):
            optimizer.zero_grad()
            ((module or net)(x) - x.sum(1, keepdim=True)).square().mean().backward()
            average(net)
            optimizer.step()
        return net

    def difference(one, other):
        return max(float((a - b).detach().abs().max()) for a, b in zip(one, other))

    calls = ours.calls.copy()
    by_mpi = trained(network(), average_gradients)
    assert sum(ours.calls.values()) == sum(calls.values()) + 20, "one exchange for each step: there is no second way"
    plain = network()
    parallel = trained(plain, lambda net: None, torch.nn.parallel.DistributedDataParallel(plain))
    require_equal(parallel)
    far = [difference(by_mpi.parameters(), parallel.parameters())]
    sharded = network()
    fully_shard(sharded, mesh=init_device_mesh("cpu", (size,)))
    trained(sharded, lambda net: None)
    far.append(difference(by_mpi.parameters(), [each.full_tensor() for each in sharded.parameters()]))

    folder = os.path.join(FOLDER, "saved")
    checkpoint.save({"net": sharded.state_dict()}, checkpoint_id=folder)
    again = network()
    fully_shard(again, mesh=init_device_mesh("cpu", (size,)))
    state = {"net": again.state_dict()}
    checkpoint.load(state, checkpoint_id=folder)
    again.load_state_dict(state["net"])
    locals_of = lambda net: [each.to_local() for each in net.parameters()]
    is_saved = all(map(torch.equal, locals_of(sharded), locals_of(again)))

    made = []
    if not extension.obstacle():
        step = recorded(lambda x: all_reduce_mean(2 * x))
        for _ in range(12):
            made.append(step(torch.full((2,), float(rank))).tolist())
        assert step.recording.is_ready, step.recording.obstacle
        assert all(each == [size - 1.0] * 2 for each in made)
    assert sockets() == before
    end([*far, is_saved])
"""


def test_networks_that_torch_trains_over_ranks(tmp_path, mpi_name):
    """The same as by average_gradients, up to the order of divisions; a checkpoint is read bit for bit."""
    for parallel, sharded, is_saved in run(4, tmp_path, GROUP + TRAINING, mpi_name):
        assert parallel < 1e-12 and sharded < 1e-12 and is_saved


REFUSED = """
    x = torch.ones(3)
    found = {
        "product": told(distributed.all_reduce, x, ReduceOp.PRODUCT),
        "complex": told(distributed.reduce, torch.ones(2, dtype=torch.complex64), 0, ReduceOp.MAX),
        "all_to_all": told(distributed.all_to_all_single, torch.zeros(size), torch.zeros(size)),
        "send": told(distributed.send, x, (rank + 1) % size),
    }
    threads = [threading.Thread(target=lambda: found.update(thread=told(distributed.all_reduce, x)))]
    [each.start() for each in threads]
    [each.join() for each in threads]

    def step(fails):
        if fails:
            raise ZeroDivisionError
        distributed.all_reduce(x)

    step = failed_calls.Counted(step)

    class Module:
        pass

    module = Module()
    communicator.know(ours, module)
    ours._holders.discard(ours)
    step(False)
    if rank == 1:
        told(step, True)
    found["other call"] = told(step, False)
    del module
    found["gone"] = told(distributed.all_reduce, x)
    end(found)
"""


def test_what_is_refused(tmp_path, mpi_name):
    """None of it hangs, and where a rank was in another call all ranks are told."""
    texts = {
        "product": ("ARGUMENT", "there are sums and averages, and the largest and smallest of real numbers"),
        "complex": ("ARGUMENT", "there are sums and averages"),
        "all_to_all": ("ARGUMENT", "has no messages between two ranks"),
        "send": ("ARGUMENT", "send: the process group over the MPI of the program has no messages"),
        "thread": ("ARGUMENT", "a thread of the script cannot call MPI"),
        "other call": ("PYTHON", "all_reduce: the ranks are in different calls of it: rank 1 is 1 ahead of rank 0"),
        "gone": ("ARGUMENT", "is over the communicator of a module that is gone"),
    }
    for found in run(4, tmp_path, GROUP + REFUSED, mpi_name):
        for name, (status, text) in texts.items():
            assert found[name][0] == status and text in found[name][1], name
