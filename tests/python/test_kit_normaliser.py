# SPDX-License-Identifier: MIT
"""Statistics of what passes, against those of all of it at once."""

import io

import pytest
import torch

from ftn_pytorch.kit import Normaliser
from ftn_pytorch.system.process import FtnPytorchWarning


def batches(offset=3.0, n=400, columns=4):
    random = torch.Generator().manual_seed(1)
    scale = torch.tensor([1e-3, 1.0, 50.0, 1e4][:columns])
    return torch.randn(n, columns, generator=random, dtype=torch.float64) * scale + offset * scale


def test_batches_of_any_size_give_the_statistics_of_all():
    x = batches() + 1e6
    learnt = Normaliser(4)
    for batch in x.split([1, 7, 0, 92, 300]):
        learnt.update(batch)
    torch.testing.assert_close(learnt.mean, x.mean(0), rtol=1e-14, atol=0)
    torch.testing.assert_close(learnt.std, x.std(0, correction=0), rtol=1e-7, atol=0)
    assert learnt.count == 400
    shifted = learnt.normalise(x)
    assert shifted.mean(0).abs().max() < 1e-6
    torch.testing.assert_close(learnt.denormalise(shifted), x)


@pytest.mark.parametrize(
    ("shape", "axes"), [((), (0, 1, 2, 3)), ((6,), (0, 1, 2)), ((3, 1, 1), (0, 2, 3)), ((3, 5, 6), (0,))]
)
def test_chosen_axes(shape, axes):
    x = torch.randn(4, 3, 5, 6)
    learnt = Normaliser(shape)
    learnt.update(x[:1])
    learnt.update(x[1:])
    torch.testing.assert_close(learnt.mean, x.double().mean(axes).reshape(shape))
    assert learnt(x).dtype == torch.float32
    torch.testing.assert_close(learnt(x).mean(axes), torch.zeros_like(x.mean(axes)), atol=1e-6, rtol=0)
    learnt.update(x[0])
    assert learnt.count == (4 * 3 * 5 * 6 + 3 * 5 * 6) // max(torch.Size(shape).numel(), 1)


@pytest.mark.parametrize("as_file", [lambda learnt: learnt, torch.jit.script])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_integers_are_shifted_and_scaled_as_the_numbers_that_they_are(as_file):
    learnt = Normaliser(1)
    learnt.update(torch.tensor([[0.25], [0.75]]))
    of_integers = as_file(learnt)
    assert of_integers(torch.tensor([[1]], dtype=torch.int32)).item() == 2.0
    assert of_integers.denormalise(torch.tensor([[2]])).item() == 1.0
    assert of_integers(torch.tensor([[1j]])).dtype == torch.complex64


def test_what_never_varies_is_not_blown_up():
    learnt = Normaliser(2)
    for _ in range(100):
        learnt.update(torch.tensor([[300.1, 1.0], [300.1, 2.0]]))
    assert learnt.std[0] == 1
    assert learnt(torch.tensor([[300.1, 1.5]])).abs().max() < 1e-4


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_what_varies_in_any_precision_is_scaled_by_it(dtype):
    learnt, x = Normaliser(3), batches(0.0, 1000)[:, 1]
    x = torch.stack([280 + 15 * x, torch.full_like(x, 280.7), 0.01 * x], 1).to(dtype)
    learnt.update(x)
    torch.testing.assert_close(learnt.std[[0, 2]], x[:, [0, 2]].double().std(0, correction=0))
    assert learnt.std[1] == 1 and learnt.std[0] > 10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_varies_by_rounding_alone_is_constant(dtype):
    learnt, constant = Normaliser(1), torch.tensor(280.0, dtype=dtype)
    beside = torch.nextafter(constant, torch.tensor(300.0, dtype=dtype))
    learnt.update(torch.stack([constant, beside]).reshape(2, 1))
    assert learnt.std == 1


def test_nothing_is_changed_before_anything_was_learnt():
    assert torch.equal(Normaliser(2)(torch.eye(2)), torch.eye(2))


def test_what_does_not_fit_is_refused_and_nothing_learnt_of_it(fails):
    learnt = Normaliser(4)
    learnt.update(batches())
    before = {name: each.clone() for name, each in learnt.state_dict().items()}
    with fails("SHAPE", "(10, 3)", "(4,)"):
        learnt.update(torch.zeros(10, 3))
    with fails("DTYPE", "torch.int64"):
        learnt.update(torch.zeros(10, 4, dtype=torch.int64))
    with fails("ARGUMENT", "column 2"):
        learnt.update(torch.tensor([[0.0, 0.0, float("nan"), 0.0]]))
    torch.testing.assert_close(dict(learnt.state_dict()), before, rtol=0, atol=0, equal_nan=True)


def test_frozen_statistics_stay_and_drift_is_told_once_per_column():
    learnt = Normaliser(3, window=100, drift=1.0)
    learnt.update(batches(columns=3))
    mean = learnt.mean.clone()
    learnt.freeze()
    steady, moved = batches(columns=3), batches(columns=3)
    moved[:, 1] += 1.5
    for batch in steady.split(30):
        learnt.update(batch)
    with pytest.warns(FtnPytorchWarning, match="column 1 has drifted.* off by up to 1.") as told:
        for batch in moved.split(30):
            learnt.update(batch)
    assert len(told) == 1
    moved[:, 2] += 500
    with pytest.warns(FtnPytorchWarning, match="column 2 has drifted") as told:
        for batch in moved.split(30):
            learnt.update(batch)
    assert len(told) == 1
    assert torch.equal(learnt.mean, mean)
    learnt.freeze(False).update(moved)
    assert not torch.equal(learnt.mean, mean)


def test_it_is_exported_with_the_network_that_holds_it():
    layer = Normaliser(4)
    layer.update(batches())
    net = torch.nn.Sequential(layer, torch.nn.Linear(4, 1))
    x = torch.randn(5, 4)
    scripted, stream = torch.jit.script(net), io.BytesIO()
    torch.jit.save(scripted, stream)
    stream.seek(0)
    torch.testing.assert_close(torch.jit.load(stream)(x), net(x))
    torch.testing.assert_close(torch.jit.script(layer).denormalise(x), layer.denormalise(x))
    torch.testing.assert_close(torch.export.export(net, (x,)).module()(x), net(x))


def test_how_far_the_latest_window_is_off():
    learnt = Normaliser(3, window=100, drift=5.0)
    learnt.update(batches(columns=3))
    assert learnt.drifted.isnan()
    learnt.freeze()
    moved = batches(columns=3)
    moved[:, 1] += 2.5
    learnt.update(moved[:60])
    assert learnt.drifted.isnan(), "no window is complete"
    learnt.update(moved[60:])
    assert 2 < learnt.drifted < 3
    again = Normaliser(3)
    again.load_state_dict(learnt.state_dict())
    assert again.drifted == learnt.drifted
    assert learnt.freeze(False).drifted.isnan()


def test_states_without_the_drift_are_read(fails):
    learnt = Normaliser(4)
    learnt.update(batches())
    net = torch.nn.Sequential(learnt, torch.nn.Linear(4, 1))
    state = net.state_dict()
    del state["0.drifted"]
    other = torch.nn.Sequential(Normaliser(4), torch.nn.Linear(4, 1))
    other.load_state_dict(state)
    assert torch.equal(other[0].std, learnt.std) and other[0].drifted.isnan()
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({})
