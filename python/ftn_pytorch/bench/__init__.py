# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch bench``: all cases on all paths, measured in one run, as JSON, tables and pictures.

Nothing else of the package imports this; it needs the sources of the benchmark, a built ``bench_driver``, and
matplotlib for the pictures.
"""
