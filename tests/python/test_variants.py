# SPDX-License-Identifier: MIT
"""One script with its network in several variants."""

import pytest

from ftn_pytorch import compiling, variants
from ftn_pytorch.conventions import FORWARD

torch = pytest.importorskip("torch")

SCRIPT = """
    import torch
    from ftn_pytorch.variants import choose
    torch.manual_seed(1)
    net = choose(torch.nn.Linear(2, 1).eval(), (torch.rand(3, 2),))
    def ftn_pytorch_forward(x): return net(x)
"""


class Loops(torch.nn.Module):
    """Cannot be scripted."""

    def forward(self, x):
        return next(iter({"y": x + 1}.values()), None)


def test_the_environment_chooses(load, monkeypatch):
    x = torch.tensor([[1.0, 2.0]])
    results = []
    for variant, kind in (("", torch.nn.Linear), ("eager", torch.nn.Linear), ("torchscript", torch.jit.ScriptModule)):
        monkeypatch.setenv(variants.VARIABLE, variant)
        runner = load(SCRIPT, name=f"net_{variant}.py")
        assert isinstance(vars(runner._module)["net"], kind)
        results.append(runner.bind(FORWARD, 0)[0](x))
    for result in results:
        torch.testing.assert_close(result, results[0], rtol=0, atol=1e-6)


def test_compile_is_that_of_load(monkeypatch):
    asked = []
    monkeypatch.setattr(compiling, "prepare", lambda backend, device: asked.append(backend))
    net = variants.choose(torch.nn.Linear(2, 1), variant="compile")
    assert asked == ["inductor"]
    assert net._compiled_call_impl is not None


def test_what_cannot_be_scripted_is_traced(fails):
    traced = variants.choose(Loops().eval(), (torch.rand(2),), "torchscript")
    assert traced(torch.zeros(5)).tolist() == [1.0] * 5
    with fails("FORMAT", "give examples"):
        variants.choose(Loops().eval(), variant="torchscript")


def test_network_in_training_is_not_frozen():
    assert len(list(variants.choose(torch.nn.Linear(2, 1), variant="torchscript").parameters())) == 2


def test_unknown_variant_is_told(fails, monkeypatch):
    with fails("ARGUMENT", "variant is 'fast'", "eager, torchscript, compile"):
        variants.choose(torch.nn.Linear(2, 1), variant="fast")
    monkeypatch.setenv(variants.VARIABLE, "1")
    with fails("ARGUMENT", "FTN_PYTORCH_VARIANT is '1'"):
        variants.choose(torch.nn.Linear(2, 1))
