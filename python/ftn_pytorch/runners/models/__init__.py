# SPDX-License-Identifier: MIT
"""Saved models: what a file is, and a runner for each kind."""
