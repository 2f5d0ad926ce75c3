# SPDX-License-Identifier: MIT
"""The version of this package, which is that of the library."""

__version__ = "0.2.0"
