# SPDX-License-Identifier: MIT
"""Functions that cannot be recorded go on as they are, and one sentence says why."""

import ctypes

import pytest

torch = pytest.importorskip("torch")

import program  # noqa: E402
from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import comparison, extension  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

X = torch.arange(6.0).reshape(2, 3)
CALLS = 12


pytestmark = pytest.mark.usefixtures("extension")


def item(x):
    return x * x.sum().item()


def branch(x):
    return x if x.sum() > 3 else -x


def listed(x):
    return x * max(x.flatten().tolist())


def traced(x):
    return traced_net(x)


def from_a_table(x):
    return x * table[3]


def chosen(x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def selected(x):
    return x[x > 2].sum()


def reshaped(x):
    y = x.detach()
    y.t_()
    return y * 2


counter = 0
history = []
seen = {}
rows = torch.zeros(1)
table = [float(each) for each in range(2000)]
traced_net = torch.jit.trace(torch.nn.Linear(3, 1), X)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


def counts(x):
    global counter
    counter += 1
    return x * counter


def appends(x):
    history.append(x.sum())
    return x * 2


def rebinds(x):
    global rows
    rows = rows + x.sum()
    return rows * 1


def fills(x):
    seen["last"] = x * 2
    return x * 3


def schedules(x):
    optimizer.zero_grad()
    loss = net(x).sum()
    loss.backward()
    optimizer.step()
    schedule.step()
    return loss


class Odd:
    pass


def strange_result(x):
    return Odd()


def not_a_result_of_torch(x):
    return torch.frombuffer(bytearray(8), dtype=torch.float32)


def stepping_with_a_closure(x):
    def closure():
        optimizer.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        return loss

    return optimizer.step(closure)


REASONS = {
    item: ("test_recorded_refused.py:", "a number is taken out of a tensor"),
    branch: ("test_recorded_refused.py:", "a number is taken out of a tensor"),
    listed: ("test_recorded_refused.py:", "a number is taken out of a tensor (Tensor.tolist)"),
    traced: ("traced_net is a TorchScript model",),
    from_a_table: ("table has more than 1000 items",),
    chosen: ("chosen calls torch.cond",),
    selected: ("the shape of a result depends on numbers in tensors",),
    reshaped: ("the shape of a tensor is changed in place",),
    counts: ("it changes counter", "before a call"),
    appends: ("it changes len(history)",),
    rebinds: ("it changes rows",),
    fills: ("it changes seen['last']",),
    schedules: ("it changes schedule.last_epoch (4 before a call, 5 after it)",),
    strange_result: ("it returns a Odd",),
    not_a_result_of_torch: ("no recorded operation has made",),
    stepping_with_a_closure: ("the step of SGD is given a closure",),
}


@pytest.mark.parametrize("function", REASONS, ids=lambda function: function.__name__)
def test_reasons(function):
    apply = recorded(function)
    with pytest.warns(FtnPytorchWarning) as caught:
        results = [apply(X) for _ in range(CALLS)]
    (text,) = [str(each.message) for each in caught if issubclass(each.category, FtnPytorchWarning)]
    assert text.startswith(f"{function.__name__} is not recorded: ")
    for piece in REASONS[function]:
        assert piece in text
    assert apply.recording.obstacle and not apply.recording.is_ready
    if function is item:
        assert all(torch.equal(each, X * 15) for each in results)


def test_every_call_of_a_function_that_counts_is_made_once():
    global counter
    counter = 0
    apply = recorded(counts)
    with pytest.warns(FtnPytorchWarning):
        assert [apply(torch.ones(1)).item() for _ in range(CALLS)] == list(range(1, CALLS + 1))


def test_hooks():
    inner = torch.nn.Linear(3, 1)
    inner.register_forward_hook(lambda module, args, result: result * 2)
    apply = recorded(lambda x: inner(x))
    with pytest.warns(FtnPytorchWarning, match="a hook of Linear would not be called"):
        for _ in range(CALLS):
            assert torch.equal(apply(X), inner(X))
    weight = torch.nn.Linear(3, 1)
    weight.weight.register_hook(lambda gradient: gradient * 2)
    made = torch.optim.SGD(weight.parameters(), lr=0.1)

    @recorded
    def step(x):
        made.zero_grad()
        loss = weight(x).sum()
        loss.backward()
        made.step()
        return loss

    with pytest.warns(FtnPytorchWarning, match="a hook of a parameter"):
        for _ in range(CALLS):
            step(X)


def test_an_optimizer_that_nothing_leads_to():
    inner = torch.nn.Linear(3, 1)
    made = torch.optim.SGD(inner.parameters(), lr=0.1)
    hidden = {"made": made}

    def step(x):
        hidden["made"].zero_grad()
        loss = inner(x).sum()
        loss.backward()
        hidden["made"].step()
        return loss

    apply = recorded(step, ignore=["hidden"])
    with pytest.warns(FtnPytorchWarning, match="give it as optimizer="):
        for _ in range(CALLS):
            apply(X)
    apply = recorded(optimizer=made, ignore=["hidden"])(step)
    for _ in range(CALLS):
        apply(X)
    assert apply.recording.is_ready


def test_a_parameter_that_nothing_leads_to():
    hidden = {"weight": torch.nn.Parameter(torch.ones(3))}
    apply = recorded(lambda x: x * hidden["weight"], ignore=["hidden"])
    with pytest.warns(
        FtnPytorchWarning, match="a parameter that no operator has made and that none of its names leads to"
    ):
        for _ in range(CALLS):
            apply(X)


def test_numbers_that_change_in_each_call():
    apply = recorded(lambda x, dt: x * dt)
    with pytest.warns(FtnPytorchWarning, match="other shapes, types or values in each call"):
        for call in range(40):
            assert torch.equal(apply(X, call / 10), X * (call / 10))


def test_what_is_computed_out_of_sight_shows_when_it_is_checked():
    """Others write the memory of tensors, which torch does not see."""

    def step(x):
        doubled = x * 2
        ctypes.memmove(doubled.data_ptr(), x.data_ptr(), 8)
        return x * doubled

    apply = recorded(step)
    with pytest.warns(FtnPytorchWarning) as caught:
        for call in range(CALLS):
            x = torch.full((2,), float(call))
            assert torch.equal(apply(x), x * x)
    (text,) = [str(each.message) for each in caught]
    assert "aten.mul.Tensor (test_recorded_refused.py:" in text
    assert (
        "gives [2] beginning with [9.0], and [2] beginning with [18.0] from the recording (they differ by up to 9)"
        in text
    )


def test_other_operators_in_each_call():
    flags = iter([True] * 4 + [False] * 20)

    def step(x):
        return x + 1 if next(flags) else x - 1

    apply = recorded(step, ignore=["flags"])
    with pytest.warns(FtnPytorchWarning, match=r"aten.add.Tensor \(test_recorded_refused.py:\d+\) is no longer called"):
        results = [apply(torch.zeros(1)).item() for _ in range(8)]
    assert results == [1] * 4 + [-1] * 4, "it is called once in each call"


def test_names_that_are_bound_anew_in_each_call():
    holder = {"net": torch.nn.Linear(3, 1)}
    apply = recorded(lambda x: holder["net"](x))
    with pytest.warns(FtnPytorchWarning, match="what it uses changes from call to call: holder\\['net'\\] is another"):
        for _ in range(150):
            if apply.recording.is_ready or apply.recording.operations:
                holder["net"] = torch.nn.Linear(3, 1)
            assert torch.equal(apply(X), holder["net"](X))


def test_a_tolerance_lets_small_differences_pass():
    noise = iter([0.0] * 4 + [1e-7] * 100)

    def step(x):
        return x * torch.tensor(1 + next(noise), dtype=torch.float64)

    x = torch.ones(3, dtype=torch.float64)
    strict, loose = recorded(step, ignore=["noise"]), recorded(step, tolerance=1e-5, ignore=["noise"])
    with pytest.warns(FtnPytorchWarning, match="from the recording"):
        for _ in range(8):
            strict(x)
    for _ in range(8):
        loose(x)
    assert loose.recording.is_ready


def test_an_operator_that_adds_up_in_no_fixed_order(monkeypatch):
    """Played: what others write makes the difference, and each time that the recording is made again gives another."""
    run, times = comparison._run, iter(range(1000))

    def step(x):
        doubled = x * 2
        ctypes.memmove(doubled.data_ptr(), x.data_ptr(), 8)
        return x * doubled

    monkeypatch.setattr(comparison, "_run", lambda operation, slots: run(operation, slots) + 1e-3 * next(times))
    apply = recorded(step)
    with pytest.warns(FtnPytorchWarning, match=r"mul.Tensor \(.*:\d+\) gives other numbers each time .*tolerance="):
        for call in range(CALLS):
            apply(torch.full((2,), float(call)))


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((3,), "recorded is given a int, which cannot be called"),
        ((len, {"checks": -1}), "must not be negative"),
        ((len, {"tolerance": -1.0}), "must not be negative"),
        ((len, {"ignore": "self.history"}), "ignore='self.history' must be a list of names"),
    ],
)
def test_arguments(fails, arguments, text):
    with fails("ARGUMENT", text):
        recorded(arguments[0], **(arguments[1] if len(arguments) > 1 else {}))


