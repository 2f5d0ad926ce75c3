# SPDX-License-Identifier: MIT
"""The networks of the benchmark, their inputs, and what plain PyTorch makes of them. All from fixed seeds.

python models.py <folder> [--case NAME]... [--size N]... [--smallest] [--formats pt,pt2,onnx,ftr,ckpt]

writes for each case NAME and size N
    NAME.pt, NAME.pt2, NAME.onnx    the network as TorchScript, AOTInductor package, ONNX model
    NAME.ftr, NAME.ckpt             saved recording and checkpoint of paths/script.py: see writers.py
    NAME_N/problem.txt, *.bin       arrays that go in, arrays that must come out: see write_problem
    manifest.json                   parameters, and why a file is not there
Files that are there already are kept if they were made by the same torch and the same version of these scripts; those
of paths/script.py if they were made by the same version of this library as well.
"""
from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import writers
from paths import plan
from torch import nn

HERE = Path(__file__).resolve().parent
LEARNING_RATES = {"adam": 1e-3, "sgd": 1e-2}
# Steps of training whose losses are compared.
STEPS = 5


def tiny0() -> None:
    return None


def tiny1(a):
    return a


def tiny3(a, b, c):
    return a


def tiny8(a, b, c, d, e, f, g, h):
    return a


TINY = {0: tiny0, 1: tiny1, 3: tiny3, 8: tiny8}


class Tiny(nn.Module):
    """Gives its first array back: what is left is the call."""

    def __init__(self, arrays: int) -> None:
        super().__init__()
        self.forward = TINY[arrays]


def mlp(size: int) -> nn.Module:
    """16-64-64-4 with Tanh."""
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))


def polynomial(size: int) -> nn.Module:
    """A function of one variable: 1-32-32-1 with Tanh."""
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


class LargeStride(nn.Module):
    """2 x, with element (1, 2), counted from one, negated; element by element, as the published benchmark does it."""

    def forward(self, x):
        y = torch.empty_like(x)
        for i in range(x.size(0)):
            for j in range(x.size(1)):
                y[i, j] = 2 * x[i, j]
        y[0, 1] = -y[0, 1]
        return y


class GravityWaveDrag(nn.Module):
    """The network of Espinosa et al. (2022, doi:10.1029/2022GL098174), which the published benchmark runs, with random
    weights: batch norm, layers that all levels share, a branch for each of 40 levels, ReLU; 375,228 parameters."""

    def __init__(self) -> None:
        super().__init__()
        norm = nn.BatchNorm1d(42)
        nn.init.uniform_(norm.running_mean, -1, 1)
        nn.init.uniform_(norm.running_var, 0.5, 2)
        widths = [42] + 5 * [256] + [64]
        shared: list[nn.Module] = [norm]
        for one, other in zip(widths, widths[1:]):
            shared += [nn.Linear(one, other), nn.ReLU()]
        self.shared = nn.Sequential(*shared)
        self.branches = nn.ModuleList(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in range(40))
        # What a tendency was standardised with.
        self.register_buffer("mean", uniform(40))
        self.register_buffer("deviation", 1 + torch.rand(40))
        self.double()

    def forward(self, wind, latitude, pressure):
        x = self.shared(torch.cat([wind, latitude.unsqueeze(1), pressure.unsqueeze(1)], 1))
        levels = [branch(x) for branch in self.branches]
        return torch.cat(levels, 1) * self.deviation + self.mean


def convolutions(channels_in: int, channels: int) -> nn.Sequential:
    """Two convolutions, each followed by a ReLU."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """U-Net (Ronneberger et al. 2015, arXiv:1505.04597) of four levels with 16, 32, 64 and 128 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.down3 = convolutions(3, 16), convolutions(16, 32), convolutions(32, 64)
        self.bottom = convolutions(64, 128)
        self.up3, self.up2, self.up1 = (nn.ConvTranspose2d(2 * n, n, 2, stride=2) for n in (64, 32, 16))
        self.merge3, self.merge2, self.merge1 = convolutions(128, 64), convolutions(64, 32), convolutions(32, 16)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(self.pool(one))
        three = self.down3(self.pool(two))
        x = self.bottom(self.pool(three))
        x = self.merge3(torch.cat([self.up3(x), three], 1))
        x = self.merge2(torch.cat([self.up2(x), two], 1))
        return self.last(self.merge1(torch.cat([self.up1(x), one], 1)))


