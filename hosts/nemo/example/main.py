# SPDX-License-Identifier: MIT
"""What main.py of Eophis does for infmod: says how wide the halos are, and which model gets which fields."""

from __future__ import annotations

import torch
from ml_models import momentum_model

import ftn_pytorch
from ftn_pytorch.halo import Exchange

HALOS = 7


def ftn_pytorch_setup() -> None:
    global exchange
    ocean = ftn_pytorch.host()
    boundary = ["periodic" if axis else "closed" for axis in ocean["periodic"]]
    if ocean["fold"]:
        raise NotImplementedError("a north fold needs an Exchange at U points and one at V points, with sign=-1")
    exchange = Exchange(ocean["shape"], HALOS, start=ocean["start"], extent=ocean["extent"], boundary=boundary)


def with_halos(*fields: torch.Tensor):
    """Arrays (i, j, k) with halos, of tensors without. All go in one message to each neighbour."""
    return [field.permute(2, 1, 0).numpy() for field in exchange(*(field.permute(2, 1, 0) for field in fields))]


def inferences(u, v, mask_u, mask_v):
    """Tensors (i, j, k) of the cells that this rank owns, and so are the forcings."""
    u_f, v_f = momentum_model(*with_halos(u, v, mask_u, mask_v))
    return {"u_f": inner(u_f), "v_f": inner(v_f)}


def inner(field):
    return field[HALOS:-HALOS, HALOS:-HALOS]
