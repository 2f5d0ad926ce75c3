# SPDX-License-Identifier: MIT
"""How long 10,000 ranks take to start: operations on paths of one rank, counted, and a model of the file system."""
