# SPDX-License-Identifier: MIT
"""A network of models.py as a file of each format: TorchScript, AOTInductor package, ONNX, saved recording, checkpoint.

A recording and a checkpoint are those of the script that the paths run, and are written by ftn_pytorch itself: its
folder is BENCH_PACKAGE in the environment, or where Python finds it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

SCRIPT = Path(__file__).resolve().parent / "paths" / "script.py"


@dataclass(frozen=True)
class Model:
    """What is to be written.

    inputs: examples, for a trained network with the target; batched: the file is for any batch, which is the first axis
    of all inputs
    """

    case: str
    size: int
    net: nn.Module
    inputs: tuple[torch.Tensor, ...]
    batched: bool
    trains: bool


class Nothing(nn.Module):
    """tiny0 for TorchScript, which wants a method of its own."""

    def forward(self) -> None:
        return None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Exporters say a lot, and that TorchScript is deprecated is known."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def write_torchscript(model: Model, file: Path) -> None:
    if model.case == "tiny" and model.inputs:
        torch.jit.trace(model.net, model.inputs).save(file)
    else:
        torch.jit.script(Nothing() if model.case == "tiny" else model.net).save(file)


def write_aotinductor(model: Model, file: Path) -> None:
    if model.case == "tiny" and model.size != 1:
        raise ValueError("left out: compiling takes a minute, and one array tells what a call costs")
    shapes = tuple({0: torch.export.Dim.DYNAMIC} for _ in model.inputs) if model.batched else None
    # One is a batch, too: by default torch takes an axis of one element for another model.
    any_size = torch.fx.experimental._config.patch(backed_size_oblivious=True)
    with torch.inference_mode(False), torch.no_grad(), any_size:
        program = torch.export.export(model.net, model.inputs, dynamic_shapes=shapes)
        torch._inductor.aoti_compile_and_package(program, package_path=str(file))


def write_onnx(model: Model, file: Path) -> None:
    if not model.inputs:
        raise ValueError("an ONNX model wants an input and an output")
    shapes = tuple({0: "batch"} for _ in model.inputs) if model.batched else None
    with contextlib.redirect_stdout(sys.stderr):
        torch.onnx.export(
            model.net, model.inputs, file, dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False
        )


def write_recording(model: Model, file: Path, form: str = "recording") -> None:
    """What ``python -m ftn_pytorch export script.py --to recording`` writes, which has compared it with the script."""
    if not model.inputs:
        raise ValueError("a saved recording wants an input")
    main = _package("__main__").main
    inputs = model.inputs[:-1] if model.trains else model.inputs
    command = ["export", str(SCRIPT), "--to", form, "--output", str(file)]
    command += [text for value in inputs for text in ("--input", _described(value))]
    command += ["--target", _described(model.inputs[-1])] if model.trains else []
    command += [] if model.batched else ["--batch", str(model.inputs[0].shape[0])]
    for name, value in {**_config(model, file), "recorded": "true"}.items():
        command += ["--config", f"{name}={value}"]
    said = io.StringIO()
    with contextlib.redirect_stdout(sys.stderr), contextlib.redirect_stderr(said):
        code = main(command)
    if code:
        raise RuntimeError(said.getvalue().strip() or f"export ended with code {code}")


def write_code(model: Model, file: Path) -> None:
    """The same, compiled."""
    if model.case == "tiny":
        raise ValueError("there is nothing to compile")
    write_recording(model, file, "compiled")


def write_checkpoint(model: Model, file: Path) -> None:
    """What the script saves after its first call: parameters, and the state of its optimizer."""
    runner: Any = _package("opening").open_runner(str(SCRIPT), {}, _config(model, file))
    if model.trains:
        runner.find("ftn_pytorch_train")(*model.inputs)
    runner.save(str(file))


def _package(module: str) -> Any:
    """A module of ftn_pytorch."""
    folder = os.environ.get("BENCH_PACKAGE")
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(f"ftn_pytorch.{module}")


def _config(model: Model, file: Path) -> dict[str, Any]:
    """Of the script, for the network."""
    return {"case": model.case, "size": model.size, "folder": str(file.parent)}


def _described(value: torch.Tensor) -> str:
    """An example for the command line, such as 32x16:float32."""
    return f"{'x'.join(map(str, value.shape))}:{str(value.dtype).removeprefix('torch.')}"


WRITERS: dict[str, Callable[[Model, Path], None]] = {
    "pt": write_torchscript,
    "pt2": write_aotinductor,
    "onnx": write_onnx,
    "ftr": write_recording,
    "code.pt2": write_code,
    "ckpt": write_checkpoint,
}
# These depend on this library and on the script as well.
OURS = ("ftr", "code.pt2", "ckpt")


def made_by(suffix: str) -> str:
    """What a file depends on beside torch and models.py; empty for formats of others."""
    if suffix not in OURS:
        return ""
    folder = Path(_package("errors").__file__).parent
    sources = [SCRIPT, *sorted(folder.rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:16]
