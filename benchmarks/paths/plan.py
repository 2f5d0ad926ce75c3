# SPDX-License-Identifier: MIT
"""What is measured: cases with their sizes, and paths."""

from __future__ import annotations

from dataclasses import dataclass

# In the order of tables and legends. The first is what the others are compared with.
FLOOR = "python"
PATHS = {
    "python": "plain Python",
    "script": "script, eager",
    "recorded": "script, recorded",
    "python-recorded": "script, recorded, from Python",
    "recording": "saved recording",
    "package": "compiled recording",
    "python-code": "script, compiled steps, from Python",
    "python-compile": "torch.compile in Python",
    "compiled": "script, compiled",
    "copy": "script, arrays copied",
    "torchscript": "TorchScript in Python",
    "direct": "TorchScript, direct",
    "pt2": ".pt2, direct",
    "onnx": ".onnx",
    "python-onnx": "ONNX Runtime in Python",
    "libtorch": "libtorch by hand",
    "ftorch": "FTorch",
}
# What compiled steps are compared with, where they pay
COMPILED_PATHS = ("python", "python-recorded", "recording", "python-code", "package", "python-compile", "pt2", "ftorch")
COMPILED_CASES = ("train_step", "mlp", "cgdrag", "unet")
IN_PYTHON = ("python", "python-recorded", "python-code", "python-compile", "python-onnx")
# Paths of libraries of others, and what the driver of each must be linked with. Another library can have modules of the
# same names: this one has.
PEERS = {"libtorch": "libtorch_cpu.so", "ftorch": "libftorch.so"}
# The file that a path needs.
SUFFIXES = {
    "torchscript": "pt",
    "direct": "pt",
    "libtorch": "pt",
    "ftorch": "pt",
    "recording": "ftr",
    "package": "code.pt2",
    "pt2": "pt2",
    "onnx": "onnx",
    "python-onnx": "onnx",
}
# Files on disk by their extension, in the order of the table.
FILES = {
    "ftr": "saved recording",
    "code.pt2": "compiled recording",
    "ckpt": "checkpoint of the script",
    "pt": "TorchScript",
    "pt2": "AOTInductor",
    "onnx": "ONNX",
}


@dataclass(frozen=True)
class CasePlan:
    """Sizes of a case, and what they count; ``quick`` is the one of a smoke run."""

    sizes: tuple[int, ...]
    unit: str
    title: str
    quick: int


CASES = {
    "tiny": CasePlan((0, 1, 3, 8), "arrays passed", "Nothing but the call", 3),
    "mlp": CasePlan((1, 32, 256, 1024, 4096), "batch", "Network 16-64-64-4", 32),
    "large_stride": CasePlan((64, 128, 256, 512), "N", "Loop over N x N elements", 64),
    "cgdrag": CasePlan((1, 64, 1024), "columns", "Gravity-wave drag emulator, double precision", 1),
    "resnet18": CasePlan((1, 10), "images", "ResNet-18", 1),
    "unet": CasePlan((1,), "fields of 128 x 128", "U-Net", 1),
    "train_step": CasePlan((32, 1024), "batch", "Step of Adam, network 16-64-64-4", 32),
    "train_polynomial": CasePlan((1024,), "batch", "Step of gradient descent, network 1-32-32-1", 1024),
}
