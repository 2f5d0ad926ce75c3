# SPDX-License-Identifier: MIT
"""Checkpoints of ranks on several nodes, by a real MPI: who writes, what is restored, what a failure leaves.

A node is told by the name of its host, which ranks of one machine get from the test here.
"""

import json
import textwrap

import pytest

from ftn_pytorch.checkpoint.together import writers_of
from mpi_ranks import implementations, run

torch = pytest.importorskip("torch")

by_mpi = pytest.mark.parametrize("mpi_name", implementations())
by_one_mpi = pytest.mark.parametrize("mpi_name", implementations()[:1])


def run_all(folder, code, implementation):
    """What five ranks tell, after ``PREPARE``."""
    return run(5, folder, textwrap.dedent(PREPARE) + textwrap.dedent(code), implementation)


PREPARE = """
    import builtins, contextlib, ctypes, functools, glob, json, os, shutil, socket, warnings
    import program
    from ftn_pytorch import Checkpoint
    from ftn_pytorch.checkpoint import base, file

    NODES = ["a", "b", "a", "b", "c"]
    SCRIPT = '''
    import torch
    import ftn_pytorch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    rank = ftn_pytorch.rank()
    torch.manual_seed(1 + rank)
    ftn_pytorch_shared = ["net", "optimizer"]
    if rank in BUFFERS:
        buffer = []

    def ftn_pytorch_setup(lr=0):
        pass

    def train(count):
        for _ in range(count):
            x = torch.rand(4, 3)
            if rank in BUFFERS:
                buffer.append(x)
            optimizer.zero_grad()
            net(x).square().mean().backward()
            ftn_pytorch.average_gradients(net)
            optimizer.step()

    def state():
        flat = [each.double().sum().item() for each in net.parameters()]
        kept = [each.sum().item() for each in buffer] if rank in BUFFERS else []
        return [flat, kept, torch.rand(1).item()]
    '''

    def on(nodes):
        socket.gethostname = lambda: nodes[rank]

    def load(handle=WORLD, buffers=(), config=None, name="model.py"):
        text = SCRIPT.replace("BUFFERS", repr(tuple(buffers)))
        path = os.path.join(FOLDER, name)
        if rank == 0:
            with open(path, "w") as file:
                file.write(text)
        ours.gather("", purpose="a test")
        return program.load(path, config, communicator=handle)

    def part_of(ranks):
        made, code = ctypes.c_int32(), ctypes.c_int32()
        given = [ctypes.byref(ctypes.c_int32(each)) for each in (WORLD, int(rank < ranks), rank)]
        mpi.mpi_comm_split_(*given, ctypes.byref(made), ctypes.byref(code))
        return made.value

    def files(folder):
        ours.gather("", purpose="a test")
        found = sorted(os.path.relpath(each, FOLDER) for each in glob.glob(f"{FOLDER}/{folder}*/*.ckpt"))
        ours.gather("", purpose="a test")
        return found

    def warned(function, *arguments, **named):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(*arguments, **named)
        return [str(each.message) for each in caught]

    class NoFiles:
        # every look at the file system is an error meanwhile
        NAMES = [(os, each) for each in ("stat", "lstat", "open", "listdir", "scandir", "mkdir", "unlink", "replace")]
        NAMES.append((builtins, "open"))

        def __enter__(self):
            self.before = [getattr(*each) for each in self.NAMES]
            for (module, name), function in zip(self.NAMES, self.before):
                setattr(module, name, functools.partial(self.refuse, function))

        def __exit__(self, *failure):
            for (module, name), function in zip(self.NAMES, self.before):
                setattr(module, name, function)

        def refuse(self, function, *arguments, **named):
            # a rank that waits for long looks whether the others are still there
            if str(arguments[0]).startswith("/proc/"):
                return function(*arguments, **named)
            raise AssertionError(arguments)

    on(NODES)
    place = FOLDER + "/rank%r"
"""


def test_the_lowest_of_each_node_writes_what_others_do_not_keep_themselves():
    assert writers_of("aabb", [True] * 4) == [0, 0, 2, 2]
    assert writers_of("abab", [True] * 4) == [0, 1, 0, 1]
    assert writers_of("aaaa", [False, True, False, True]) == [0, 1, 2, 1]


