# SPDX-License-Identifier: MIT
"""The runner for models in a Triton inference server, with a saved model that answers where the server does not."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import FtnPytorchError
from ...script import results
from ...script.conventions import FORWARD, Convention
from ...script.framework import NUMPY
from ...system import log, process
from ...values import is_tensor
from ..base import Runner, refuse_gradients
from ..options import USE_INFERENCE_MODE, Options
from .input_specs import arrange, as_input, cast, check
from .saved_model import SavedRunner
from .triton_client import Address, Client, ServerFailure

# Seconds without the server after a failure, which double up to the second number.
_PAUSES = (1.0, 60.0)


class TritonRunner(SavedRunner):
    """A model in a server. Inputs and outputs have the names that the model gives them.

    Arrays are those of NumPy, or what the model of ``fallback`` takes.

    ``open_file``: makes the runner of ``fallback``, which is used as long as the server fails.
    """

    backend = "triton"
    is_differentiable = False
    framework = NUMPY
    what = "a model in a Triton server"

    def __init__(
        self, address: str, options: Options, config: dict[str, Any], open_file: Callable[[str, Options], Runner]
    ) -> None:
        options.refuse_compile(address, self.what)
        self._address = Address.parse(address)
        if options.device is not None and options.fallback is None:
            raise FtnPytorchError("ARGUMENT", f"{address}: the server has its own devices: leave out device=")
        self.device = None
        self._client = Client(self._address)
        weakref.finalize(self, self._client.close)
        self._local: _Local | None = None
        super().__init__(address, options, config)
        self.name = self._address.model
        self.dtype, self.inputs = "keep", "share"
        if options.fallback is not None:
            self._local = _Local(open_file(options.fallback, replace(options, fallback=None)), self)
            self.framework = self._local.runner.framework
        try:
            self._client.describe()
        except ServerFailure as failure:
            if self._local is None:
                raise
            self._local.begins(failure)

    def _read(self) -> None:
        """The server is asked when it is known what to do without it."""

    def reload(self) -> None:
        """Ask the server again, which may have a newer version of the model."""
        self._client.describe()
        if self._local is not None:
            self._local.runner.reload()

    def _forward(self) -> Callable:
        where = f"forward of {self.name}"
        client, dtype = self._client, self._options.dtype

        def forward(*args: Any, **named: Any) -> Any:
            local = self._local
            if local is not None and local.is_needed():
                return local.forward(args, named)
            try:
                if not client.inputs:
                    client.describe()
                values = arrange(client.inputs, args, named, where)
                refuse_gradients(values, where, "a server")
                arrays = [as_input(entry, _array(value), dtype, where) for entry, value in zip(client.inputs, values)]
                check(client.inputs, arrays, where)
                found = client.infer(arrays)
            except ServerFailure as failure:
                if local is None:
                    raise
                local.begins(failure)
                return local.forward(args, named)
            if local is not None:
                local.ends()
            return found[0] if len(found) == 1 else client.result_type(found)

        return forward

    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        return self.require(name), Convention(one_list=False, has_out=False)


class _Local:
    """A saved model in place of the server: when, for how long, and how often."""

    def __init__(self, runner: Runner, owner: TritonRunner) -> None:
        self.runner = runner
        self._client, self._dtype = owner._client, owner._options.dtype
        self._function = runner.bind(FORWARD, USE_INFERENCE_MODE)[0]
        self._lock = threading.Lock()
        self._pause, self._until = _PAUSES[0], 0.0
        self._is_used = False
        self._calls = Counter[str]()
        weakref.finalize(owner, _tell, self._calls, str(owner._address), runner.path)

    def is_needed(self) -> bool:
        """Whether it is too early to ask the server again."""
        return time.monotonic() < self._until

    def begins(self, failure: ServerFailure) -> None:
        """The server has failed."""
        with self._lock:
            self._until = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _PAUSES[1])
            was_used, self._is_used = self._is_used, True
            self._client.retries = 0  # a call that looks whether the server is back does not wait for it
        if not was_used:
            process.warn(
                f"{failure.text}. {self.runner.path} answers in its place; the server is tried again from time to time"
            )

    def ends(self) -> None:
        """The server has answered."""
        with self._lock:
            self._calls["server"] += 1
            was_used, self._is_used = self._is_used, False
            self._pause, self._until = _PAUSES[0], 0.0
        if was_used:
            self._client.retries = self._client.address.retries
            log.info(f"{self._client.address} answers again")

    def forward(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """What the saved model answers, by the names of the server's outputs if these are known."""
        with self._lock:
            self._calls["local"] += 1
        given = functools.partial(cast, dtype=self._dtype)
        found = self._function(*map(given, args), **{name: given(value) for name, value in named.items()})
        names, values = results.unpack(found)
        wanted = self._client.outputs
        if names is None and len(values) == len(wanted) > 1:
            return self._client.result_type(values)
        return found


def _array(value: Any) -> Any:
    return value.detach().numpy() if is_tensor(value) else value


def _tell(calls: Mapping[str, int], address: str, path: str) -> None:
    if calls["local"]:
        process.warn(f"{address}: {calls['local']} of {sum(calls.values())} calls were answered by {path}")