def resnet18(size: int) -> nn.Module:
    """With random weights."""
    from resnet18 import ResNet18

    return ResNet18()


def uniform(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Between -1 and 1."""
    return 2 * torch.rand(shape, dtype=dtype) - 1


def columns(n: int) -> tuple[torch.Tensor, ...]:
    """Wind, latitude and pressure of n columns, scaled."""
    return tuple(uniform(*shape, dtype=torch.float64) for shape in ((n, 40), (n,), (n,)))


@dataclass(frozen=True)
class Case:
    """A network with inputs of several sizes: see paths/plan.py.

    tolerance: largest difference to plain Python, relative to the largest value of the result; batched: models that are
    compiled take a batch of any size; per_size: there is a model for each size
    """

    build: Callable[[int], nn.Module]
    inputs: Callable[[int], tuple[torch.Tensor, ...]]
    tolerance: float
    optimizer: str = ""
    batched: bool = True
    per_size: bool = False
    refused: tuple[tuple[str, str], ...] = ()

    def stem(self, name: str, size: int) -> str:
        """Of the model files."""
        return f"{name}_{size}" if self.per_size else name


LOOP = "its loop over the elements would be unrolled into N x N operations"
UNROLLED = (
    "pt2", "onnx", "ftr", "code.pt2", "compiled", "recorded", "python-recorded", "python-code", "python-compile"
)
TRAINED = "a model of this format cannot be trained"
CASES = {
    "tiny": Case(Tiny, lambda n: tuple(uniform(4, dtype=torch.float64) for _ in range(n)), 0, batched=False,
                 per_size=True, refused=(("compiled", "there is nothing to compile"),)),
    "mlp": Case(mlp, lambda n: (uniform(n, 16),), 1e-5),
    "large_stride": Case(lambda n: LargeStride(), lambda n: (uniform(n, n),), 0, batched=False,
                         refused=tuple((path, LOOP) for path in UNROLLED)),
    "cgdrag": Case(lambda n: GravityWaveDrag(), columns, 1e-12),
    # Convolutions that are compiled for a batch of any size refuse a batch of one.
    "resnet18": Case(resnet18, lambda n: (uniform(n, 3, 224, 224),), 1e-4, batched=False, per_size=True),
    "unet": Case(lambda n: UNet(), lambda n: (uniform(n, 3, 128, 128),), 1e-4, batched=False),
    "train_step": Case(mlp, lambda n: (uniform(n, 16), uniform(n, 4)), 1e-4, "adam",
                       refused=(("pt2", TRAINED), ("onnx", TRAINED))),
    "train_polynomial": Case(polynomial, lambda n: (uniform(n, 1), uniform(n, 1)), 1e-4, "sgd",
                             refused=(("pt2", TRAINED), ("onnx", TRAINED))),
}


def make(name: str, size: int) -> nn.Module:
    """The network of a case: the same weights in each process."""
    torch.manual_seed(1)
    return CASES[name].build(size).train(bool(CASES[name].optimizer))


def make_inputs(name: str, size: int) -> tuple[torch.Tensor, ...]:
    """Inputs of a case; for training the target is the last one."""
    torch.manual_seed(2)
    return CASES[name].inputs(size)


def make_optimizer(name: str, net: nn.Module, **settings: Any) -> torch.optim.Optimizer:
    """As torch.optim makes it by default, or with settings."""
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[CASES[name].optimizer]
    return kind(net.parameters(), lr=LEARNING_RATES[CASES[name].optimizer], **settings)


def train_step(net: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """One step on the mean squared error; the loss before it."""
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return loss


def write_problem(name: str, size: int, folder: Path) -> dict[str, Any]:
    """Arrays of one size, as raw numbers and as a list in problem.txt, extents in the order of Fortran.

    Lines: "model STEM", "tolerance T", "input|output|target NAME DTYPE RANK EXTENTS...", "optimizer NAME RATE LOSSES".
    """
    case, net, inputs = CASES[name], make(name, size), make_inputs(name, size)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"model {case.stem(name, size)}", f"tolerance {case.tolerance}"]

    def array(role: str, label: str, value: torch.Tensor) -> None:
        extents = " ".join(map(str, reversed(value.shape)))
        lines.append(f"{role} {label} {str(value.dtype).removeprefix('torch.')} {value.dim()} {extents}")
        (folder / f"{label}.bin").write_bytes(value.contiguous().numpy().tobytes())

    for place, value in enumerate(inputs):
        last = place == len(inputs) - 1
        array("target" if case.optimizer and last else "input", f"in{place + 1}", value)
    if case.optimizer:
        optimizer = make_optimizer(name, net)
        losses = [train_step(net, optimizer, *inputs).item() for _ in range(STEPS)]
        lines.append(f"optimizer {case.optimizer} {LEARNING_RATES[case.optimizer]} {STEPS}")
        (folder / "losses.bin").write_bytes(torch.tensor(losses, dtype=torch.float64).numpy().tobytes())
    elif name == "large_stride":
        expected = 2 * inputs[0]
        expected[0, 1] = -expected[0, 1]
        array("output", "out1", expected)
    elif inputs:
        with torch.inference_mode():
            array("output", "out1", net(*inputs))
    (folder / "problem.txt").write_text("\n".join(lines) + "\n")
    return {"stem": case.stem(name, size), "parameters": sum(p.numel() for p in net.parameters())}


def write_models(name: str, size: int, folder: Path, formats: list[str], manifest: dict[str, Any]) -> None:
    """The files of one network that are not there yet."""
    case = CASES[name]
    for suffix in formats:
        file = folder / f"{case.stem(name, size)}.{suffix}"
        refused = dict(case.refused).get(suffix)
        if refused:
            manifest["missing"][file.name] = refused
            continue
        try:
            made_by = writers.made_by(suffix)
        except ImportError as failure:
            manifest["missing"][file.name] = f"ImportError: {failure}"
            continue
        if manifest["made_by"].get(file.name) == made_by and (file.is_file() or file.name in manifest["missing"]):
            continue
        manifest["made_by"][file.name] = made_by
        manifest["missing"].pop(file.name, None)
        # Sizes 0 and 1 would be constants of an exported program.
        net, inputs = make(name, size), make_inputs(name, 2 if case.batched else size)
        model = writers.Model(name, size, net, inputs, case.batched, bool(case.optimizer))
        try:
            with writers.quiet():
                writers.WRITERS[suffix](model, file)
        except Exception as failure:  # whatever a format cannot hold is a line in the result, not the end of it
            manifest["missing"][file.name] = f"{type(failure).__name__}: {str(failure).strip().splitlines()[0]}"
            file.unlink(missing_ok=True)
        print(f"{file.name}: {manifest['missing'].get(file.name, 'written')}", flush=True)


def version() -> str:
    """What the files depend on."""
    sources = b"".join(Path(file).read_bytes() for file in (__file__, writers.__file__))
    return f"{torch.__version__} {hashlib.sha256(sources).hexdigest()[:16]}"


def open_manifest(folder: Path) -> dict[str, Any]:
    """That of the last run, if its files can be used; else an empty one, and the old files are removed."""
    file = folder / "manifest.json"
    if file.is_file():
        manifest = json.loads(file.read_text())
        if manifest["version"] == version():
            return manifest
        for old in (file for suffix in writers.WRITERS for file in folder.glob(f"*.{suffix}")):
            old.unlink()
    return {
        "version": version(),
        "missing": {},
        "made_by": {},
        "problems": {},
        "refused": {name: dict(case.refused) for name, case in CASES.items()},
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--size", action="append", type=int, help="default: all of a case")
    parser.add_argument("--smallest", action="store_true", help="the smallest size of each case")
    parser.add_argument("--formats", default=",".join(writers.WRITERS), help="default: %(default)s")
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    manifest = open_manifest(chosen.folder)
    for name in chosen.case or CASES:
        sizes = chosen.size or plan.CASES[name].sizes
        for size in sizes[:1] if chosen.smallest else sizes:
            if f"{name}_{size}" not in manifest["problems"]:
                manifest["problems"][f"{name}_{size}"] = write_problem(name, size, chosen.folder / f"{name}_{size}")
            write_models(name, size, chosen.folder, chosen.formats.split(","), manifest)
            (chosen.folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    main()