@by_mpi
def test_a_file_per_node_restores_on_other_nodes_and_numbers_of_ranks(tmp_path, mpi_name):
    code = """
        model = load()
        for step in (1, 2, 3):
            model._module.train(2)
            with NoFiles() if step > 1 and rank in (2, 3) else contextlib.nullcontext():
                model.checkpoint(place, 2, step)
        written = files("rank")
        on_disk = sorted(os.listdir(FOLDER))
        later = (model._module.train(2), model._module.state())[1]
        del model  # and its locks

        on(["z", "y", "y", "z", "z"])
        again = load(name="again.py")
        step = again.restore(place)
        same = (again._module.train(2), again._module.state())[1] == later
        again.checkpoint(place, 2, 4)
        expected = again._module.state()
        moved = files("rank")
        restored = load(name="restored.py")
        newest = restored.restore(place)
        same = same and restored._module.state() == expected

        few = part_of(3)
        fewer = None
        if rank < 3:
            restored = program.load(os.path.join(FOLDER, "restored.py"), communicator=few)
            told = warned(lambda: restored.restore(place))
            fewer = [restored._module.state() == expected, told]
            restored.checkpoint(FOLDER + "/few%r", 2, 7)
        ours.gather("", purpose="a test")
        more = load(name="more.py")
        told = warned(lambda: more.restore(FOLDER + "/few%r"))
        state = more._module.state()
        end([written, on_disk, step, same, moved, newest, fewer, told, files("few"), state, expected])
    """
    answers = run_all(tmp_path, code, mpi_name)
    for rank, (written, on_disk, step, same, moved, newest, fewer, told, few, state, _) in enumerate(answers):
        steps = [f"checkpoint-{number:012d}.ckpt" for number in (2, 3, 4)]
        assert written == [f"rank{each}/{name}" for each in (0, 1, 4) for name in steps[:2]]
        assert [each for each in on_disk if each.startswith("rank")] == ["rank.py", "rank0", "rank1", "rank4"]
        assert step == 3 and same and newest == 4
        # what the lowest rank of node c had written before goes as it would have gone
        assert moved == [f"rank{each}/{name}" for each in (0, 1) for name in steps[1:]] + [f"rank4/{steps[1]}"]
        assert few == [f"few{each}/checkpoint-000000000007.ckpt" for each in (0, 1)]
        if rank < 3:
            assert fewer[0]
            warning = "was written by 5 ranks, and there are 3: random states of ranks 3 to 4 are not used"
            assert [warning in text for text in fewer[1]] == [True] * (rank == 0)
        warning = "was written by 3 ranks, and there are 5: ranks 3 to 4 get net, optimizer of rank 0"
        assert [warning in text for text in told] == [True] * (rank == 0)
        assert state[0] == answers[0][9][0]
    assert len({json.dumps(answer[9][2]) for answer in answers}) == 5


@by_one_mpi
def test_a_rank_with_more_than_random_states_writes_a_file_of_its_own(tmp_path, mpi_name):
    code = """
        model = load(buffers=[0, 3])
        model._module.train(2)
        model.checkpoint(place, 3, 1)
        written = files("rank")
        describe = [Checkpoint.read(os.path.join(FOLDER, each)) for each in written]
        mark = describe[0]["together"]
        about = [[sorted(each["objects"]), each["parts"], each["together"] == mark] for each in describe]
        later = (model._module.train(2), model._module.state())[1]
        again = load(buffers=[0, 3], config={"lr": rank}, name="again.py")
        told = warned(lambda: again.restore(place))
        same = (again._module.train(2), again._module.state())[1] == later
        # from now on, another one has what needs a file, and all are on one node
        on(["a"] * 5)
        next = load(buffers=[1], name="next.py")
        next._module.train(1)
        next.checkpoint(FOLDER + "/next%r", 1, 1)
        next.checkpoint(FOLDER + "/next%r", 1, 2)
        end([written, about, same, files("next"), told])
    """
    for rank, (written, about, same, after, told) in enumerate(run_all(tmp_path, code, mpi_name)):
        assert [each.partition("/")[0] for each in written] == ["rank0", "rank1", "rank2", "rank3", "rank4"]
        own = [["buffer", "net", "optimizer"], [], [], ["buffer"], []]
        assert about == [[objects, [], True] for objects in own]
        assert same
        assert after == [f"next{each}/checkpoint-000000000002.ckpt" for each in (0, 1)]
        assert [text.partition("/rank%r/")[2] for text in told] == [
            "checkpoint-000000000001.ckpt was written with another config: lr. What the script derived from it before "
            "the restart, such as a learning rate, is that of the file (all 5 ranks)"
        ] * (rank == 0)


