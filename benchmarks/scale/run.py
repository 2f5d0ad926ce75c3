# SPDX-License-Identifier: MIT
"""Count what programs ask file systems when they start, and tell how long many ranks take.

``python benchmarks/scale/run.py``: counts with ``bench_start`` of the build and strace, and prints a table.
``--from counts.json``: only the table, from stored counts. See ``README.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks")]

from scale import count  # noqa: E402
from scale.model import NO_LOAD, Cluster, Counts, starts_of, table  # noqa: E402

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


def main() -> None:
    """Count, or read counts, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="stored", help="counts of an earlier run")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the counts")
    parser.add_argument("--ranks", type=int, default=Cluster.ranks)
    parser.add_argument("--ranks-per-node", type=int, default=Cluster.ranks_per_node)
    parser.add_argument(
        "--rank-operations", type=int, metavar="N", help="operations of a rank where each node has one Python"
    )
    chosen = parser.parse_args()
    found = read(chosen.stored) if chosen.stored else dict(counted(chosen.build.resolve()))
    if chosen.output:
        chosen.output.write_text(json.dumps({name: asdict(each) for name, each in found.items()}, indent=1) + "\n")
    number = chosen.rank_operations
    rank = None if number is None else Counts(number, number, number, found[NO_LOAD].cpu)
    print("\n".join(table(starts_of(found, rank), cluster=Cluster(chosen.ranks, chosen.ranks_per_node))))


def read(file: Path) -> dict[str, Counts]:
    """Counts that ``--output`` has written."""
    return {name: Counts(**each) for name, each in json.loads(file.read_text()).items()}


def counted(build: Path) -> Iterator[tuple[str, Counts]]:
    """Count all programs."""
    program, environment = build / "benchmarks" / "scale" / "bench_start", count.environment_of(sys.executable)
    commands = {**environment, "PYTHONPATH": str(ROOT / "python"), "ftn_pytorch_ROOT": str(build)}
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


if __name__ == "__main__":
    main()
