# SPDX-License-Identifier: MIT
"""What is found on this machine, and what calls did: the doctor, the log, profiles, recorded calls."""
