# SPDX-License-Identifier: MIT
"""Of recordings that a file cannot tell apart it gets the one that holds, and none that a script would not use."""

import os

import pytest

from ftn_pytorch import load_recording, recorded, save_recording
from ftn_pytorch.checkpoint import file
from ftn_pytorch.errors import FtnPytorchError

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("extension")

nn = torch.nn
X = torch.arange(12.0).reshape(4, 3)


def ready(function, *args, calls=8):
    for _ in range(calls):
        function(*args)
    assert function.recording.is_ready, function.recording.obstacle
    return function


@pytest.fixture
def save(tmp_path):
    """save(function, **names): what is read from the file of a function."""

    def save(function, **names):
        return load_recording(save_recording(str(tmp_path / "net.ftr"), {"step": function}, names))

    return save


def made():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    return net, recorded(lambda x: net(x))


def test_the_one_that_holds_now(save):
    net, apply = made()
    for is_training in (True, False):
        net.train(is_training)
        ready(apply, X)
    for is_training in (True, False, True):
        net.train(is_training)
        saved = save(apply, net=net)
        assert len(saved.described("step")) == 1
        assert torch.equal(saved.call("step", X), saved.call("step", X)) != is_training


def test_modes_of_torch(save):
    net = nn.Linear(3, 2)
    apply = recorded(lambda x: net(x))
    ready(apply, X)
    for _ in range(8):
        with torch.autocast("cpu", torch.bfloat16):
            apply(X)
    with torch.autocast("cpu", torch.bfloat16):
        assert save(apply, net=net).call("step", X).dtype == torch.bfloat16
    assert save(apply, net=net).call("step", X).dtype == torch.float32


def test_none_holds(tmp_path):
    held, net = {"scale": 1.0}, nn.Linear(3, 2)
    apply = recorded(lambda x: net(x) * held["scale"])
    for held["scale"] in (2.0, 3.0):
        ready(apply, X)
    held["scale"] = 4.0
    path = str(tmp_path / "net.ftr")
    with pytest.raises(FtnPytorchError, match="2 recordings for the same arguments, .* none holds now") as failure:
        save_recording(path, {"step": apply}, {"net": net})
    assert failure.value.status == "HOOK" and not os.path.exists(path)


def test_one_alone_is_saved_as_it_was_recorded(save):
    """As that of evaluation mode, which a script leaves when it trains."""
    net, apply = made()
    net.eval()
    expected = ready(apply, X)(X)
    net.train()
    assert torch.equal(save(apply, net=net).call("step", X), expected)


def replace_a_layer(net):
    net[0] = nn.Linear(3, 4)


def replace_a_parameter(net):
    net[0].weight = nn.Parameter(torch.ones(4, 3))


def replace_memory(net):
    net[0].weight.data = torch.ones(4, 3)


def change_the_default(net):
    torch.set_default_dtype(torch.float64)


@pytest.mark.parametrize(
    "change, reason",
    [
        (replace_a_layer, "is another one since it was recorded: call it again"),
        (replace_a_parameter, "is another one since it was recorded: call it again"),
        (replace_memory, "a tensor has other memory since it was recorded: call it again"),
        (change_the_default, r"recorded with the default type torch.float32, which is another one now"),
    ],
)
def test_what_the_script_would_not_use_any_more(change, reason, tmp_path):
    net, apply = made()
    ready(apply, X)
    path = str(tmp_path / "net.ftr")
    try:
        change(net)
        with pytest.raises(FtnPytorchError, match=reason):
            save_recording(path, {"step": apply}, {"net": net})
    finally:
        torch.set_default_dtype(torch.float32)
    assert not os.path.exists(path)


def add(x, y):
    y += 1
    return x + y


def test_arguments_that_are_one_tensor(save):
    apply, x = recorded(add), torch.zeros(2)
    ready(apply, x, x)
    saved = save(apply)
    assert saved.described("step") == ["x float32 (2), y the same tensor as x"]
    assert saved.call("step", x.zero_(), x).tolist() == [2, 2]
    with pytest.raises(FtnPytorchError, match="y the same tensor as x") as failure:
        saved.call("step", x, torch.zeros(2))
    assert failure.value.status == "ARGUMENT"
    saved = save(ready(recorded(add), x, torch.zeros(2)))
    assert saved.call("step", x.zero_(), torch.zeros(2)).tolist() == [1, 1]
    assert saved.call("step", x.zero_(), x).tolist() == [2, 2]


def test_strides_have_recordings_of_their_own(save):
    apply = recorded(lambda x: (x.stride(0) * x).t().contiguous() if x.is_contiguous() else x * 10)
    ready(apply, X)
    one = save(apply)
    assert torch.equal(one.call("step", X.t().contiguous().t()), (3 * X).t())
    ready(apply, X.t().contiguous().t())
    both = save(apply)
    assert torch.equal(both.call("step", X.t().contiguous().t()), X * 10)
    assert torch.equal(both.call("step", X), (3 * X).t())


def test_an_input_that_is_written_in_other_strides(save):
    saved = save(ready(recorded(lambda x: x.mul_(2).sum()), X.clone()))
    x = X.t().clone().t()
    assert saved.call("step", x) == 2 * X.sum() and torch.equal(x, 2 * X)


