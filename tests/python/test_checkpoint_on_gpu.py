# SPDX-License-Identifier: MIT
"""A checkpoint that a script wrote on a GPU goes on there, and on the host."""

import pytest

torch = pytest.importorskip("torch")

import program  # noqa: E402
from devices import GPU  # noqa: E402

pytestmark = [GPU, pytest.mark.usefixtures("extension")]

SCRIPT = """
import torch
net = torch.nn.ModuleDict({"first": torch.nn.GRU(4, 8, 2), "last": torch.nn.Linear(8, 2)})
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
history = []

def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = (net["last"](net["first"](x)[0]) - target).square().mean()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    return loss.item()
"""


@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
@pytest.mark.parametrize("record", [False, True])
def test_what_a_gpu_has_written_goes_on(tmp_path, device, record):
    path, place = tmp_path / "script.py", str(tmp_path / "state")
    path.write_text(SCRIPT)
    torch.manual_seed(0)
    x, target = torch.randn(6, 3, 4), torch.randn(6, 3, 2)

    def losses(runner, steps):
        return [program.call(runner, "ftn_pytorch_train", x, target) for _ in range(steps)]

    first = program.load(str(path), device="cuda:0", record=record)
    before = losses(first, 12)
    program.save(first, place)
    expected = losses(first, 6)
    again = program.load(str(path), device=device, record=record)
    program.restore(again, place)
    module = vars(again._module)
    assert module["history"] == before
    found = losses(again, 6)
    tensors = [*module["net"].parameters(), *(each.grad for each in module["net"].parameters())]
    assert {each.device.type for each in tensors} == {device.split(":")[0]}
    if device == "cuda:0":
        assert found == expected
    else:  # other kernels
        assert found == pytest.approx(expected, rel=1e-2)
