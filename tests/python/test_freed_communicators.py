# SPDX-License-Identifier: MIT
"""MPI gives the handle of a communicator that was freed to the next one, which is of other ranks."""

import pytest

from mpi_ranks import implementations, run

pytest.importorskip("torch")

pytestmark = pytest.mark.parametrize("mpi_name", implementations())

HALO = """
import torch
from ftn_pytorch import all_reduce_mean, world_size
from ftn_pytorch.halo import Exchange

def ftn_pytorch_setup():
    global exchange
    exchange = Exchange((2, 3), 1, grid=(1, world_size()), boundary="periodic")

def ftn_pytorch_forward(x):
    # the columns of the halo are those of the neighbours, the mean is that of all ranks
    padded = exchange(x.sum() + torch.zeros(2, 3))
    return torch.stack([padded[1, 0], padded[1, -1], all_reduce_mean(x.sum())])
"""
# As HALO, but what it exchanges lives on in a module that it imports.
KEPT = (
    HALO.replace("global exchange\n", "global exchange\n    import keeps_exchanges\n")
    + """
    keeps_exchanges.kept.append(exchange)
"""
)
AVERAGES = """
import torch
from ftn_pytorch import all_reduce_mean, average_gradients
torch.manual_seed(0)
net = torch.nn.Linear(1, 1)

def ftn_pytorch_forward(x):
    net.zero_grad()
    net(x.reshape(1, 1)).sum().backward()
    average_gradients(net)
    mean = all_reduce_mean(x.sum())
    return torch.stack([mean, net.weight.grad[0, 0], mean])
"""
HERE = """
    import program
    program.on_start({"adopted": "1"})

    def split(colour):
        made = ctypes.c_int32()
        arguments = [ctypes.c_int32(each) for each in (WORLD, colour, rank)]
        mpi.mpi_comm_split_(*map(ctypes.byref, arguments), ctypes.byref(made), ctypes.byref(code))
        return made.value

    def free(handle):
        mpi.mpi_comm_free_(ctypes.byref(ctypes.c_int32(handle)), ctypes.byref(code))

    class Module:
        def __init__(self, name, handle):
            self.before = program.memory()
            self.runner = program.load(os.path.join(SCRIPTS, name), communicator=handle)

        def forward(self):
            return program.call(self.runner, "ftn_pytorch_forward", torch.tensor([float(rank)])).tolist()

        def free(self):
            self.runner = None
            program.collect_garbage(self.before)

    del ours  # that of the whole test
"""
PROGRAM = """
    def one_after_the_other(first, second):
        handle = split(0)
        module = Module(first, handle)
        answer = module.forward()
        module.free()
        free(handle)
        part = split(rank // 2)
        module = Module(second, part)
        answers = [part == handle, answer, module.forward()]
        module.free()
        free(part)
        return answers

    def beside():
        first, second = split(0), split(rank // 2)
        module = Module("kept.py", first)
        answers = [module.forward()]
        module.free()
        module = Module("averages.py", second)
        answers.append(module.forward())
        free(first)
        answers.append(module.forward())
        module.free()
        module = Module("halo.py", second)
        answers.append(module.forward())
        module.free()
        free(second)
        return answers

    def graphs():
        found = []
        for step in range(6):
            module = Module("halo.py", WORLD)
            found.append(module.runner._module.exchange._neighbours._graph.handle)
            module.free()
        return len(set(found))

    pairs = [(one, other) for one in ("halo.py", "kept.py") for other in ("averages.py", "halo.py")]
    end([[one_after_the_other(*pair) for pair in pairs], beside(), graphs()])
"""
# Neighbour to the left, to the right, mean: of all three ranks, of the first two and the third
ALL = [[2, 1, 1], [0, 2, 1], [1, 0, 1]]
PARTS = [[1, 1, 0.5], [0, 0, 0.5], [2, 2, 2]]
AVERAGES_OF_PARTS = [[0.5] * 3, [0.5] * 3, [2] * 3]


def test_no_module_meets_the_ranks_of_one_that_is_gone(tmp_path, mpi_name):
    (tmp_path / "halo.py").write_text(HALO)
    (tmp_path / "kept.py").write_text(KEPT)
    (tmp_path / "keeps_exchanges.py").write_text("kept = []")
    (tmp_path / "averages.py").write_text(AVERAGES)
    answers = run(3, tmp_path, f"\n    SCRIPTS = {str(tmp_path)!r}\n{HERE}{PROGRAM}", mpi_name)
    for (after, beside, graphs), whole, part, averages in zip(answers, ALL, PARTS, AVERAGES_OF_PARTS):
        assert after == [[True, whole, averages], [True, whole, part]] * 2, "the handle of other ranks"
        assert beside == [whole, averages, averages, part], "a communicator without a module, alive and freed"
        assert graphs <= 2, "of 2,045 communicators that MPICH has"
