# SPDX-License-Identifier: MIT
"""The script of a user: finding and importing it, its hooks, its framework, its networks, what goes in and out."""
