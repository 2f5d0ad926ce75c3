# SPDX-License-Identifier: MIT
"""Write a script as saved recording and as package of compiled code into the current folder, with a checkpoint."""

import shutil
from pathlib import Path

import torch

from ftn_pytorch.__main__ import main
from ftn_pytorch.opening import open_runner

SCRIPT = str(Path(__file__).with_name("compiled_steps.py"))
SIZES = ["--input", "8x2:float64", "--target", "8x2:float64", "--tolerance", "1e-6"]

for format_, ending in (("recording", "ftr"), ("compiled", "pt2")):
    assert main(["export", SCRIPT, "--to", format_, *SIZES, "--output", f"compiled_steps.{ending}"]) == 0
# the same bytes without the right to code, and with one that was changed
shutil.copy("compiled_steps.pt2", "without_code.ftr")
content = bytearray(Path("compiled_steps.pt2").read_bytes())
content[len(content) // 2] ^= 1
Path("damaged.pt2").write_bytes(content)
runner = open_runner(SCRIPT, {}, {})
runner.find("ftn_pytorch_train")(torch.ones(4, 2).double(), torch.ones(4, 2).double())
runner.checkpoint("compiled_steps_by_script", 3, 1)
