# SPDX-License-Identifier: MIT
"""Scripts that call the public functions of torch, and train the layers of torch.nn, each with small arguments.

A function has one script for each form of arguments that it takes. What no form fits is left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch

from .scripts import Script

SPACES = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "F": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.special": torch.special,
    "torch.fft": torch.fft,
}
MOST_FORMS = 2
# They change the process, make no tensor, or need no trial
_LEFT_OUT = re.compile(
    r"^_|^(?:set_|get_|use_|init|seed|manual_seed|save|load|compile|import_|export|fork|wait|backward|share_memory|data_ptr"
    r"|vmap|cond|while_loop|from_file|frombuffer|empty|Event|Stream|Generator|resize|requires_grad|retain_grad|register"
    r"|apply_|map_|map2_|storage|untyped_storage|module_load|cuda|xpu|ipu|hpu|mtia|to_mkldnn|pin_memory|record_stream"
    r"|handle_torch|has_torch|boolean_dispatch|assert_int|List|Optional|Callable|TYPE_CHECKING|Tuple|Union)"
)
# Arguments of functions: x has four rows of three numbers
ARGUMENTS = """
x | x, x | x, 1 | x, 0.5 | x, x, x | x, x[0] | x, 0, x.argsort(0) | x, 0, x.argsort(0), x | x, -1, 2 | x[0] | x[0], x[1]
x.T @ x + torch.eye(3) | x.T @ x + torch.eye(3), x[0] | x.T @ x + torch.eye(3), x.T | [x, x] | [x, x], 1 | x > 0
x > 0, x < 1 | x, x > 0 | x > 0, x, x.neg() | x, x > 0, x | x, (x > 0), 2.0 | (x * 4).long() | (x * 4).long(), 2
(x * 4).long(), (x * 2).long() | x, (4, 3) | x, (1, 0) | x, [1, 3], 0 | torch.complex(x, x.flip(0)) | x.sigmoid()
torch.complex(x, x), torch.complex(x, x) | x.sigmoid(), x.sigmoid() | x[None, None] | x[None, None], 2 | x[None], 2
x[None, None], x[None, None, :2, :2] | x[None], x[None, :1].mT | x, x.argmax(1) | x.argmax(1), x | x, x.argmax(1), 0
x, torch.ones(5, 3) | x[None], x[None], x[None] | 4 | 4, 3 | 'ij,kj->ik', x, x | x[:3], x[1:], dim=1
x, x[:, 0].sort().values | x, 0, 1 | x, 0, 1, 2 | x, 3, 0, 1
"""
# Arguments of layers, and what these are given
SETTINGS = ("", "3", "3, 4", "3, 3, 4", "1, 2, 2", "2", "1, 1", "3, 1", "4, 2, 8", "2, 4", "0.5", "(3,)", "5, 3")
GIVEN = """
x | x, x | x.sigmoid(), (x > 0).float() | x, x.argmax(1) | x[None, None] | x[None] | x[:, None] | x.argmax(1) | x[0]
x[None, None, None] | x, x, x | x[:, :2], x[:, 1:] | x[None, :, :, None] | x.exp(), x, x.exp() | x.repeat(1, 2)[:, :4]
x, x, (x[:, 0] > 0) * 2.0 - 1 | x[:, 0], x[:, 1], (x[:, 2] > 0) * 2.0 - 1 | x.repeat(1, 2)[None, :, :4]
*[x.repeat(1, 2)[None, :, :4]] * 2 | *[x.repeat(1, 2)[None, :, :4]] * 3
"""
_TOTAL = """
def total(found):
    if isinstance(found, (list, tuple)): return sum(map(total, found))
    if isinstance(found, torch.Tensor) and found.requires_grad: return found.abs().sin().sum()
    return 0
"""


def _listed(text: str) -> list[str]:
    return text.strip().replace("\n", " | ").split(" | ")


def functions(space: str) -> Iterator[Script]:
    """Of one name space, with gradients where there are any."""
    for name in dir(SPACES[space]):
        function = getattr(SPACES[space], name)
        if _LEFT_OUT.match(name) or inspect.isclass(function) or not callable(function):
            continue
        taken = 0
        for arguments in _listed(ARGUMENTS):
            call = f"{space}.{name}({arguments})"
            step = f"""
@recorded
def step(x):
    leaf = x.detach().requires_grad_()
    x = leaf * 1
    found = {call}
    loss = total(found)
    return found, torch.autograd.grad(loss, leaf)[0] if isinstance(loss, torch.Tensor) else None
"""
            script = Script(call, _TOTAL + step, {}, calls=12)
            if is_taken(script):
                yield script
                taken += 1
                if taken == MOST_FORMS:
                    break


def layers() -> Iterator[Script]:
    """Each trains, with a parameter beside for those that have none."""
    for name, kind in vars(torch.nn).items():
        if not inspect.isclass(kind) or not issubclass(kind, torch.nn.Module):
            continue
        taken = 0
        for settings in SETTINGS:
            if taken == MOST_FORMS or not is_made(f"nn.{name}({settings})"):
                continue
            for given in _listed(GIVEN):
                text = f"""
net = nn.{name}({settings})
beside = nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([*net.parameters(), beside], lr=0.01)
@recorded
def step(x):
    optimizer.zero_grad()
    x = x * beside
    found = net({given})
    total(found).backward()
    optimizer.step()
    return found
"""
                script = Script(f"nn.{name}({settings})({given})", _TOTAL + text, {}, calls=12)
                if is_taken(script):
                    yield script
                    taken += 1
                    break


def is_made(network: str) -> bool:
    """Whether torch has such a network, and it is a small one."""
    try:
        parameters = eval(network, {"nn": torch.nn}).parameters()
    except Exception:
        return False
    return sum(each.numel() for each in parameters if not torch.nn.parameter.is_lazy(each)) < 1000


def is_taken(script: Script) -> bool:
    """Whether plain torch makes the call, and gives tensors."""
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "recorded": lambda step: step}
    torch.manual_seed(1)
    try:
        exec(compile(script.text, "<corpus>", "exec", dont_inherit=True), names)
        found = names["step"](torch.randn(4, 3))
    except Exception:
        return False
    while isinstance(found, (list, tuple)) and found:
        found = found[0]
    return isinstance(found, torch.Tensor)
