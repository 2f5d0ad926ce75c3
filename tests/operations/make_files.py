# SPDX-License-Identifier: MIT
"""Write one model as TorchScript, as recording and as script, and another of the first two, into the current folder."""

import copy
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ftn_pytorch.opening import open_runner

HERE = Path(__file__).parent
ROWS = (16, 8)
METHODS = ("pair", "half", "stats", "shift", "gather", "above", "turned", "transposed")


class Model(nn.Module):
    """As ``model.py``."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(3, width), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.first(x)))

    @torch.jit.export
    def pair(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, x.sum()

    @torch.jit.export
    def half(self, x: Tensor) -> Tensor:
        return x.half()

    @torch.jit.export
    def stats(self, x: Tensor) -> dict[str, Tensor]:
        return {"mean": x.mean(), "spread": x.std()}

    @torch.jit.export
    def shift(self, x: Tensor) -> Tensor:
        x.add_(1.0)
        return x.sum()

    @torch.jit.export
    def gather(self, x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        return x[0, 0] - x[1, 1]

    @torch.jit.export
    def above(self, x: Tensor) -> Tensor:
        return x[:, 0] > 0

    @torch.jit.export
    def turned(self, x: Tensor) -> Tensor:
        return torch.complex(x, -x)

    @torch.jit.export
    def transposed(self, x: Tensor) -> Tensor:
        return x[2, 1] - x[1, 2]


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)
    torch.jit.script(Model()).save("model.pt")
    torch.jit.script(Model(5)).save("other.pt")
    for file in (HERE / "files").glob("*.py"):
        shutil.copy(file, file.name)
    record("model.ftr")
    record("other.ftr", width=5)


def record(path: str, **config: int) -> None:
    """Save the functions of the script, recorded for both numbers of rows, with the state that it begins with."""
    runner = open_runner("model.py", {"record": True}, config)
    script: Any = runner.names
    before = copy.deepcopy(script["net"].state_dict())
    numbers = torch.Generator().manual_seed(1)
    for rows in ROWS:
        for _ in range(8):
            for name in ("ftn_pytorch_forward", "ftn_pytorch_train", *METHODS):
                x, target = torch.randn(rows, 3, generator=numbers), torch.randn(rows, 1, generator=numbers)
                others = {"ftn_pytorch_train": [target], "gather": [x.clone()]}.get(name, [])
                runner.bind(name, 0)[0](x, *others)
    script["net"].load_state_dict(before)
    for states in script["optimizer"].state.values():
        for each in states.values():
            each.zero_()
    runner.save(path)


if __name__ == "__main__":
    main()
