# SPDX-License-Identifier: MIT
"""netCDF4, which brings a NetCDF and an HDF5 of its own, beside those of the program: also files of each other."""

from pathlib import Path

import netCDF4
import torch


def ftn_pytorch_forward(x):
    with netCDF4.Dataset("script.nc", "w") as file:
        file.createDimension("place", x.shape[2])
        file.createVariable("x", "f8", ("place",), zlib=True)[:] = x[0, 0].numpy()
    with netCDF4.Dataset("script.nc") as file:
        found = torch.tensor(file["x"][:].filled())
    if Path("own.nc").exists():
        with netCDF4.Dataset("own.nc") as file:
            assert [*file["v"][:]] == [1.5, 2.5]
    return found
