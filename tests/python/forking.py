# SPDX-License-Identifier: MIT
"""Tests that fork, where there is a GPU: autograd has threads for its devices, and refuses to be forked."""

import os
import subprocess
import sys


def without_devices(test):
    """Run a test, "file::name", in a process of its own that sees no GPU."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    subprocess.run(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}, check=True)
