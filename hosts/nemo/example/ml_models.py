# SPDX-License-Identifier: MIT
"""A model as Morays' experiments have it: a function of NumPy arrays (i, j, k), which knows nothing of ranks."""

from __future__ import annotations

import numpy as np

REACH = 7


def momentum_model(u, v, mask_u, mask_v):
    """Forcings of u and v, (i, j, k) as they are. Sums of the other velocity over 15 x 15 cells around each."""
    if any(item is None for item in (u, v)):
        return None, None
    u = u.astype(np.float32) * mask_u.astype(np.float32)
    v = v.astype(np.float32) * mask_v.astype(np.float32)
    return box_sum(v) * mask_u, -box_sum(u) * mask_v


def box_sum(field):
    """Sums over 2 * REACH + 1 cells along i and j; what is outside is zero, as in a convolution that pads."""
    for axis in (0, 1):
        pad = [(0, 0)] * field.ndim
        pad[axis] = (REACH, REACH)
        padded = np.pad(field, pad)
        cells = field.shape[axis]
        field = sum(np.take(padded, range(shift, shift + cells), axis) for shift in range(2 * REACH + 1))
    return field
