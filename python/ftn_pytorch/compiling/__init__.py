# SPDX-License-Identifier: MIT
"""What is recorded, compiled by torch's compiler in a process of its own."""
