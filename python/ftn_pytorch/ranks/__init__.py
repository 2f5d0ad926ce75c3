# SPDX-License-Identifier: MIT
"""Scripts that train on several MPI ranks: communicators, process groups, gradients."""
