# SPDX-License-Identifier: MIT
"""The extension module that runs recordings, built with the library for one torch and one Python."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sysconfig
import threading
from typing import Any

from .._version import __version__
from . import installation, private_names, process

_NAME = "_ftn_pytorch_recording"
PLUGIN = "libftn_pytorch_direct.so"


class _Found:
    """What was found in this process."""

    lock = threading.Lock()
    module: Any = None
    obstacle: str | None = None


def module() -> Any:
    """The extension, None where there is none; ``obstacle`` says why."""
    if _Found.module is None and _Found.obstacle is None:
        with _Found.lock:  # a module that another thread is loading has no functions yet
            if _Found.module is None and _Found.obstacle is None:
                _find()
    return _Found.module


def obstacle() -> str:
    """Why recordings cannot be run here; empty if they can."""
    return "" if module() is not None else _Found.obstacle or ""


def plugin() -> str:
    """The library that runs saved recordings, beside the extension, which there must be; empty without it."""
    path = os.path.join(os.path.dirname(module().__file__), PLUGIN)
    return path if os.path.exists(path) else ""


def tensor_looks() -> Any:
    """Looks at tensors for the core; None without the extension."""
    found = module()
    return None if found is None else found.tensor_looks


def is_intercepted() -> bool:
    """True where the operators of this thread go elsewhere before they are called: a recorder, torch.vmap."""
    return module() is not None and module().is_intercepted()


def _find() -> None:
    import torch  # the extension needs its libraries

    if private_names.dispatch_mode() is None:
        _Found.obstacle = "this torch has no modes that see the calls of operators"
        return
    name = f"{_NAME}.{sysconfig.get_config_var('SOABI')}.so"
    here = installation.torch_at(os.path.dirname(torch.__file__), torch.__version__)
    folders = installation.extensions_for(here, process.start_info().get("core", ""))
    file = next((path for folder in folders if os.path.isfile(path := os.path.join(folder, name))), None)
    if file is None:
        where = f"{os.path.join(folders[0], name)} is missing" if folders else "the library is not found from here"
        cure = installation.direct_cure() if folders else "name its prefix in CMAKE_PREFIX_PATH"
        _Found.obstacle = f"{where}: {cure}"
        return
    made = installation.torch_of_plugin(os.path.dirname(file))
    if made and not installation.is_for(made, here):  # it would be loaded, and crash later
        was = f"{file} was built for torch {made[1]}, and this is {here.text}"
        _Found.obstacle = f"{was}: {installation.direct_cure()}"
        return
    loader = importlib.machinery.ExtensionFileLoader(_NAME, file)
    spec = importlib.util.spec_from_file_location(_NAME, file, loader=loader)
    assert spec is not None
    try:
        found = importlib.util.module_from_spec(spec)
        loader.exec_module(found)
    except ImportError as failure:
        _Found.obstacle = f"{file} cannot be used: {failure}: {installation.direct_cure()}"
        return
    if getattr(found, "version", "") != __version__:
        _Found.obstacle = f"{file} is not of this version, {__version__}: {installation.direct_cure()}"
        return
    _Found.module = found
