# SPDX-License-Identifier: MIT
"""Needs a package that does not exist."""

import package_that_nobody_has


def ftn_pytorch_forward(x):
    return package_that_nobody_has.predict(x)
