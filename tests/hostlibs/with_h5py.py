# SPDX-License-Identifier: MIT
"""h5py, which brings an HDF5 of its own, beside that of the program: also files of each other."""

from pathlib import Path

import h5py
import torch


def ftn_pytorch_forward(x):
    with h5py.File("script.h5", "w") as file:
        file["x"] = x.numpy()
        file["x"].attrs["unit"] = "K"
    with h5py.File("script.h5") as file:
        found = torch.from_numpy(file["x"][0, 0]) if file["x"].attrs["unit"] == "K" else x[0, 0] * 0
    Path("script.txt").write_text("of Python itself")
    if Path("own.h5").exists():
        h5py.File("own.h5").close()
    return found