def test_without_the_extension(monkeypatch):
    monkeypatch.setattr(extension._Found, "module", None)
    monkeypatch.setattr(extension._Found, "obstacle", "it is not there")
    apply = recorded(lambda x: x * 2)
    with pytest.warns(FtnPytorchWarning, match="is not recorded: it is not there"):
        for _ in range(CALLS):
            assert torch.equal(apply(X), X * 2)


def test_an_extension_for_another_torch(python):
    code = """
        import torch
        torch.__version__ = "1.0.0"
        from ftn_pytorch.recording import extension as library
        print(library.module(), library.obstacle())
    """
    found = python(code, warm=True)
    assert found.startswith("None") and "it was built for torch 2" in found and "this is torch 1.0.0" in found


def test_an_extension_that_is_missing(monkeypatch, tmp_path):
    from ftn_pytorch.system import installation

    monkeypatch.setattr(extension._Found, "module", None)
    monkeypatch.setattr(extension._Found, "obstacle", None)
    monkeypatch.setattr(installation, "library", lambda: str(tmp_path / "libftn_pytorch.so"))
    assert "is missing: configure the library with -DFTN_PYTORCH_DIRECT=ON" in extension.obstacle()


@pytest.mark.parametrize(
    "text, piece",
    [
        ("import numpy\ndef ftn_pytorch_forward(x): return numpy.add(x, 1)", "uses NumPy, which cannot be recorded"),
    ],
)
def test_record_option(load, fails, text, piece):
    with fails("ARGUMENT", piece):
        load(text, record=True)


