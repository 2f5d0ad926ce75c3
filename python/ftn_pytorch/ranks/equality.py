# SPDX-License-Identifier: MIT
"""Whether a network is the same on all ranks."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import FtnPytorchError, listed
from ..system.tensor_bytes import bytes_of
from . import communicator, process_group

_NAME = "require_equal"


def require_equal(network: Any) -> None:
    """FORMAT unless all parameters and buffers have the same names, types, shapes and bits on all ranks.

    All ranks of the communicator of the script must call it, or, without one, all of the process group of
    torch.distributed. Threads of the script can call it once there is such a group (``init_process_group``). What is
    exchanged are digests, 64 bytes for each rank as long as they agree.

    network: a torch.nn.Module, or an iterable of tensors.
    """
    compare(
        {name: digest(tensor) for name, tensor in named_tensors(network).items()},
        lambda text: gathered(text, _NAME),
        f"{_NAME}: the ranks do not have one network",
        "Begin with the same values on all ranks (torch.manual_seed, or a checkpoint), and change the network by "
        "average_gradients and the same optimizer only",
    )


def named_tensors(network: Any) -> dict[str, Any]:
    """Parameters and buffers of a module by name, or tensors by their number, on all ranks in one order."""
    import torch

    if isinstance(network, torch.nn.Module):
        return {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return {f"tensor {number}": tensor for number, tensor in enumerate(network, 1)}


def compare(mine: dict[str, str], gather: Callable[[str], list[str]], what: str, advice: str) -> None:
    """FORMAT on all ranks unless they have the same descriptions by the same names, in the same order.

    ``gather``: the texts of all ranks. ``what`` and ``advice``: beginning and end of the error, between which it lists
    who differs in which names.
    """
    refuse_different(gather(short(mine)), mine, gather, what, advice)


def short(mine: Mapping[str, str]) -> str:
    """Digest of descriptions by name, in their order."""
    return hashlib.sha256(json.dumps(mine).encode()).hexdigest()


def refuse_different(
    answers: Sequence[str], mine: Mapping[str, str], gather: Callable[[str], list[str]], what: str, advice: str
) -> None:
    """The second half of ``compare``. ``answers``: what ``short`` gave on all ranks."""
    if len(set(answers)) == 1:
        return
    # Where most ranks agree, the others are those that differ; else rank 0 is as good as any.
    model = answers.index(Counter(answers).most_common(1)[0][0])
    everywhere = [json.loads(each) for each in gather(json.dumps(mine))]
    differences = {
        rank: [name for name in {**everywhere[model], **there} if there.get(name) != everywhere[model].get(name)]
        for rank, there in enumerate(everywhere)
    }
    told = "; ".join(
        f"rank {rank} differs from rank {model} in {listed(names)}" for rank, names in differences.items() if names
    )
    raise FtnPytorchError("FORMAT", f"{what}: {told or 'the tensors have another order'}. {advice}")


def digest(tensor: Any) -> str:
    """Type, shape and bits of a tensor as a short text."""
    about = f"{tensor.dtype} {tuple(tensor.shape)} "
    digest = hashlib.sha256()
    for part in _strided(tensor.detach()):
        digest.update(bytes_of(part).cpu().numpy())
    return f"{about}{digest.hexdigest()}"


def _strided(tensor: Any) -> list[Any]:
    """What a tensor consists of: itself, or indices and values of a sparse one."""
    import torch

    if tensor.layout is torch.strided:
        return [tensor]
    sparse = tensor.to_sparse().coalesce()
    return [sparse.indices(), sparse.values()]


def gathered(text: str, purpose: str) -> list[str]:
    """The texts of all ranks of the module at work; see ``texts_of_all``."""
    return process_group.texts_of_all(communicator.current(), text, purpose)
