# SPDX-License-Identifier: MIT
"""Train the closure once more, from the samples that a simulation has left: python lightning_offline.py FOLDER"""

import sys
from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import torch
from lightning_closure import Closure
from torch.utils.data import DataLoader, TensorDataset

folder = Path(sys.argv[1])
pl.seed_everything(0, verbose=False)
arrays = np.load(folder / "samples.npz")
training, held_out = (
    TensorDataset(*(torch.from_numpy(arrays[prefix + name]) for name in ("x0", "x1"))) for prefix in ("", "held_out_")
)
closure = Closure()
closure.learn_scales(*training[:])
trainer = pl.Trainer(
    accelerator="cpu",
    devices=1,
    max_epochs=10,
    logger=pl.loggers.TensorBoardLogger(folder, name="offline", version=""),
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(closure, DataLoader(training, batch_size=256, shuffle=True))
(tested,) = trainer.test(closure, DataLoader(held_out, batch_size=256), verbose=False)
print(f"{len(training)} samples, {len(held_out)} held out, R2 of these {1 - tested['test']:.2f}")
# For programs without Python.
closure.eval()
example = training[:2][0]
torch.jit.trace(closure.forward, example).save(str(folder / "closure.pt"))
closure.to_onnx(folder / "closure.onnx", (example,), dynamo=True, verbose=False)
