# SPDX-License-Identifier: MIT
"""Recorded functions for files that two readers run: what is called, with which arguments, and the names around it.

python ftr_cases.py FOLDER writes all of them, for readers with another torch.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ftn_pytorch import recorded, save_recording

F = torch.nn.functional


class Case(NamedTuple):
    """Functions to record and to save, arguments for one call of each, and the names that lead to the state."""

    functions: dict[str, Callable]
    arguments: dict[str, Callable[[], tuple]]
    names: dict[str, Any]


def _rows(*shapes: tuple[int, ...], dtype: Any = torch.float32) -> Callable[[], tuple]:
    numbers = torch.Generator().manual_seed(5)
    return lambda: tuple(torch.randn(shape, generator=numbers, dtype=dtype) for shape in shapes)


def _network(net: torch.nn.Module, shape: tuple[int, ...], optimizer: Any = None) -> Case:
    """Prediction, and with an optimizer a step to zero. Arguments are of the type of the parameters."""
    names = {"net": net, "optimizer": optimizer}

    def ftn_pytorch_forward(x: Any) -> Any:
        with torch.no_grad():
            return net(x)

    def ftn_pytorch_train(x: Any) -> Any:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return False, loss.detach()

    functions = {"ftn_pytorch_forward": ftn_pytorch_forward}
    if optimizer is not None:
        functions["ftn_pytorch_train"] = ftn_pytorch_train
    return Case(functions, dict.fromkeys(functions, _rows(shape, dtype=next(net.parameters()).dtype)), names)


def _mlp() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))


def predict() -> Case:
    """Of two batch sizes, a recording each."""
    case, sizes = _network(_mlp(), (8, 4)), itertools.cycle((8, 3))
    return case._replace(arguments={"ftn_pytorch_forward": lambda: (torch.randn(next(sizes), 4),)})


def adam() -> Case:
    net = _mlp()
    return _network(net, (8, 4), torch.optim.Adam(net.parameters(), lr=1e-2))


def adam_with_one_kernel() -> Case:
    net = _mlp()
    return _network(net, (8, 4), torch.optim.AdamW(net.parameters(), lr=1e-2, fused=True))


def momentum() -> Case:
    net = _mlp()
    return _network(net, (8, 4), torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9, nesterov=True))


def accumulated() -> Case:
    """Gradients are added up in one function, and used in another."""
    net = _mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)

    def add(x: Any) -> Any:
        net(x).square().mean().backward()
        return next(net.parameters()).grad.sum()

    def use() -> Any:
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return next(net.parameters()).detach().sum()

    add(torch.ones(8, 4))
    return Case({"add": add, "use": use}, {"add": _rows((8, 4)), "use": tuple}, {"net": net, "optimizer": optimizer})


def radam() -> Case:
    """Numbers of Python decide which way a step goes."""
    net = _mlp()
    return _network(net, (8, 4), torch.optim.RAdam(net.parameters(), lr=1e-2))


def dropout() -> Case:
    net = torch.nn.Sequential(_mlp(), torch.nn.Dropout(0.3))
    return _network(net, (8, 4), torch.optim.SGD(net.parameters(), lr=1e-2))


def convolution() -> Case:
    layers = [torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(16, 3))
    return _network(net, (8, 1, 6, 6), torch.optim.Adam(net.parameters(), lr=1e-2))


def gru() -> Case:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.out = torch.nn.GRU(3, 8, batch_first=True), torch.nn.Linear(8, 1)

        def forward(self, x: Any) -> Any:
            return self.out(self.cell(x)[0][:, -1])

    net = Net()
    return _network(net, (4, 5, 3), torch.optim.Adam(net.parameters(), lr=1e-2))


def double() -> Case:
    net = _mlp().double()
    return _network(net, (8, 4), torch.optim.Adam(net.parameters(), lr=1e-2))


def several() -> Case:
    """Containers, constants, integers, logicals, complex numbers, an input that is changed, and no batch at all."""
    table = torch.randn(5, 3)

    def look_up(at: Any, scale: Any = 2.5) -> Any:
        return {"rows": table[at] * scale, "found": at > 1}

    def spectrum(x: Any) -> Any:
        return torch.fft.rfft(x).mul(1 + 2j), (x.abs().amax(), 3)

    def clamp(x: Any) -> Any:
        return x.clamp_(-1.0, 0.5).sum()

    def constant() -> Any:
        return torch.full((2,), 0.1) + table[0, :2]

    functions = {"look_up": look_up, "spectrum": spectrum, "clamp": clamp, "constant": constant}
    numbers = torch.Generator().manual_seed(6)
    arguments = {
        "look_up": lambda: (torch.randint(0, 5, (7,), generator=numbers),),
        "spectrum": _rows((3, 8)),
        "clamp": _rows((6,)),
        "constant": lambda: (),
    }
    return Case(functions, arguments, {"table": table})


def state() -> Case:
    """Memory of a model: sums over calls, a ring of values, and a count."""
    total, ring, count = torch.zeros(3), torch.zeros(4, 3), torch.zeros((), dtype=torch.int64)

    def remember(x: Any) -> Any:
        total.add_(x.sum(0))
        ring.copy_(torch.roll(ring, 1, 0))
        ring[0] = x[0]
        count.add_(1)
        return total / count, ring.std()

    return Case({"remember": remember}, {"remember": _rows((2, 3))}, {"total": total, "ring": ring, "count": count})


CASES = [
    *(predict, adam, adam_with_one_kernel, momentum, accumulated, radam, dropout, convolution, gru),
    *(double, several, state),
]


def saved(make: Callable[[], Case], folder: Path) -> tuple[str, list[tuple[str, tuple]]]:
    """The file of a case, and calls for both readers."""
    torch.manual_seed(1)
    case = make()
    functions = {name: recorded(function) for name, function in case.functions.items()}
    for name, function in functions.items():
        for _ in range(16):
            function(*case.arguments[name]())
    path = save_recording(str(folder / "case.ftr"), functions, names=case.names)
    return path, [(name, case.arguments[name]()) for _ in range(6) for name in functions]


def leaves(value: Any) -> list[Any]:
    """What a result consists of, without the containers around it."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, (list, tuple)) else [value]


if __name__ == "__main__":
    for make in CASES:
        folder = Path(sys.argv[1], make.__name__)
        folder.mkdir()
        torch.save(saved(make, folder)[1], folder / "calls")
