# SPDX-License-Identifier: MIT
"""The runner for packages of AOTInductor (``.pt2``) through Python."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ...errors import FtnPytorchError, message
from ...script.call_text import converting, kind
from ...script.framework import TORCH, import_torch
from ...system import installation, private_names, process
from ...tensors import device
from ..base import refuse_gradients
from ..options import Options
from . import formats
from .input_specs import ABOUT_AXES
from .saved_model import SavedRunner
from .trees import Tree, by_fields

TRIAL_VARIABLE = "FTN_PYTORCH_TRIAL_LOAD"

# Compiled code reads beyond an array that is smaller than it was compiled for, unless it is told to look first.
_CHECK_VARIABLE = "AOTI_RUNTIME_CHECK_INPUTS"

_ABOUT_SHAPES = ("unmatched dim value", "dim value is too", "expected size", "expected ndim")

_TRIAL_SECONDS = 120

# What names of instruction sets in a package ask of torch.cpu.get_capabilities().
_CAPABILITIES = {
    "avx2": ("avx2", "fma3"),
    "avx512": ("avx512_f", "avx512_dq", "avx512_bw", "avx512_vl"),
    "avx512_vnni": ("avx512_vnni",),
    "avx512_bf16": ("avx512_bf16",),
    "avx512_fp16": ("avx512_fp16",),
    "amx_tile": ("amx_tile",),
    "sve256": ("sve",),
}

# Packages that a trial loaded, with the time of their last change.
_tried: set[tuple[str, float]] = set()


def _by_fields(text: str) -> str:
    protocol, tree = json.loads(text)
    return json.dumps([protocol, by_fields(tree)])


class AotiRunner(SavedRunner):
    """A package of AOTInductor: compiled code for one kind of processor and one version of torch.

    The code in it is trusted like that of a program. What can be known is checked before it is loaded: processor,
    device, version of torch. Where a package does not say which torch it is of, another process loads it first, since a
    loader that crashes would take the Fortran program with it; ``FTN_PYTORCH_TRIAL_LOAD=0`` leaves that out.
    """

    backend = "aoti"
    is_differentiable = False
    framework = TORCH
    what = "a package of AOTInductor"

    def __init__(self, path: str, options: Options, config: dict[str, Any]) -> None:
        options.refuse_compile(path, f"{self.what} and compiled already")
        super().__init__(path, options, config)

    def _read(self) -> None:
        torch = import_torch(self.path)
        archive = formats.Archive(self.path)
        name = _model_name(archive)
        metadata = _metadata(archive, name)
        _check_version(torch, archive, metadata)
        _check_processor(torch, self.path, metadata)
        place = self._place(metadata.get("AOTI_DEVICE_KEY", "cpu"))
        os.environ.setdefault(_CHECK_VARIABLE, "1")
        if installation.TORCH_VERSION not in metadata:
            _try_elsewhere(torch, self.path, name)
        try:
            index = torch.device(place).index if place else None
            loader = private_names.aoti_loader(self.path, name, -1 if index is None else index)
            in_text, out_text = loader.get_call_spec()
            specs = [private_names.tree_spec(_by_fields(text)) for text in (in_text, out_text)]
        except FtnPytorchError:
            raise
        except Exception as failure:
            raise _refusal(torch, self.path, message(failure)) from failure
        self._tree = Tree(specs[0], (), self.path)
        process.settle_threads()
        self._torch, self._loader, self._out_spec = torch, loader, specs[1]
        self.device = place

    def _place(self, compiled_for: str) -> str | None:
        if compiled_for == "cpu":
            if device.resolve(self._options.device, TORCH) is not None:
                raise FtnPytorchError(
                    "DEVICE", f"{self.path} was compiled for the host and cannot run on {self._options.device!r}"
                )
            return None
        place = device.resolve(self._options.device or compiled_for, TORCH)
        if place is None or place.partition(":")[0] != compiled_for:
            raise FtnPytorchError(
                "DEVICE", f"{self.path} was compiled for {compiled_for!r} and cannot run on {self._options.device!r}"
            )
        return place

    def _forward(self) -> Callable:
        tree, out_spec, where = self._tree, self._out_spec, f"forward of {self.name}"
        run, unflatten, tensor = self._loader.boxed_run, private_names.tree_unflatten(), self._torch.Tensor

        def forward(*args: Any, **named: Any) -> Any:
            values = []
            for place, value in enumerate(tree.flat(args, named, where)):
                if not isinstance(value, tensor):
                    raise FtnPytorchError(
                        "SIGNATURE",
                        f"input {place + 1} of {where} is a number, which was compiled into the package with the value "
                        "that it had: export it with a tensor in its place",
                    )
                values.append(value if value.is_contiguous() else value.contiguous())  # the code takes no other rows
            refuse_gradients(values, where, "compiled code")
            try:
                return unflatten(run(values.copy()), out_spec)  # which is emptied
            except RuntimeError as failure:
                labels = [f"{place} ({name})" if name else str(place) for place, name in enumerate(tree.names)]
                given = [f"{label} is {kind(value, False)}" for label, value in zip(labels, values)]
                raise _explained(failure, "; ".join(given), where) from failure

        return forward


def _explained(failure: RuntimeError, inputs: str, where: str) -> Exception:
    """What the code, or torch, says of its inputs, with the status that fits; other failures as they are."""
    text = str(failure).partition("\n")[0]
    told = f"{where}: {text}. Inputs are counted from 0 here: {inputs}"
    if "unmatched dtype" in text:
        return FtnPytorchError("DTYPE", f"{told}. Declare the Fortran array so, or {converting('float32')}.")
    if any(words in text for words in _ABOUT_SHAPES):
        return FtnPytorchError("SHAPE", f"{told}. {ABOUT_AXES}")
    if "API call failed" in text:  # torch before 2.13
        return FtnPytorchError("PYTHON", f"{where}: {text} (the reason is on standard error)")
    return failure


def _model_name(archive: formats.Archive) -> str:
    names = {name.split("/")[2] for name in archive.names if name.startswith("data/aotinductor/")}
    if "model" in names:
        return "model"
    if len(names) > 1:
        raise FtnPytorchError(
            "FORMAT",
            f"{archive.path} holds several models ({', '.join(sorted(names))}) and none is called 'model': package one",
        )
    return names.pop()


def _metadata(archive: formats.Archive, name: str) -> dict[str, str]:
    """What the compiler recorded of itself; empty where it did not."""
    for entry in archive.names:
        if entry.startswith(f"data/aotinductor/{name}/") and entry.endswith("wrapper_metadata.json"):
            found = archive.read_json(entry)
            return found if isinstance(found, dict) else {}
    return {}


def _check_version(torch: Any, archive: formats.Archive, metadata: dict[str, str]) -> None:
    wanted = private_names.archive_version()
    version = archive.read("archive_version").decode(errors="replace") if "archive_version" in archive.names else "0"
    if version != wanted:
        raise _refusal(torch, archive.path, f"it has archive version {version}, and this torch reads {wanted}")
    compiled_by = metadata.get(installation.TORCH_VERSION, torch.__version__)
    if not installation.fits_torch(compiled_by, torch.__version__):
        raise _refusal(torch, archive.path, f"it was compiled by torch {compiled_by}")


def _check_processor(torch: Any, path: str, metadata: dict[str, str]) -> None:
    """DEVICE for code of a processor that this is not: it would end the program with an illegal instruction."""
    machine = metadata.get("AOTI_MACHINE", platform.machine())
    if machine != platform.machine():
        raise FtnPytorchError(
            "DEVICE", f"{path} was compiled for {machine} processors, and this is {platform.machine()}"
        )
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    for word in metadata.get("AOTI_CPU_ISA", "").lower().split():
        if any(capabilities.get(needed) is False for needed in _CAPABILITIES.get(word, ())):
            raise FtnPytorchError(
                "DEVICE",
                f"{path} was compiled for processors with {word.upper()}, which this one has not. Export the "
                "model again on this machine, or for both with ATEN_CPU_CAPABILITY=avx2 in the environment of the "
                "export.",
            )


def _try_elsewhere(torch: Any, path: str, name: str) -> None:
    """Load a package in another process; FORMAT if that does not survive it."""
    known = (path, os.path.getmtime(path))
    if known in _tried or os.environ.get(TRIAL_VARIABLE) == "0":
        return
    try:
        done = subprocess.run(
            [sys.executable, "-c", private_names.AOTI_TRIAL, path, name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise _refusal(torch, path, f"a trial in a process of its own failed ({message(failure)})") from failure
    if done.returncode < 0:
        raise _refusal(
            torch, path, f"the loader crashes (signal {-done.returncode}), as a trial in another process shows"
        )
    if done.returncode > 0:
        raise _refusal(torch, path, done.stderr.strip().rpartition("\n")[2])
    _tried.add(known)


def _refusal(torch: Any, path: str, why: str) -> FtnPytorchError:
    return FtnPytorchError(
        "FORMAT",
        f"{path} cannot be loaded by torch {torch.__version__}: {why}. Packages run with the torch that compiled them: "
        "export the model again with this one.",
    )
