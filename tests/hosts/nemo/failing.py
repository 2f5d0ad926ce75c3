# SPDX-License-Identifier: MIT
"""A model with a mistake."""


def inferences(u, v, mask_u, mask_v):
    return {"u_f": 1 / 0, "v_f": v}
