# SPDX-License-Identifier: MIT
"""Objects of torch that Fortran makes and calls: a runner for each kind."""
