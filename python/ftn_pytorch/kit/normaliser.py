# SPDX-License-Identifier: MIT
"""Running mean and standard deviation of what passes, and values shifted and scaled by them."""

# No postponed annotations: TorchScript cannot read them.
import copy
import zlib
from collections.abc import Sequence
from typing import Any

import torch

from ..errors import FtnPytorchError, listed
from ..ranks import own_rank, totals
from ..system import process
from . import over_ranks as ranks


class Normaliser(torch.nn.Module):
    """Shifts and scales by the mean and standard deviation of all samples that ``update`` has seen.

    ``shape``: that of the statistics, which is broadcast against the inputs. ``Normaliser(5)`` has statistics for each
    of 5 features, the last axis; ``Normaliser((8, 1, 1))`` for each of 8 channels of (n, 8, height, width);
    ``Normaliser(())`` one mean for all numbers. Axes of extent 1, and those in front, are averaged over.

    The statistics are buffers in double precision: ``mean``, ``std`` (of the population, 1 where all samples are the
    same) and ``count``. Before the first ``update`` nothing is shifted or scaled. Do not convert the module
    (``float()``, ``half()``): inputs keep their type as it is.

    After ``freeze`` the statistics stay. ``update`` then compares: where the mean over ``window`` samples is off by
    more than ``drift`` standard deviations, a warning says so, once for each column. ``drifted`` is by how many the
    latest whole window is off in the column where that is the most; not a number before there is one.

    ``over_ranks``: ``update`` learns from the samples of all ranks, which may have none. All ranks of the communicator
    call it, and the statistics are the same on all, bit for bit.
    """

    mean: torch.Tensor
    std: torch.Tensor
    count: torch.Tensor
    squares: torch.Tensor
    frozen: torch.Tensor
    window_count: torch.Tensor
    window_mean: torch.Tensor
    warned: torch.Tensor
    drifted: torch.Tensor

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        window: int = 10_000,
        drift: float = 1.0,
        over_ranks: bool | None = None,
    ) -> None:
        super().__init__()
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.over_ranks = over_ranks
        self.window, self.drift = window, drift
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(self.shape, dtype=torch.float64))
        self.register_buffer("squares", torch.zeros_like(self.mean))  # sum of squared deviations from the mean
        self.register_buffer("std", torch.ones_like(self.mean))
        self.register_buffer("frozen", torch.zeros((), dtype=torch.bool))
        self.register_buffer("window_count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("window_mean", torch.zeros_like(self.mean))
        self.register_buffer("warned", torch.zeros(self.shape, dtype=torch.bool))
        self.register_buffer("drifted", torch.full((), torch.nan, dtype=torch.float64))
        self.register_load_state_dict_pre_hook(_complete)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``normalise``, so that a network can hold this as a layer; it is exported with it."""
        x = _real(x)
        return (x - self.mean.to(x.dtype)) / self.std.to(x.dtype)

    def normalise(self, x: torch.Tensor) -> torch.Tensor:
        """Of mean 0 and standard deviation 1, in the type of ``x``; of integers in double precision."""
        return self(x)

    @torch.jit.export
    def denormalise(self, x: torch.Tensor) -> torch.Tensor:
        """The inverse of ``normalise``."""
        x = _real(x)
        return x * self.std.to(x.dtype) + self.mean.to(x.dtype)

    @torch.jit.unused
    def freeze(self, frozen: bool = True) -> "Normaliser":
        """Learn no more, or, with False, learn on; returns itself."""
        self.frozen.fill_(frozen)
        self.window_count.zero_()
        self.drifted.fill_(torch.nan)
        return self

    @torch.jit.unused
    @torch.no_grad()
    def update(self, x: torch.Tensor) -> None:
        """Learn from a batch, or watch it after ``freeze``.

        SHAPE if it does not fit, DTYPE if it is not real, ARGUMENT if it has a number that is not finite: then nothing
        has been learnt of it. Over ranks one rank with such a number is enough, and FORMAT on all of them if their
        statistics differ.
        """
        n, mean, squares = self._moments(x)
        if ranks.asked_for(self.over_ranks, "Normaliser", "learns statistics of its own"):
            n, mean, squares = self._of_all_ranks(n, mean, squares, x.dtype)
        found = torch.isfinite(mean + squares)
        if not found.all():
            raise FtnPytorchError(
                "ARGUMENT",
                f"Normaliser: column {_columns(~found)} of the inputs has numbers that are infinite or not a number",
            )
        if n == 0:
            return
        if self.frozen:
            self._watch(n, mean)
            return
        # Chan, Golub, LeVeque: two groups as one
        count = int(self.count)
        total = count + n
        difference = mean - self.mean
        self.squares += squares + difference**2 * (count * n / total)
        self.mean += difference * (n / total)
        self.count.fill_(total)
        std = (self.squares / total).sqrt()
        # What varies by rounding alone is constant, and must not be blown up: in half precision the two numbers beside
        # a constant, in wider types also what sums have lost.
        eps = torch.finfo(x.dtype).eps
        constant = std <= max(eps / 2, 10 * min(eps, torch.finfo(torch.float32).eps)) * self.mean.abs()
        self.std.copy_(torch.where(constant, 1.0, std))

    def _of_all_ranks(
        self, n: int, mean: torch.Tensor, squares: torch.Tensor, dtype: torch.dtype
    ) -> tuple[int, torch.Tensor, torch.Tensor]:
        """The same of all ranks, by one exchange, and a second one where nothing was learnt before.

        The mean that was learnt is near that of these samples. Squares of what is off from there are small numbers;
        sums of large ones would leave nothing of the deviations.
        """
        bits = zlib.crc32(self.mean.cpu().numpy().tobytes())
        state = "frozen" if self.frozen else "learnt"
        alike = f"{dtype} for {self.shape}, {state} of {int(self.count)} samples, whose mean has the digest {bits:08x}"
        near = self.mean
        for _ in range(1 if self.count else 2):
            off = torch.zeros_like(mean) if n == 0 else mean - near
            parts = torch.cat([off.reshape(-1) * n, (squares + off**2 * n).reshape(-1)])
            count = torch.tensor([n], dtype=parts.dtype, device=parts.device)
            sums = totals.total(torch.cat([count, parts]), alike, "Normaliser.update").to(mean.device)
            total = int(sums[0])
            if total == 0:
                return 0, self.mean, torch.zeros_like(self.mean)
            off, squared = (sums[1:] / total).reshape(2, *self.shape)
            near = near + off
        return total, near, ((squared - off**2) * total).clamp(min=0)

    def _moments(self, x: torch.Tensor) -> tuple[int, torch.Tensor, torch.Tensor]:
        """How many samples each number of the statistics is of, their mean, and their squared deviations, summed."""
        if not x.is_floating_point():
            raise FtnPytorchError("DTYPE", f"Normaliser: the inputs are {x.dtype}; give it real numbers, x.float()")
        front = x.ndim - len(self.shape)
        fits = front >= 0 and all(own in (1, given) for own, given in zip(self.shape, x.shape[front:]))
        if not fits:
            raise FtnPytorchError(
                "SHAPE", f"Normaliser: inputs of shape {tuple(x.shape)} do not end with its shape {self.shape}"
            )
        axes = [*range(front), *(front + axis for axis, extent in enumerate(self.shape) if extent == 1)]
        n = x.numel() // max(self.mean.numel(), 1)
        if n == 0:
            return 0, self.mean, torch.zeros_like(self.mean)
        if axes:
            variance, mean = torch.var_mean(x.double(), dim=axes, correction=0, keepdim=True)
        else:
            variance, mean = torch.zeros_like(self.mean), x.double()
        return n, mean.reshape(self.shape), variance.reshape(self.shape) * n

    def _watch(self, n: int, mean: torch.Tensor) -> None:
        total = int(self.window_count) + n
        # At the beginning of a window all of it is replaced.
        self.window_mean += (mean - self.window_mean) * (n / total)
        self.window_count.fill_(total)
        if total < self.window:
            return
        self.window_count.zero_()
        off = (self.window_mean - self.mean).abs() / self.std
        self.drifted.copy_(off.max())
        new = (off > self.drift) & ~self.warned
        if new.any():
            self.warned |= new
            worst = off[new].max()
            if self.over_ranks and own_rank.rank_and_size()[0] > 0:
                return
            process.warn(
                f"Normaliser: column {_columns(new)} has drifted: over the last {total} samples the mean is off by "
                f"up to {worst:.3g} standard deviations of what was learnt. The trained network may not fit any more; "
                "freeze(False) learns on"
            )


def _real(x: torch.Tensor) -> torch.Tensor:
    """In the type of integers there would be nothing left of most statistics."""
    return x if x.is_floating_point() or x.is_complex() else x.double()


def _complete(module: torch.nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Files of versions that did not keep ``drifted`` say nothing of it."""
    if f"{prefix}mean" in state:
        state.setdefault(f"{prefix}drifted", torch.full((), torch.nan, dtype=torch.float64, device="cpu"))


def completed(trained: Any, state: dict[str, Any]) -> dict[str, Any]:
    """A state of a network as it would be written now, if it has Normalisers; any other state as it is."""
    state = copy.copy(state)  # with the versions of modules, which torch puts into an attribute
    for name, module in trained.named_modules() if isinstance(trained, torch.nn.Module) else ():
        if isinstance(module, Normaliser):
            _complete(module, state, f"{name}." if name else "")
    return state


def _columns(mask: torch.Tensor) -> str:
    """Those that are true, from 0 on."""
    return listed([",".join(map(str, place)) for place in mask.nonzero().tolist()])
