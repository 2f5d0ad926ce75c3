# SPDX-License-Identifier: MIT
"""Write the models for the tests of the direct path into the current folder. Their answers can be computed by hand."""

import os
import pickle
import shutil
import warnings
import zipfile
from typing import NamedTuple

import torch
from blend import Blend, examples
from hooked import Hooked
from schedules import write_schedules
from zoo import write_zoo

warnings.simplefilter("ignore", DeprecationWarning)


class Weighted(torch.nn.Module):
    """Each element times its place on the last axis, from 1: asymmetric, so that no axis order can be mistaken."""

    def forward(self, x):
        return x * torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)


class Counted(torch.nn.Module):
    """Twice a tensor, and how many elements it has: a tensor and a number."""

    def forward(self, x):
        return 2 * x, x.numel()


class Two(torch.nn.Module):
    """Two inputs, a scalar with a default, two outputs; other methods with other results."""

    def forward(self, a, b, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        return a + b * scale, a - b

    @torch.jit.export
    def named(self, x) -> dict[str, torch.Tensor]:
        return {"double": 2 * x, "sum": x.sum()}

    @torch.jit.export
    def scalars(self, n: int, word: str) -> tuple[int, float, bool, str]:
        return n + 1, n / 2, n > 0, word + "!"

    @torch.jit.export
    def chosen(self, i, flag):
        return torch.where(flag, i, -i)

    @torch.jit.export
    def turned(self, x):
        return x.t()

    @torch.jit.export
    def ones(self, n: int):
        return torch.ones([n])

    @torch.jit.export
    def half(self, x):
        return x.to(torch.float16)

    @torch.jit.export
    def nothing(self, x) -> None:
        return None

    @torch.jit.export
    def nested(self, x) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        return x, (x, x)

    @torch.jit.export
    def lists(self, n: int) -> dict[str, list[list[int]]]:
        none: list[list[int]] = []
        return {"small": [[1, 2, 3], [4, 5, n]], "large": [[n << 40], [2]], "none": none}

    @torch.jit.export
    def flags(self, x) -> tuple[list[bool], list[float], tuple[int, float], tuple[complex, complex]]:
        return [True, False], [0.5, 1.5], (1, 2.5), (1j, 2j)

    @torch.jit.export
    def uneven(self, x) -> dict[str, list[list[int]]]:
        return {"rows": [[1], [2, 3]]}

    @torch.jit.export
    def optional(self, x) -> dict[str, torch.Tensor | None]:
        return {"y": 2 * x, "z": None}

    @torch.jit.export
    def adds(self, x):
        return x.add_(1)

    @torch.jit.export
    def fails(self, x):
        return x @ torch.ones(17, 2)

    @torch.jit.export
    def conjugate(self, z):
        return z.conj()


class Entries(torch.nn.Module):
    """Takes a dictionary."""

    def forward(self, inputs: dict[str, torch.Tensor]):
        return inputs["a"] - inputs["b"]


class Extrema(NamedTuple):
    low: torch.Tensor
    high: torch.Tensor


class Range(torch.nn.Module):
    def forward(self, x):
        return Extrema(x.min(), x.max())


class Counter(torch.nn.Module):
    """State: how often it was called."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.last = torch.zeros(1)

    def forward(self, x):
        self.count += 1
        return x * 0 + self.count

    @torch.jit.export
    def keep(self, x):
        self.last = x
        return x * 2

    @torch.jit.export
    def kept(self):
        return self.last


class Meddler(torch.nn.Module):
    """Tells what its input is, and then does what a model should not do to it."""

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(1)
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.found(x)

    def found(self, x):
        sizes = float(x.dim()) * 100 + float(x.size(0)) * 10 + float(x.size(-1))
        return torch.stack(
            [x.sum().detach(), torch.tensor(sizes), torch.tensor(float(x.requires_grad)), x.flatten()[1].detach()]
        )

    @torch.jit.export
    def set_first(self, x):
        found = self.found(x)
        x[0] = 5.0
        return found

    @torch.jit.export
    def turn(self, x):
        found = self.found(x)
        x.t_()
        return found

    @torch.jit.export
    def add_axis(self, x):
        found = self.found(x)
        x.unsqueeze_(0)
        return found

    @torch.jit.export
    def resize(self, x):
        found = self.found(x)
        x.resize_([1])
        return found

    @torch.jit.export
    def point_elsewhere(self, x):
        found = self.found(x)
        x.set_(torch.full([2, 3], 9.0))
        return found

    @torch.jit.export
    def want_gradient(self, x):
        found = self.found(x)
        x.requires_grad_(True)
        return found

    @torch.jit.export
    def leave_gradient(self, x):
        found = self.found(x)
        x.requires_grad_(True)
        x.sum().backward()
        x.requires_grad_(False)
        found[2] = x.grad.sum() - 6.0  # nothing, unless it is added to that of an earlier call
        return found

    @torch.jit.export
    def keep(self, x):
        found = self.found(x)
        self.last = x
        return found

    @torch.jit.export
    def keep_view(self, x):
        found = self.found(x)
        self.last = x[0]
        return found

    @torch.jit.export
    def keep_graph(self, x):
        found = self.found(x)
        self.last = (x.sum() * self.weight).sum()
        return found


class Scaled(torch.nn.Module):
    """Another method replaces what forward computes with."""

    def __init__(self):
        super().__init__()
        self.scale = torch.ones(1)
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.scale * self.weight

    @torch.jit.export
    def rescale(self, scale):
        self.scale = scale.clone()
        return scale


class Passing(torch.nn.Module):
    """Returns its input."""

    def forward(self, x):
        return x

    @torch.jit.export
    def changed(self, x):
        x.mul_(2)
        return x

    @torch.jit.export
    def changed_both(self, a, b) -> None:
        a.add_(1)
        b.add_(1)


class Turned(torch.nn.Module):
    """Returns a view with the axes in the other order."""

    def forward(self, x):
        return x.t()


class Sliced(torch.nn.Module):
    """Returns a view without the first element of the last axis."""

    def forward(self, x):
        return x[:, 1:]


class Pair(torch.nn.Module):
    """Returns something new, and its input."""

    def forward(self, x) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x


class Keeper(torch.nn.Module):
    """Keeps its input."""

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(1)

    def forward(self, x):
        self.last = x
        return x + 1

    @torch.jit.export
    def kept(self):
        return self.last


class Spoiler(torch.nn.Module):
    """Changes its input in place, and can be trained."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        x.mul_(1.5)
        return x * self.weight


class Force(torch.nn.Module):
    """-dE/dx of E = sum x**2: computes a gradient in forward."""

    def forward(self, x):
        x = x.detach().requires_grad_(True)
        energy = (x * x).sum()
        gradient = torch.autograd.grad([energy], [x])[0]
        assert gradient is not None
        return -gradient


class Modes(torch.nn.Module):
    """Computes otherwise in training mode, and says which mode it is in."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(1, affine=False)
        self.dropout = torch.nn.Dropout(0.5)
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.dropout(self.norm(x)) * self.weight

    @torch.jit.export
    def mode(self, x):
        return x + 1.0 if self.training and self.dropout.training else x * 0.0


def mlp():
    torch.manual_seed(7)
    parts = [torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)]
    return torch.nn.Sequential(*parts)


class Attack:
    """Leaves a folder behind when it is read as a pickle."""

    def __reduce__(self):
        return os.mkdir, ("direct_attack_was_run",)


def copy_with(name: str, end: str, content: bytes) -> None:
    """A copy of a model in which the entry whose name has that end has another content."""
    with zipfile.ZipFile("direct_mlp.pt") as intact, zipfile.ZipFile(f"direct_{name}.pt", "w") as copy:
        assert any(entry.endswith(end) for entry in intact.namelist())
        for entry in intact.namelist():
            copy.writestr(entry, content if entry.endswith(end) else intact.read(entry))


def write_models():
    models = {
        "weighted": Weighted(),
        "counted": Counted(),
        "two": Two(),
        "range": Range(),
        "entries": Entries(),
        "counter": Counter(),
        "meddler": Meddler(),
        "passing": Passing(),
        "turned": Turned(),
        "sliced": Sliced(),
        "pair": Pair(),
        "keeper": Keeper(),
        "spoiler": Spoiler(),
        "force": Force(),
        "modes": Modes(),
        "scaled": Scaled(),
        "blend": Blend(),
        "hooked": Hooked(),
        "hooked_part": torch.nn.Sequential(Hooked()),
        "mlp": mlp(),
        "mlp_eval": mlp().eval(),
    }
    for name, model in models.items():
        torch.jit.script(model).save(f"direct_{name}.pt")
    torch.jit.trace(mlp().eval(), torch.ones(32, 16)).save("direct_mlp_traced.pt")
    torch.jit.trace(Blend(), examples()).save("direct_blend_traced.pt")
    torch.save(mlp().state_dict(), "direct_weights.pt")
    with open("direct_mlp.pt", "rb") as file:
        content = file.read()
    with open("direct_truncated.pt", "wb") as file:
        file.write(content[: len(content) // 2])
    copy_with("damaged", "/data.pkl", b"nonsense")
    copy_with("later", "/version", b"999\n")
    copy_with("attack", "/data.pkl", pickle.dumps(Attack(), 2))
    shutil.copyfile(os.path.join(os.path.dirname(__file__), "trained_by_0_2_0.pt"), "direct_trained_by_0_2_0.pt")
    with open("direct_foreign.pt", "wb") as file:
        file.write(b"GIF89a" + bytes(1000))


if __name__ == "__main__":
    write_models()
    write_schedules()
    write_zoo()