@by_one_mpi
def test_a_failure_of_one_rank_is_one_of_all_and_leaves_what_was_there(tmp_path, mpi_name):
    code = """
        model = load()
        model.checkpoint(place, 1, 1)
        expected = model._module.state()
        kept, write = base.Checkpoint._encoded, file.write

        def fails(*arguments, **named):
            raise OSError(28, "no space")

        if rank == 3:
            base.Checkpoint._encoded = fails
        sender = told(model.checkpoint, place, 1, 2)
        base.Checkpoint._encoded = kept
        if rank == 1:
            file.write = fails
        writer = told(model.checkpoint, place, 1, 2)
        file.write = write
        steps = told(model.checkpoint, place, 1, 2 + (rank == 4))
        number = told(model.checkpoint, place, int(rank != 2), 2)
        left = files("rank")
        again = load(name="again.py")
        step = again.restore(place)
        model.checkpoint(place, 1, None)
        end([sender, writer, steps, number, left, step, again._module.state() == expected, files("rank")])
    """
    for rank, answer in enumerate(run_all(tmp_path, code, mpi_name)):
        sender, writer, steps, number, left, step, same, after = answer
        assert "no space" in sender[1] and "no space" in writer[1]
        assert ("rank 3 cannot write its part: " in sender[1]) == (rank != 3)
        assert ("rank 1 has not written its file, so there is no checkpoint" in writer[1]) == (rank != 1)
        assert steps[0] == "ARGUMENT" and "the ranks write different steps: 2 on rank 0, 3 on rank 4" in steps[1]
        assert number[0] == "ARGUMENT" and "keep is 0" in number[1]
        assert left == [f"rank{each}/checkpoint-000000000001.ckpt" for each in (0, 1, 4)]
        assert step == 1 and same
        assert after == [f"rank{each}/checkpoint-000000000002.ckpt" for each in (0, 1, 4)]


@by_one_mpi
def test_files_of_a_rank_each_are_restored_and_go(tmp_path, mpi_name):
    """As versions before wrote them; and one node has another file of the newest step."""
    code = """
        from ftn_pytorch.checkpoint import together
        of_nodes = together.writers_of
        together.writers_of = lambda nodes, is_bare: list(range(len(nodes)))
        model = load()
        for step in (1, 2):
            model._module.train(1)
            model.checkpoint(place, 2, step)
        before = files("rank")
        later = (model._module.train(1), model._module.state())[1]
        together.writers_of = of_nodes
        del model
        again = load(name="again.py")
        step = again.restore(place)
        same = (again._module.train(1), again._module.state())[1] == later
        again.checkpoint(place, 2, 3)
        between = files("rank")
        again.checkpoint(place, 2, 4)
        after = files("rank")
        if rank == 1:  # of the same step and of another checkpoint
            shutil.copy(*(f"{FOLDER}/rank1/checkpoint-00000000000{step}.ckpt" for step in (3, 4)))
        newest = load(name="newest.py").restore(place)
        if rank == 4:
            with open(FOLDER + "/rank4/checkpoint-000000000003.ckpt", "ab") as damaged:
                damaged.write(b"x")
        broken = told(load(name="broken.py").restore, place)
        missing = told(load(name="missing.py").restore, place, step=2)
        end([before, step, same, between, after, newest, broken, missing])
    """
    for rank, answer in enumerate(run_all(tmp_path, code, mpi_name)):
        before, step, same, between, after, newest, broken, missing = answer
        name = "rank{}/checkpoint-{:012d}.ckpt".format
        assert before == [name(each, number) for each in range(5) for number in (1, 2)]
        assert step == 2 and same
        assert between == sorted(
            [*(name(each, number) for each in (0, 1, 4) for number in (2, 3)), name(2, 2), name(3, 2)]
        )
        assert after == [name(each, number) for each in (0, 1, 4) for number in (3, 4)]
        assert newest == 3
        assert broken[0] == "CORRUPT" and ("rank 4 cannot read its part" in broken[1]) == (rank != 4)
        assert missing[0] == "NO_CHECKPOINT"
        assert "Steps of rank 0: 4, 3; rank 1: 4, 3; rank 2: 4, 3; rank 3: 4, 3; rank 4: 4, 3" in missing[1]
