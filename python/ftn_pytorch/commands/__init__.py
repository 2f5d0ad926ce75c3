# SPDX-License-Identifier: MIT
"""The commands of ``python -m ftn_pytorch``; no program and no script imports them."""
