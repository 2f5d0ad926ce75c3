# SPDX-License-Identifier: MIT
"""Recorded functions: forward and training steps of a script, made again without Python.

``function`` decides when a function is recorded and when a recording holds. ``recorded_call`` makes a ``tape`` of one
call with ``recorder`` (the operator calls), ``bindings`` (the names it depends on), ``python_effects``,
``tensor_effects`` (what no name and no operator shows) and ``optimizer_numbers`` (what steps compute in Python).
``comparison`` compares; ``system.extension`` finds what runs recordings, ``cuda_graphs`` what a GPU runs.
"""
