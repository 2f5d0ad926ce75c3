# SPDX-License-Identifier: MIT
"""Products, solvers, decompositions and transforms in four types, small and large: all elements of all results.

Run by itself, it writes to a folder: an input, what plain Python makes of it, and saved models that make the same.
"""

import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor

LARGEST = 96


def results(a: Tensor, b: Tensor) -> list[Tensor]:
    """``a`` and ``b`` are square. Signs that a decomposition is free to choose are not among the results."""
    hermitian = a @ a.conj().transpose(0, 1) + a.shape[0] * torch.eye(a.shape[0], dtype=a.dtype)
    third = a.shape[0] // 3
    return [
        a @ b,
        a @ b[0],
        torch.bmm(a.reshape(3, third, -1), b.reshape(3, -1, third)),
        torch.dot(a[0], b[0]),
        torch.vdot(a[0], b[0]),
        torch.linalg.solve(a, b),
        torch.linalg.inv(a),
        torch.linalg.svd(a)[1],
        torch.linalg.eigh(hermitian)[0],
        torch.linalg.cholesky(hermitian),
        torch.linalg.qr(a)[1].abs(),
        torch.linalg.eigvals(a[:48, :48]).abs().sort()[0],
        torch.linalg.slogdet(a)[1],
        torch.fft.fft2(a),
    ]


def squares_of(a: Tensor, b: Tensor) -> list[Tensor]:
    """Is not recorded, so it stands for itself. Another driver would not give the same bits twice."""
    return [torch.linalg.lstsq(a, b, driver="gels").solution]


def elements(of: list[Tensor]) -> Tensor:
    parts: list[Tensor] = []
    for each in of:
        real = torch.view_as_real(each.resolve_conj()) if each.is_complex() else each
        parts.append(real.double().flatten())
    return torch.cat(parts)


def pairs(x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Two matrices of each type and size."""
    found: list[tuple[Tensor, Tensor]] = []
    for size in (3, 96):
        a, b = x[0, :size, :size], x[1, :size, :size]
        z = torch.complex(a, b)
        for number in (torch.float32, torch.float64):
            found.append((a.to(number), b.to(number)))
        for number in (torch.complex64, torch.complex128):
            found.append((z.to(number), (z.transpose(0, 1) * 0.5j).to(number)))
    return found


def in_all_types(x: Tensor) -> list[Tensor]:
    found: list[Tensor] = []
    for a, b in pairs(x):
        found += results(a, b)
    return found


def squares_in_all_types(x: Tensor) -> list[Tensor]:
    found: list[Tensor] = []
    for a, b in pairs(x):
        found += squares_of(a, b)
    return found


@torch.no_grad()
def ftn_pytorch_forward(x: Tensor) -> Tensor:
    return elements(in_all_types(x))


@torch.no_grad()
def squares(x: Tensor) -> Tensor:
    return elements(squares_in_all_types(x))


class Algebra(torch.nn.Module):
    """The same as TorchScript."""

    def forward(self, x: Tensor) -> Tensor:
        return elements(in_all_types(x))

    @torch.jit.export
    def squares(self, x: Tensor) -> Tensor:
        return elements(squares_in_all_types(x))


def write(folder: Path) -> None:
    x = torch.rand(2, LARGEST, LARGEST, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (folder / "input").write_bytes(x.numpy().tobytes())
    (folder / "expected").write_bytes(torch.cat([ftn_pytorch_forward(x), squares(x)]).numpy().tobytes())
    sizes = [elements([each]).numel() for each in in_all_types(x) + squares_in_all_types(x)]
    (folder / "sizes").write_text(" ".join(map(str, sizes)))
    warnings.simplefilter("ignore", DeprecationWarning)
    torch.jit.script(Algebra()).save(folder / "algebra.pt")
    runner = open_runner(__file__, {"record": True}, {})
    for _ in range(8):
        runner.bind("ftn_pytorch_forward", 0)[0](x)
    runner.save(str(folder / "algebra.ftr"))


if __name__ == "__main__":
    from ftn_pytorch.opening import open_runner

    write(Path(sys.argv[1]))
