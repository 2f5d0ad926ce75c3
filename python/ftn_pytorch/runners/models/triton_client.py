# SPDX-License-Identifier: MIT
"""A model in a Triton inference server, by the KServe protocol (version 2) over gRPC: address, interface, requests.

https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/protocol/README.html
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from ...errors import FtnPytorchError, did_you_mean, missing_package
from ...script.shapes import Shape
from ...values.dtypes import OF_TRITON
from .input_specs import Input, described

SCHEME = "triton+grpc://"
_FORM = f"{SCHEME}HOST:PORT/MODEL[/VERSION][?timeout=SECONDS&retries=N]"
_ADDRESS = re.compile(re.escape(SCHEME) + r"(?P<server>[^/?]+:\d+)/(?P<model>[^/?]+)(?:/(?P<version>\d+))?(?:\?(.*))?")

# Seconds after which a connection that could not be made is tried again; until then requests fail at once.
_RECONNECT = 0.3


class ServerFailure(FtnPytorchError):
    """The server gives no answer, or one that cannot be used: another way to the result may help."""

    def __init__(self, status: str, text: str, is_worth_a_retry: bool = False) -> None:
        super().__init__(status, text)
        self.is_worth_a_retry = is_worth_a_retry


@dataclass(frozen=True)
class Address:
    """Where a model is, and how long a request may take."""

    server: str
    model: str
    version: str
    timeout: float
    """Seconds for each attempt."""
    retries: int
    """Further attempts where the server cannot be reached."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """ARGUMENT for what is no such address."""
        found = _ADDRESS.fullmatch(text)
        if found is None:
            raise FtnPytorchError("ARGUMENT", f"{text} is no address of a model: write {_FORM}")
        options = {"timeout": 10.0, "retries": 1.0}
        for name, value in parse_qsl(found[4] or "", keep_blank_values=True):
            if name not in options:
                raise FtnPytorchError("ARGUMENT", f"{text}: there is no {name!r}{did_you_mean(name, options)}: {_FORM}")
            number = _number(value)
            if not (number > 0 if name == "timeout" else number >= 0 and number == int(number)):
                raise FtnPytorchError("ARGUMENT", f"{text}: {name}={value} is not possible: {_FORM}")
            options[name] = number
        return cls(found["server"], found["model"], found["version"] or "", options["timeout"], int(options["retries"]))

    def __str__(self) -> str:
        return f"{SCHEME}{self.server}/{self.model}" + (f"/{self.version}" if self.version else "")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return -1.0
    return number if 0 <= number < 1e9 else -1.0


class Client:
    """A connection, which is made when it is needed and again when it breaks, and what the model takes and gives.

    Any number of threads may send at the same time. IMPORT without tritonclient.
    """

    def __init__(self, address: Address) -> None:
        try:
            from tritonclient import grpc, utils
        except ImportError as failure:
            raise missing_package(str(address), failure, "tritonclient[grpc]") from failure
        self._grpc, self._exception = grpc, utils.InferenceServerException
        self.address = address
        self.inputs: list[Input] = []
        self.outputs: list[Input] = []
        self._types: dict[str, str] = {}
        self.retries = address.retries
        self.result_type: Any = tuple
        """Of several outputs, which have names and an order."""
        self.largest_batch = 0
        """How many samples, along the first axis, a request may have; 0 if the model knows no batches."""
        # After a failure, a connection is tried again much sooner than by default: the simulation waits.
        quick = [("grpc.initial_reconnect_backoff_ms", 200), ("grpc.max_reconnect_backoff_ms", 1000)]
        longest = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        self._client = grpc.InferenceServerClient(address.server, channel_args=[*quick, *longest])

    def close(self) -> None:
        self._client.close()

    def describe(self) -> None:
        """Ask what the model takes and gives; ``inputs`` and ``outputs`` are known afterwards.

        ServerFailure, or FORMAT for types that Fortran cannot take part in.
        """
        named = {"model_name": self.address.model, "model_version": self.address.version}
        metadata = self._ask(self._client.get_model_metadata, **named)
        config = self._ask(self._client.get_model_config, **named).config
        self.largest_batch = config.max_batch_size
        self._types = {entry.name: entry.datatype for entry in (*metadata.inputs, *metadata.outputs)}
        self.inputs = [self._described(entry, "input") for entry in metadata.inputs]
        self.outputs = [self._described(entry, "output") for entry in metadata.outputs]
        self.result_type = type("Outputs", (tuple,), {"_fields": tuple(entry.name for entry in self.outputs)})

    def _described(self, entry: Any, what: str) -> Input:
        shape = tuple(None if size < 0 else size for size in entry.shape)
        return described(entry.name, OF_TRITON.get(entry.datatype), entry.datatype, shape, what, self.address)

    def infer(self, arrays: Sequence[Any]) -> list[Any]:
        """Results in the order of ``outputs``, read-only, for arrays in the order of ``inputs``.

        ServerFailure; PYTHON for a request that the server refuses.
        """
        rows = arrays[0].shape[0] if self.largest_batch and arrays else 0
        if rows <= self.largest_batch:
            return self._infer(arrays, rows)
        import numpy

        pieces = [
            self._infer([array[first : first + self.largest_batch] for array in arrays], None)
            for first in range(0, rows, self.largest_batch)
        ]
        return [numpy.concatenate(parts) for parts in zip(*pieces)]

    def _infer(self, arrays: Sequence[Any], rows: int | None) -> list[Any]:
        inputs = []
        for entry, array in zip(self.inputs, arrays):
            assert entry.name is not None
            given = self._grpc.InferInput(entry.name, list(array.shape), self._types[entry.name])
            given.set_data_from_numpy(array)
            inputs.append(given)
        answer = self._ask(
            self._client.infer,
            model_name=self.address.model,
            model_version=self.address.version,
            inputs=inputs,
        )
        rows = arrays[0].shape[0] if rows is None else rows
        return [self._read(answer, entry, rows if self.largest_batch else None) for entry in self.outputs]

    def _read(self, answer: Any, entry: Input, rows: int | None) -> Any:
        try:
            array = answer.as_numpy(entry.name)
        except (ValueError, TypeError, KeyError) as failure:
            raise self._useless(f"{entry.name} cannot be read: {failure}") from failure
        if array is None:
            raise self._useless(f"it has no {entry.name}")
        if array.dtype != entry.dtype or not _fits(array.shape, entry.shape or (), rows):
            raise self._useless(f"{entry.name} is {array.dtype} of shape {array.shape}, and should be {entry}")
        return array

    def _useless(self, text: str) -> ServerFailure:
        return ServerFailure("FORMAT", f"the answer of {self.address} is not what the model promises: {text}")

    def _ask(self, question: Callable, **arguments: Any) -> Any:
        attempts = self.retries + 1
        for attempt in range(1, attempts + 1):
            try:
                return question(**arguments, client_timeout=self.address.timeout)
            except self._exception as failure:
                told = self._told(failure, attempt)
                if isinstance(told, ServerFailure) and told.is_worth_a_retry and attempt < attempts:
                    time.sleep(_RECONNECT)
                    continue
                raise told from failure
        raise AssertionError

    def _told(self, failure: Any, attempts: int) -> Exception:
        """What an exception of tritonclient means."""
        kind, text = str(failure.status()).removeprefix("StatusCode."), str(failure.message())
        address = self.address
        if kind == "DEADLINE_EXCEEDED":
            return ServerFailure(
                "PYTHON",
                f"{address} has not answered within {address.timeout:g} s: the server is too slow or hangs, or what "
                "listens there is no Triton server. The time is that of ?timeout=",
            )
        if kind == "UNAVAILABLE" and "model" not in text:
            tried = "" if attempts == 1 else f", in {attempts} attempts"
            return ServerFailure(
                "PYTHON",
                f"{address}: there is no Triton server that can be reached{tried} ({text}). Its port for gRPC is 8001 "
                "unless it was started with another one",
                is_worth_a_retry=True,
            )
        if kind in ("NOT_FOUND", "UNAVAILABLE") or "unknown model" in text:
            return ServerFailure("FILE", f"{address}: the server has no such model that is ready: {text}")
        if kind == "UNIMPLEMENTED":
            return ServerFailure(
                "FORMAT",
                f"{address}: the server speaks gRPC, but not the protocol of Triton (KServe, version 2): {text}",
            )
        if kind == "INVALID_ARGUMENT":
            return FtnPytorchError("PYTHON", f"{address} refuses the request: {text}")
        return ServerFailure("PYTHON", f"{address} has failed ({kind}): {text}")


def _fits(found: tuple[int, ...], shape: Shape, rows: int | None) -> bool:
    """Whether a result has the sizes that are known, and the batch that was sent."""
    if len(found) != len(shape) or (rows is not None and found[0] != rows):
        return False
    return all(size is None or size == there for size, there in zip(shape, found))
