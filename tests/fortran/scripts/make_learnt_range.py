# SPDX-License-Identifier: MIT
"""Write the network of learnt_range.py into the current folder in each format."""

import warnings
from pathlib import Path

from ftn_pytorch import __main__

script = Path(__file__).with_name("learnt_range.py")
for source, kind, name in (
    (f"{script}:net", "pt", "learnt_range.pt"),
    (f"{script}:net", "pt2", "learnt_range.pt2"),
    (f"{script}:net", "onnx", "learnt_range.onnx"),
    (str(script), "recording", "learnt_range.ftr"),
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = [] if kind == "recording" else ["--dynamic-batch"]
        command = ["export", source, "--input", "4x3", "--to", kind, "--output", name, *options]
        assert __main__.main(command) == 0, kind
