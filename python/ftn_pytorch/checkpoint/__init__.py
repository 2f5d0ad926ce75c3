# SPDX-License-Identifier: MIT
"""Checkpoints: all state of a training, in one file that is there completely or not at all."""

from .base import Checkpoint

__all__ = ["Checkpoint"]
