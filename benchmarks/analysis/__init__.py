# SPDX-License-Identifier: MIT
"""What both benchmarks make of their times: statistics, tables, pictures; and the processes of all paths."""
