# SPDX-License-Identifier: MIT
"""Tensors for Fortran: memory, axes, devices, procedures, derivatives."""
