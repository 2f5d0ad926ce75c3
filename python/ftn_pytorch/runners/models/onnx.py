# SPDX-License-Identifier: MIT
"""The runner for ONNX models, through ONNX Runtime. torch is not needed and not imported."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

from ...errors import FtnPytorchError, imported, message
from ...script.conventions import Convention
from ...script.framework import NUMPY
from ...system import process
from ...values.dtypes import OF_ONNX
from ..options import Options
from .input_specs import Input, described
from .onnx_bindings import Bindings
from .saved_model import SavedRunner


class OnnxRunner(SavedRunner):
    """An ONNX model.

    Arrays are NumPy arrays. Inputs and outputs have the names that the model gives them. The number of threads is that
    of ``process.threads``, and the session is made again when that changes.
    """

    backend = "onnx"
    is_differentiable = False
    framework = NUMPY
    what = "an ONNX model"

    def __init__(self, path: str, options: Options, config: dict[str, Any]) -> None:
        options.refuse_compile(path, self.what)
        self.device = None
        super().__init__(path, options, config)
        # Conversions are made into buffers that stay, and the model keeps no input: the library hands arrays over as
        # they are.
        self.dtype, self.inputs = "keep", "share"
        process.tell_threads(self)

    def _read(self) -> None:
        runtime = imported("onnxruntime", f"{self.path} is an ONNX model, which", "onnxruntime")
        providers, device = _providers(runtime, self._options.device)
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = process.threads()
        settings.inter_op_num_threads = 1
        # Between calls the cores belong to the Fortran program.
        settings.add_session_config_entry("session.force_spinning_stop", "1")
        # Failures come as exceptions; nothing is to be written to the terminal as well.
        settings.log_severity_level = 4
        try:
            # it prints what goes wrong, and tries again, before it raises
            with contextlib.redirect_stdout(io.StringIO()):
                session = runtime.InferenceSession(self.path, settings, providers=providers)
        except Exception as failure:
            raise FtnPytorchError(
                "FORMAT",
                f"{self.path} cannot be read by ONNX Runtime {runtime.__version__}: {message(failure)}. A newer "
                "version may know more operators; weights in a file of their own must lie beside the model.",
            ) from failure
        if device is not None and session.get_providers()[0] != providers[0][0]:
            raise FtnPytorchError(
                "DEVICE", f"device={self._options.device!r}: ONNX Runtime could not start {providers[0][0]}"
            )
        inputs = [self._input(entry, "input") for entry in session.get_inputs()]
        outputs = [self._input(entry, "output") for entry in session.get_outputs()]
        keeps_bindings = self._options.mode != "safe"
        self._bindings = Bindings(
            session, inputs, outputs, self._options.dtype, keeps_bindings, f"forward of {self.name}"
        )
        self.device = device

    def threads_changed(self) -> None:
        """Called by ``process.set_threads``. Functions that were bound before go on with the new session."""
        bound = self._bindings
        try:
            self._read()
        except FtnPytorchError as failure:
            process.warn(f"{self.path} continues with its old number of threads: {failure.text}")
            return
        bound.move_to(self._bindings)
        self._bindings = bound

    def _forward(self) -> Callable:
        return self._bindings.forward

    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        return self.require(name), Convention(one_list=False, has_out=self._bindings.has_out)

    def _input(self, entry: Any, what: str) -> Input:
        shape = None if entry.shape is None else tuple(entry.shape)
        return described(entry.name, OF_ONNX.get(entry.type), entry.type, shape, what, self.path)


def _providers(runtime: Any, wanted: str | None) -> tuple[list[Any], str | None]:
    """Execution providers for a device, and the device (None for the host); DEVICE if there are none."""
    host: tuple[str, dict[str, Any]] = ("CPUExecutionProvider", {})
    kind, _, index = (wanted or "cpu").partition(":")
    if kind == "cpu":
        return [host], None
    if kind != "cuda" or not (index or "0").isdigit():
        raise FtnPytorchError("DEVICE", f'device={wanted!r}: an ONNX model runs on "cpu", "cuda" or "cuda:1"')
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        raise FtnPytorchError(
            "DEVICE",
            f"device={wanted!r}: this ONNX Runtime has only {', '.join(runtime.get_available_providers())}; the Python "
            "package onnxruntime-gpu, in place of onnxruntime, has CUDA",
        )
    return [("CUDAExecutionProvider", {"device_id": int(index or 0)}), host], wanted
