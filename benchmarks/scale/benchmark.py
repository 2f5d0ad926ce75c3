# SPDX-License-Identifier: MIT
"""Count what programs ask file systems when they start, and tell how long many ranks take.

It needs a build with the target bench_start, and strace. See scale/README.md.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

from harness import machine
from harness.tables import page, table

from . import count
from .model import NO_LOAD, RANK_OF_A_NODE, Cluster, Counts, starts_of, times

NUMPY = "import numpy\ndef ftn_pytorch_forward(x):\n    return 2 * numpy.asarray(x)\n"
PREDICTS = "import torch\nnet = torch.nn.Linear(3, 3)\ndef ftn_pytorch_forward(x):\n    return net(x)\n"
STEP = """    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss
"""
OPTIMIZER = f"{PREDICTS}optimizer = torch.optim.Adam(net.parameters())\ndef ftn_pytorch_train(x, target):\n{STEP}"
BACKGROUND = f"""{PREDICTS}optimizer = torch.optim.Adam(net.parameters())
from ftn_pytorch.kit import Background
def step(x, target):
{STEP}background = Background(step, net, process=True)
def ftn_pytorch_train(x, target):
    return background.submit(x, target)
"""
SCRIPTS = {
    "NumPy script": (NUMPY, []),
    "torch script that predicts": (PREDICTS, []),
    "torch script with an optimizer": (OPTIMIZER, ["train"]),
    "torch script that trains in a process": (BACKGROUND, ["train"]),
}


def options(parser):
    parser.add_argument("--ranks", type=int, default=Cluster.ranks, help="default: %(default)s")
    parser.add_argument("--ranks-per-node", type=int, default=Cluster.ranks_per_node, help="default: %(default)s")
    parser.add_argument(
        "--rank-operations",
        type=int,
        default=RANK_OF_A_NODE,
        metavar="N",
        help="operations of a rank where each node has one Python (default: %(default)s)",
    )


def apply(chosen, found):
    found["cluster"] = {
        "ranks": chosen.ranks, "ranks_per_node": chosen.ranks_per_node, "rank_operations": chosen.rank_operations
    }


def measure(chosen, keep):
    with machine.described() as found:
        found["counts"] = []
        for name, each in counted(chosen.build.resolve()):
            found["counts"].append({"program": name, **asdict(each)})
            keep(found)
    return found


def markdown(found):
    rows = {row["program"]: Counts(*(row[each.name] for each in fields(Counts))) for row in found["counts"]}
    ranks, ranks_per_node, operations = found["cluster"].values()
    cluster = Cluster(ranks, ranks_per_node)
    return page("The start of many ranks", found, table(*times(starts_of(rows, operations), cluster=cluster)))


def counted(build: Path) -> Iterator[tuple[str, Counts]]:
    """Count all programs."""
    program, environment = machine.program_of(build, "scale", "bench_start"), count.environment_of(sys.executable)
    commands = {**environment, "PYTHONPATH": machine.package_of(build), "ftn_pytorch_ROOT": str(build)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield NO_LOAD, count.counts([program], environment)
        yield "saved model, direct path", count.counts([program, saved_model(folder), "direct"], environment)
        for number, (title, (text, words)) in enumerate(SCRIPTS.items()):
            script = folder / f"closure_{number}.py"
            script.write_text(text)
            command = [program, script, *words]
            yield title, count.counts(command, environment)
            pack = script.with_suffix(".pack")
            make = [sys.executable, "-m", "ftn_pytorch", "pack", script, "--input", "2x3", "--output", pack]
            count.run(make, commands)
            yield f"{title}, with a pack", count.counts(command, {**environment, "FTN_PYTORCH_PACK": str(pack)})


def saved_model(folder: Path) -> Path:
    """A TorchScript file."""
    import torch

    torch.jit.save(torch.jit.script(torch.nn.Linear(3, 3)), str(folder / "net.pt"))
    return folder / "net.pt"

