# SPDX-License-Identifier: MIT
"""``torch.compile`` as an option of load: what of a script is compiled, and whether that can work here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from ..errors import FtnPytorchError, message
from ..system import private_names
from . import parameters
from .conventions import FORWARD

WORKER_START = "TORCHINDUCTOR_WORKER_START"


def prepare(backend: str, device: str | None) -> None:
    """Check that a backend of torch.compile can be used; ARGUMENT if there is none of that name, IMPORT
    without a compiler.

    For inductor, workers that compile are Python processes of their own. torch's other way, a fork, would copy the
    Fortran program with its threads and its MPI state.
    """
    import torch

    if backend not in torch.compiler.list_backends(exclude_tags=()):
        known = ", ".join(torch.compiler.list_backends())
        raise FtnPytorchError("ARGUMENT", f"compile_backend={backend!r} cannot be used, torch knows {known}")
    if backend != "inductor":
        return
    if os.environ.get(WORKER_START) is None:
        private_names.compile_in_own_processes()
    if not _is_python(sys.executable):
        # Adopted from a host that is no Python and did not say where one is: it would be started again as a worker.
        private_names.compile_without_workers()
    if device is None:
        require_cxx(
            "compile= needs a C++ compiler while the program runs",
            'or load with compile_backend="aot_eager", which needs none and is hardly faster than no compile=',
        )


def _is_python(path: str | None) -> bool:
    return bool(path) and "python" in os.path.basename(os.path.realpath(str(path))).lower()


def require_cxx(what: str, instead: str) -> None:
    """IMPORT without a C++ compiler."""
    try:
        private_names.find_cxx()
    except FtnPytorchError:
        raise
    except Exception as failure:
        wanted = os.environ.get("CXX", "g++")
        raise FtnPytorchError(
            "IMPORT",
            f"{what}, and {wanted!r} cannot be started ({message(failure)}). Install g++, name another one in the "
            f"environment variable CXX, {instead}.",
        ) from failure


def compile_module(torch: Any, module: Any, mode: str, backend: str) -> None:
    """``module.compile()`` that works for all modules.

    torch (2.13) does not look into frames of its own ``torch.nn``. So ``compile()`` of a Sequential, or of any other
    module of torch's own, compiles nothing and says nothing; a frame that is not torch's has to come first.
    """
    call_impl = private_names.plain_call(module)

    def forward(*args: Any, **kwargs: Any) -> Any:
        return call_impl(*args, **kwargs)

    # torch counts compilations per code object, and gives up silently after eight. So each module has one of its own.
    forward.__code__ = forward.__code__.replace()
    private_names.set_compiled_call(module, torch.compile(forward, mode=mode, backend=backend))


def compile_script(namespace: dict[str, Any], mode: str, backend: str, where: str) -> Callable | None:
    """Compile the networks of a script in place: every torch.nn.Module of ``parameters.networks_in``.

    Parameters, names in ``state_dict`` and types stay as they are, so optimizers and files of the script go on working,
    and ``train`` uses what was compiled as well. In a script without such names it is ``ftn_pytorch_forward`` that is
    compiled and returned. What the script compiled itself stays as it is. HOOK if there is nothing to compile.
    """
    import torch

    networks = [value for value in parameters.networks_in(namespace).values() if isinstance(value, torch.nn.Module)]
    for network in networks:
        if isinstance(network, torch.jit.ScriptModule):
            raise FtnPytorchError("ARGUMENT", f"{where} has a TorchScript module, which torch.compile cannot work on")
        if not private_names.is_compiled(network):
            compile_module(torch, network, mode, backend)
    forward = namespace.get(FORWARD)
    if networks:
        return None
    if forward is None:
        raise FtnPytorchError(
            "HOOK", f"{where} has neither a torch.nn.Module nor {FORWARD}: there is nothing to compile"
        )
    return torch.compile(forward, mode=mode, backend=backend)
