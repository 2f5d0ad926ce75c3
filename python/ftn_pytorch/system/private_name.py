# SPDX-License-Identifier: MIT
"""A name that is not documented, and what is said when it is gone."""

from __future__ import annotations

import importlib
import sys
from typing import Any, NamedTuple

from ..errors import FtnPytorchError


class PrivateName(NamedTuple):
    """A name that may be gone."""

    owner: str
    """Module, and after a colon the attributes that lead on: "torch:nn.Module"."""
    name: str
    without: str
    """What does not work without it."""
    used_in: str = ""
    """A method of the owner that uses the name, where only objects have it and the class does not."""

    def value(self) -> Any:
        """What the name stands for in its owner; VERSION if it is gone."""
        try:
            return getattr(self._owner(), self.name)
        except (ImportError, AttributeError) as failure:
            raise FtnPytorchError("VERSION", self.text()) from failure

    def of(self, value: Any) -> Any:
        """The attribute of that name; VERSION if the object has none."""
        try:
            return getattr(value, self.name)
        except AttributeError as failure:
            raise FtnPytorchError("VERSION", self.text()) from failure

    def is_there(self) -> bool:
        """Also True where the package itself cannot be imported."""
        try:
            importlib.import_module(self._package())
        except Exception:
            return True
        try:
            owner = self._owner()
            if self.used_in:
                code = getattr(owner, self.used_in).__code__
                return self.name in code.co_names + code.co_consts  # the latter for getattr
            return hasattr(owner, self.name)
        except (ImportError, AttributeError):
            return False

    def text(self) -> str:
        """That the name is gone, what does not work, and what to do."""
        module = sys.modules.get(self._package())
        package, version = self._package(), getattr(module, "__version__", None)
        if version is None:
            import platform

            package, version = "Python", platform.python_version()
        return (
            f"{self.owner.replace(':', '.')}.{self.name} is a private name, which {package} {version} no longer has: "
            f"{self.without}; use a version of {package} that has it, or a later ftn_pytorch"
        )

    def _package(self) -> str:
        return self.owner.partition(":")[0].partition(".")[0]

    def _owner(self) -> Any:
        module, _, names = self.owner.partition(":")
        found: Any = importlib.import_module(module)
        for name in filter(None, names.split(".")):
            found = getattr(found, name)
        return found
