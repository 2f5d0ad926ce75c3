# SPDX-License-Identifier: MIT
"""Train the closure once more, from the samples that a simulation has left: python lightning_offline.py FOLDER"""

import sys
from pathlib import Path

import lightning.pytorch as pl
import torch
from lightning_closure import Closure

from ftn_pytorch.kit import ReplayData

folder = Path(sys.argv[1])
pl.seed_everything(0, verbose=False)
data = ReplayData(str(folder / "samples.npz"))
closure = Closure()
closure.learn_scales(*data.training[:])
trainer = pl.Trainer(
    accelerator="cpu",
    devices=1,
    max_epochs=10,
    logger=pl.loggers.TensorBoardLogger(folder, name="offline", version=""),
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(closure, data)
(tested,) = trainer.test(closure, data, verbose=False)
predicted = torch.cat(trainer.predict(closure, data))
print(f"{len(data.training)} samples, {len(predicted)} held out, R2 of these {1 - tested['test']:.2f}")
# For programs without Python.
closure.eval()
example = data.training[:2][0]
torch.jit.trace(closure.forward, example).save(str(folder / "closure.pt"))
closure.to_onnx(folder / "closure.onnx", (example,), dynamo=True, verbose=False)
