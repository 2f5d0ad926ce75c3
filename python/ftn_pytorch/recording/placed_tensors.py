# SPDX-License-Identifier: MIT
"""Tensors that a call makes empty and puts into the memory of others, by ``set_``.

cuDNN wants all weights of an LSTM as one tensor, and torch makes that in each call. The recording makes it once, as it
does with views of what comes from outside: it shows what that memory holds later, too.
"""

from __future__ import annotations

from typing import Any

import torch

from .tape import address_of, place_of_user

OF_MEMORY = "it uses the memory of a tensor as it is (untyped_storage, set_, copy.deepcopy, pickle)"
_SET = (torch.ops.aten.set_.source_Storage, torch.ops.aten.set_.source_Storage_storage_offset)


class PlacedTensors:
    def __init__(self) -> None:
        self._made: list[tuple[Any, str]] = []
        """Each of them, and where it was made."""

    def is_made_by(self, operator: Any, args: Any) -> bool:
        """True for ``set_`` of a tensor with nothing in it."""
        return operator in _SET and args[0].numel() == 0 and not args[0].requires_grad

    def note(self, tensor: Any) -> Any:
        self._made.append((torch.ops.aten.detach(tensor), place_of_user()))
        return self._made[-1][0]

    def obstacle(self, outside: dict[int, Any]) -> str:
        """At the end of a call, when all tensors from outside are known. Of memory that is of none of them, nobody
        knows what it holds later."""
        known = {address_of(each) for each in outside.values()}
        strange = (place for tensor, place in self._made if address_of(tensor) not in known)
        return next((f"{place}: {OF_MEMORY}" for place in strange), "")
