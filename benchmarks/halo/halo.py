# SPDX-License-Identifier: MIT
"""Halos by ftn_pytorch.halo, for halo.f90."""

from __future__ import annotations

from ftn_pytorch.halo import Exchange


def ftn_pytorch_setup(nx: int, ny: int, px: int, py: int, width: int) -> None:
    global exchange
    exchange = Exchange((ny, nx), width, grid=(py, px), boundary="periodic")


def pad(u):
    return exchange(u)


def same(u):
    return u


def costs(fields: int):
    messages, size = exchange.costs(itemsize=8, fields=fields)
    return {"messages": messages, "bytes": size}
