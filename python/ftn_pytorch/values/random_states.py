# SPDX-License-Identifier: MIT
"""Random states of the process: Python, NumPy's global one, torch on the host and on all CUDA devices.

They are kept as numbers and bytes, so that a NumPy script in a process that also uses torch needs no torch for its
file. Generators that a script has made are objects of its state.
"""

from __future__ import annotations

import random
from typing import Any

from ..system import process
from . import loaded


def capture() -> dict[str, Any]:
    """States of all generators that this process has."""
    states: dict[str, Any] = {"python": random.getstate()}
    numpy, torch = loaded("numpy"), loaded("torch")
    if numpy is not None and hasattr(numpy, "random"):
        states["numpy"] = numpy.random.get_state(legacy=False)
    if torch is not None and hasattr(torch, "get_rng_state"):
        states["torch"] = to_bytes(torch.get_rng_state())
        # Asking would start CUDA on all devices; without it nobody has drawn a number there.
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = [to_bytes(state) for state in torch.cuda.get_rng_state_all()]
    return states


def restore(states: dict[str, Any]) -> None:
    """Put states back that ``capture`` gave, except those of what this process does not have."""
    random.setstate(states["python"])
    if "numpy" in states:
        import numpy

        numpy.random.set_state(states["numpy"])
    torch = loaded("torch")
    if torch is None or not hasattr(torch, "set_rng_state"):
        return
    if "torch" in states:
        torch.set_rng_state(to_tensor(states["torch"]))
    saved = states.get("cuda", [])
    there = torch.cuda.device_count() if saved else 0
    if there != len(saved):
        process.warn(
            f"the random states of {len(saved)} CUDA devices were stored and there are {there} devices: random numbers "
            "on devices will not go on as they would have"
        )
    for index, state in enumerate(saved[:there]):
        torch.cuda.set_rng_state(to_tensor(state), index)


def to_bytes(tensor: Any) -> bytes:
    """Bytes of a state of torch; without NumPy, which torch does not need."""
    return bytes(tensor.tolist())


def to_tensor(data: bytes) -> Any:
    """The state of torch that ``to_bytes`` had."""
    import torch

    return torch.frombuffer(bytearray(data), dtype=torch.uint8).clone()


def kind_of_generator(generator: Any) -> str | None:
    """What ``made`` needs to know of a generator, None for one that it cannot make."""
    numpy, torch = loaded("numpy"), loaded("torch")
    if type(generator) is random.Random:
        return "random"
    if torch is not None and type(generator) is torch.Generator:
        return f"torch {generator.device}"
    if numpy is not None and type(generator) is numpy.random.RandomState:
        return "legacy"
    if numpy is not None and type(generator) is numpy.random.Generator:
        return f"numpy {type(generator.bit_generator).__name__}"
    return None


def made(kind: str) -> Any:
    """A generator of that kind, of which the state is to be put in."""
    room, _, name = kind.partition(" ")
    if room == "random":
        return random.Random()
    if room == "torch":
        return loaded("torch").Generator(name)
    import numpy

    if room == "legacy":
        return numpy.random.RandomState()
    bits = getattr(numpy.random, name)
    if not issubclass(bits, numpy.random.BitGenerator):
        raise ValueError(f"{name} is no generator of bits")
    return numpy.random.Generator(bits())
