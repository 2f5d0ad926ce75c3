# SPDX-License-Identifier: MIT
"""What the program tells all scripts, asked for while this one is loaded and in its calls."""

import numpy as np

import ftn_pytorch

at_load = ftn_pytorch.host()


def time_at_load():
    return at_load.get("time", "none")


def time_now():
    return ftn_pytorch.host()["time"]


def kinds():
    here = ftn_pytorch.host()
    types = [type(here[name]).__name__ for name in ("step", "dt", "is_wet", "time", "lon", "mask")]
    return " ".join([*types, *map(str, here["lon"].shape), str(here["lon"].dtype), str(here["mask"].dtype)])


def total():
    return float(np.sum(ftn_pytorch.host()["lon"]))


def names():
    return " ".join(sorted(ftn_pytorch.host()))