@pytest.mark.parametrize("value, other", [(0.0, -0.0), (-0.0, 0.0), (float("nan"), 1.0)])
def test_constants_are_compared_bit_for_bit(save, value, other):
    apply = ready(recorded(lambda x, scale: x * scale), X, value)
    saved = save(apply)
    assert saved.call("step", X, value).numpy().tobytes() == apply(X, value).numpy().tobytes()
    with pytest.raises(FtnPytorchError) as failure:
        saved.call("step", X, other)
    assert failure.value.status == "ARGUMENT"


class Model:
    def __init__(self, scale):
        self.net, self.scale = nn.Linear(3, 2), scale

    @recorded
    def step(self, x):
        return self.net(x) * self.scale


def test_a_method_is_saved_for_one_object(save):
    one, two, three = Model(2.0), Model(3.0), Model(4.0)
    for _ in range(8):
        expected = [each.step(X) for each in (one, two)]
    for each, wanted in zip((one, two), expected):
        saved = save(each.step, model=each)
        assert saved.described("step") == ["x float32 (4, 3)"]
        assert torch.equal(saved.call("step", X), wanted)
    with pytest.raises(FtnPytorchError, match="recorded for other objects of its class"):
        save(three.step, model=three)


def test_a_network_has_no_names_around_it(tmp_path):
    net = nn.Linear(3, 2)
    apply = ready(recorded(net), X)
    with pytest.raises(FtnPytorchError, match="save_recording needs names=") as failure:
        save_recording(str(tmp_path / "net.ftr"), {"step": apply})
    assert failure.value.status == "ARGUMENT"
    saved = load_recording(save_recording(str(tmp_path / "net.ftr"), {"step": apply}, {"net": net}))
    assert torch.equal(saved.call("step", X), apply(X))


def collect_of(net):
    def collect(x):
        loss = net(x).square().mean()
        loss.backward()
        return loss

    return recorded(collect)


def test_gradients_that_are_added_to(save, tmp_path):
    net = nn.Linear(3, 1)
    collect = ready(collect_of(net), X)
    saved = save(collect, net=net)
    for _ in range(3):
        assert torch.equal(saved.call("step", X), collect(X))
    for name, parameter in net.named_parameters():
        assert torch.equal(saved.arrays[f"net/{name} (its gradient)"], parameter.grad)
    content, path = torch.load(saved.path, weights_only=True), str(tmp_path / "without_one.ftr")
    del content["arrays"]["net/bias (its gradient)"]
    file.write(path, file.description(saved.path), lambda stream: torch.save(content, stream), file.RECORDING)
    with pytest.raises(FtnPytorchError, match="gradients are not set as they were") as failure:
        load_recording(path).call("step", X)
    assert failure.value.status == "HOOK"
    net.zero_grad()
    with pytest.raises(FtnPytorchError, match="no longer those with which it was recorded"):
        save(collect, net=net)


def test_gradients_that_are_set_are_part_of_the_state_from_the_start(save, tmp_path):
    """Of a script that takes them away by itself, and of a function that does."""
    from ftn_pytorch import Checkpoint

    net = nn.Linear(3, 1)
    kept = Checkpoint(net=net)

    def slope(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    def forget(x):
        net.zero_grad()
        return net(x)

    slope, forget = recorded(slope), recorded(forget)
    for _ in range(9):
        net.zero_grad()
        slope(X)
    for _ in range(9):
        slope(X)
        forget(X)
    slope(X)
    gradients = [each.grad.clone() for each in net.parameters()]
    net.zero_grad()
    path = save_recording(str(tmp_path / "both.ftr"), {"slope": slope, "forget": forget}, {"net": net})
    saved = load_recording(path)
    assert not [name for name in saved.arrays if "gradient" in name]
    saved.call("slope", X)
    saved.save(str(tmp_path / "with.ckpt"))
    saved.call("forget", X)
    saved.save(str(tmp_path / "without.ckpt"))
    kept.restore(str(tmp_path / "with.ckpt"))
    assert all(map(torch.equal, gradients, [each.grad for each in net.parameters()]))
    kept.restore(str(tmp_path / "without.ckpt"))
    assert all(each.grad is None for each in net.parameters())


def test_pieces_of_one_memory_have_gradients_of_their_own(save):
    flat = torch.arange(6.0)
    one, two = (nn.Parameter(flat[3 * place : 3 * place + 3]) for place in range(2))

    def slope(x):
        one.grad = two.grad = None
        ((x * one).sum() + 2 * (x * two).sum()).backward()
        return x.sum()

    saved = save(ready(recorded(slope), X), one=one, two=two)
    saved.call("step", X)
    for name, parameter in (("one", one), ("two", two)):
        assert torch.equal(saved.arrays[f"{name} (its gradient)"], parameter.grad)


def test_a_state_without_tensors(save, tmp_path):
    saved = save(ready(recorded(lambda x: x * 2), X), steps=[1, 2])
    assert torch.equal(saved.call("step", X), 2 * X)
    saved.save(str(tmp_path / "steps.ckpt"))
    saved.restore(str(tmp_path / "steps.ckpt"))
    assert torch.equal(load_recording(saved.save_recording(str(tmp_path / "again.ftr"))).call("step", X), 2 * X)


def test_memory_that_is_seen_as_another_type(save, tmp_path):
    numbers = torch.arange(3.0)
    view = numbers.view(torch.int32)
    path = str(tmp_path / "net.ftr")
    apply = ready(recorded(lambda x: x * numbers + view), X)
    with pytest.raises(FtnPytorchError, match="it sees memory of torch.float32 as torch.int32"):
        save_recording(path, {"step": apply}, {"numbers": numbers})
    assert not os.path.exists(path)