TEXT = """
import torch
def ftn_pytorch_forward(x): return x + 2
"""


def test_tolerance_option(load, fails):
    forward = program.function(load(TEXT, record=True, tolerance=1e-6), "ftn_pytorch_forward")
    for _ in range(12):
        assert forward(torch.ones(2)).tolist() == [3, 3]
    assert forward.recording.is_ready, forward.recording.obstacle
    assert forward.recording._tolerance == 1e-6
    with fails("ARGUMENT", "tolerance is 1e-06", "together with record="):
        load(TEXT, tolerance=1e-6)
    for wrong in (-1.0, 1.0, float("nan"), "high"):
        with fails("ARGUMENT", "load(..., tolerance=)", "from 0 to less than 1"):
            load(TEXT, record=True, tolerance=wrong)


def test_record_of_a_saved_model(fails, tmp_path):
    path = str(tmp_path / "net.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(path)
    with fails("ARGUMENT", "is a saved model", "leave out record="):
        program.load_model(path, record=True)


def test_a_hook_is_called_by_its_name(load):
    """What a decorator makes of a network has the name of the decorator's inner function."""
    text = """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x): return x * float(x.sum())
        ftn_pytorch_forward = torch.inference_mode()(Net())
    """
    forward = program.function(load(text, record=True), "ftn_pytorch_forward")
    with pytest.warns(FtnPytorchWarning, match="^ftn_pytorch_forward is not recorded: "):
        for _ in range(12):
            forward(torch.ones(2))
