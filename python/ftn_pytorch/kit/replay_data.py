# SPDX-License-Identifier: MIT
"""The samples of a Replay as data of Lightning: for training, validation, tests and predictions offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler, TensorDataset

from ..errors import FtnPytorchError, missing_package
from . import storage
from .replay import Replay
from .unrecorded import unrecorded

_ADVICE = "go over its batches outside of the recorded function and pass each one"

try:
    from lightning.pytorch import LightningDataModule
except ImportError as failure:
    raise missing_package("ReplayData", failure, "lightning") from failure


@unrecorded(_ADVICE)
class ReplayData(LightningDataModule):
    """Deprecated (docs/kit/online.md). Batches of a Replay, or of a file that ``Replay.export`` has written.

    Training draws from the samples in random order, without replacement. Validation, ``Trainer.test`` and
    ``Trainer.predict`` go over those that the Replay has held out, in their order; without ``held_out`` there is no
    validation, and the other two go over all samples. A batch is what ``replay[rows]`` is: a tuple of tensors.

    ``names``: arrays of a file, in their order, by default all of them. ``seed``: of the order of training, which
    nobody else draws from. ``options``: those of DataLoader, such as ``num_workers``. FILE if the file cannot be
    read, FORMAT if it has other arrays, ARGUMENT if there are no samples.
    """

    def __init__(
        self,
        source: Replay | str,
        batch_size: int = 256,
        *,
        names: Sequence[str] | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        self.batch_size, self._loader_options = batch_size, options
        self._random = torch.Generator().manual_seed(seed)
        self.training: Any
        self.held_out: Any
        if isinstance(source, Replay):
            self.training, self.held_out = source, source.held_out
        else:
            arrays = storage.load(source)
            names = [name for name in arrays if not name.startswith(storage.HELD_OUT)] if names is None else names
            self.training = _dataset(arrays, names, source)
            held_out = [storage.HELD_OUT + name for name in names]
            self.held_out = _dataset(arrays, held_out, source) if set(held_out) & set(arrays) else None
        if not _size(self.training):
            raise FtnPytorchError("ARGUMENT", "ReplayData: there are no samples in the Replay: add some first")

    def train_dataloader(self) -> DataLoader:
        return self._batches(self.training, RandomSampler(self.training, generator=self._random))

    def val_dataloader(self) -> DataLoader | list[DataLoader]:
        return self._in_order(self.held_out) if _size(self.held_out) else []

    def test_dataloader(self) -> DataLoader:
        return self._in_order(self.held_out if _size(self.held_out) else self.training)

    predict_dataloader = test_dataloader

    def state_dict(self) -> dict[str, Any]:
        """Where the random order is."""
        return {"random": self._random.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._random.set_state(state["random"].cpu())

    def _in_order(self, samples: Any) -> DataLoader:
        return self._batches(samples, SequentialSampler(samples))

    def _batches(self, samples: Dataset, order: Any) -> DataLoader:
        # Each batch is taken in one piece.
        rows = BatchSampler(order, self.batch_size, drop_last=False)
        return DataLoader(samples, sampler=rows, batch_size=None, **self._loader_options)


def _size(samples: Any) -> int:
    return 0 if samples is None else len(samples)


def _dataset(arrays: dict[str, torch.Tensor], names: Sequence[str], path: str) -> TensorDataset:
    missing = [name for name in names if name not in arrays]
    if missing or not names:
        raise FtnPytorchError(
            "FORMAT", f"{path} has the arrays {', '.join(arrays) or 'none'}, and not {', '.join(missing) or 'any'}"
        )
    chosen = [arrays[name] for name in names]
    if len({len(each) for each in chosen}) != 1:
        raise FtnPytorchError(
            "FORMAT", f"{path}: {', '.join(names)} have {[len(each) for each in chosen]} samples, not as many each"
        )
    return TensorDataset(*chosen)
