# SPDX-License-Identifier: MIT
"""Runners: what a loaded file does when Fortran calls it."""
