# SPDX-License-Identifier: MIT
"""The process, the machine and the installation, and what this package uses of others beyond their documentation."""
