# SPDX-License-Identifier: MIT
"""The Python side of ftn_pytorch: everything about running a script from Fortran that needs no C++.

Scripts need not import this package, and programs never do: the library calls it through ``ftn_pytorch._embed``.
``python -m ftn_pytorch --help`` tells what it offers on a command line.
"""

__version__ = "0.1.0"
