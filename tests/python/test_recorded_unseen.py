# SPDX-License-Identifier: MIT
"""Torch computes as it does without a recorder, and what a recording cannot do again is refused with its reason."""

import contextlib
import weakref

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

X = torch.arange(6.0).reshape(2, 3)
CALLS = 12


def slope_of_max(x):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (-w.max() * x.sum()).backward()
    return w.grad


def singular_values(x):
    return torch.linalg.svdvals(x @ x.mT + torch.ones(2, 2) / 3)


def encoded(x):
    with torch.no_grad():
        return encoder(x.flatten().repeat(7)[:40].sin().view(1, 5, 8))


torch.manual_seed(0)
encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()


@pytest.mark.parametrize("function", [slope_of_max, singular_values, encoded])
def test_what_torch_computes_otherwise_under_a_recorder(function):
    """Calls that are compared have the bits of plain torch; the one that is recorded, and the one that looks for the
    reason, may not."""
    apply, bits = recorded(function), lambda tensor: tensor.view(torch.int32)
    with pytest.warns(FtnPytorchWarning, match="torch computes otherwise while it is recorded"):
        same = [torch.equal(bits(apply(X)), bits(function(X))) for _ in range(CALLS)]
    assert sum(same) >= CALLS - 2 and same[3] and all(same[5:])


def test_a_tolerance_allows_for_it():
    apply = recorded(singular_values, tolerance=1e-5)
    for _ in range(CALLS):
        apply(X)
    assert apply.recording.is_ready, apply.recording.obstacle


total = torch.zeros(())


def caught_after_a_write(x):
    total.add_(1)
    try:
        return torch.linalg.cholesky(x)
    except RuntimeError:
        return x * total


def cleared_after_a_random_number(x):
    noise = torch.rand(3)
    try:
        return x + noise
    finally:
        total.zero_()


def suppressed_after_a_write(x):
    total.add_(1)
    with contextlib.suppress(RuntimeError):
        x = torch.linalg.cholesky(x)
    return x * total


@pytest.mark.parametrize("function", [caught_after_a_write, cleared_after_a_random_number, suppressed_after_a_write])
def test_a_failure_that_is_caught_after_a_change(function):
    apply = recorded(function)
    with pytest.warns(FtnPytorchWarning, match=r"it catches what fails in aten\.\w+.*, after it has changed something"):
        for call in range(CALLS):
            total.zero_()
            apply(torch.eye(3) if call < 8 else -torch.eye(3))


def test_a_failure_that_is_caught_before_any_change():
    @recorded
    def root(x):
        try:
            return torch.linalg.cholesky(x)
        except RuntimeError:
            return torch.linalg.cholesky(x + 2 * torch.eye(3))

    for call in range(CALLS):
        assert torch.equal(root(torch.eye(3) if call < 8 else -torch.eye(3)), torch.eye(3))
    assert root.recording.is_ready


def test_an_operator_whose_result_is_not_used_may_fail():
    @recorded
    def step(x, rows):
        x[rows]
        return x * 2

    for _ in range(CALLS):
        step(X, torch.tensor([0, 1]))
    assert step.recording.is_ready
    with pytest.raises(IndexError):
        step(X, torch.tensor([0, 9]))


def test_a_tensor_of_a_recording_may_be_swapped():
    one, other = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    apply = recorded(lambda x: one(x))
    for call in range(2 * CALLS):
        if call == CALLS:
            assert apply.recording.is_ready
            torch.utils.swap_tensors(one.weight, other.weight)
        assert torch.equal(apply(X), one(X))
    assert apply.recording.is_ready


class Thing:
    factor = 2.0


thing = Thing()
weak = weakref.ref(thing)


def through_a_weak_reference(x):
    return x * (weak().factor if weak() is not None else 1.0)


def by_a_weak_and_a_strong_name(x):
    return x * (weak().factor if weak() is thing else 1.0)


def test_weak_references():
    apply = recorded(through_a_weak_reference)
    with pytest.warns(FtnPytorchWarning, match="weak is a weak reference to what a recording would keep alive"):
        assert all(torch.equal(apply(X), X * 2) for _ in range(CALLS))
    apply = recorded(by_a_weak_and_a_strong_name)
    assert all(torch.equal(apply(X), X * 2) for _ in range(CALLS)) and apply.recording.is_ready


def with_a_default(x):
    return x * getattr(x, "factor", 2.0)


def test_an_attribute_that_arguments_get_later():
    apply = recorded(with_a_default)
    for call in range(2 * CALLS):
        x = X.clone()
        if call >= CALLS:
            assert call > CALLS or apply.recording.is_ready
            x.factor = 3.0
        assert torch.equal(apply(x), with_a_default(x))


class Doubling(torch.Tensor):
    """A class of a user: Python multiplies by this method, and not by that of torch."""

    def __mul__(self, factor):
        return torch.Tensor.mul(self, 2 * factor)


CLASSES = {
    lambda x: x.as_subclass(Doubling): lambda x: x * 3,
    lambda x: torch.nn.Parameter(x, requires_grad=False): lambda x: x * (3 if type(x) is torch.Tensor else 2),
    torch.nn.Buffer: lambda x: x * (2 if isinstance(x, torch.nn.Buffer) else 3),
}


@pytest.mark.parametrize("of_class", CLASSES, ids=["of a user", "Parameter", "Buffer"])
@pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning")
def test_an_argument_that_is_of_another_class_later(of_class):
    """It has methods of its own, and code may ask for its class, although shape and type are those of the others."""
    function = CLASSES[of_class]
    apply = recorded(function)
    for call in range(3 * CALLS):
        assert call < CALLS or call >= 2 * CALLS or apply.recording.is_ready
        x = of_class(X + call) if call >= 2 * CALLS else X + call
        assert torch.equal(apply(x), function(x)), call


class Scaled(torch.Tensor):
    factor = 2.0

    def scale(self, x):
        return x * self.factor


scaled = torch.ones(3).as_subclass(Scaled)


def test_a_class_of_a_tensor_in_a_name(monkeypatch):
    """What its fields are is asked of the class, and no operator is given the tensor."""
    apply = recorded(lambda x: scaled.scale(x))
    for call in range(2 * CALLS):
        monkeypatch.setattr(Scaled, "factor", 2.0 + call // CALLS)
        assert torch.equal(apply(X), X * Scaled.factor)
        assert call != CALLS - 1 or apply.recording.is_ready


kept = torch.get_rng_state()


def toggle(x):
    torch.set_grad_enabled(not torch.is_grad_enabled())
    return x * 2


def seed(x):
    torch.manual_seed(3)
    return x * 2


def put_back(x):
    torch.set_rng_state(kept)
    return x * 2


def set_threads(x):
    torch.set_num_threads(3)
    return x * 2


def flush(x):
    torch.set_flush_denormal(True)
    return x * 2


LEFT = {
    toggle: (torch.is_grad_enabled, "leaves torch in another mode"),
    seed: (lambda: torch.rand(1).item(), "manual_seed"),
    put_back: (lambda: torch.rand(1).item(), "set_state"),
    set_threads: (torch.get_num_threads, "set_num_threads"),
    flush: (lambda: (torch.tensor(1e-41) * 1).item(), "set_flush_denormal"),
}


@pytest.mark.parametrize("function", LEFT, ids=[each.__name__ for each in LEFT])
def test_a_setting_that_is_left_behind(function):
    """It is there after each call, as after the function itself, whatever was between two calls."""
    apply = recorded(function)
    ask, text = LEFT[function]
    threads = torch.get_num_threads()
    found = {}
    try:
        with pytest.warns(FtnPytorchWarning, match=text):
            for step in (function, apply):
                torch.manual_seed(1)
                torch.set_num_threads(1)
                torch.set_grad_enabled(True)
                found[step] = []
                for _ in range(3 * CALLS):
                    torch.set_num_threads(1)
                    torch.set_flush_denormal(False)
                    step(X)
                    found[step].append(ask())
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)
        torch.set_grad_enabled(True)
    assert found[apply] == found[function]


def test_a_checkpoint_of_activations_is_recorded():
    """torch puts the generator back by itself, as it was before the call."""
    net = torch.nn.Linear(3, 3)
    apply = recorded(lambda x: torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False))
    for _ in range(CALLS):
        apply(X)
    assert apply.recording.is_ready


def checkpointed(x):
    y = torch.utils.checkpoint.checkpoint(torch.nn.functional.dropout, weight * x, use_reentrant=False)
    return torch.autograd.grad(y.sum(), weight)[0]


def forked(x):
    with torch.random.fork_rng():
        return torch.nn.functional.dropout(x)


weight = torch.ones(3, requires_grad=True)


@pytest.mark.parametrize("function", [checkpointed, forked])
def test_numbers_that_torch_draws_again_are_refused(function):
    apply = recorded(function)
    with pytest.warns(FtnPytorchWarning, match=": torch sets random numbers back, as a checkpoint of act"):
        for _ in range(CALLS):
            apply(X)


def test_a_class_that_tells_its_layout_by_itself():
    """As torch.masked does: what a tensor is asked for is no operator of the dispatcher."""

    @recorded
    def total(x):
        return torch.masked.masked_tensor(x, x > 2).sum().get_data()

    with pytest.warns(FtnPytorchWarning, match="it uses tensors of the class MaskedTensor"):
        assert [total(X).item() for _ in range(CALLS)] == [12.0] * CALLS


REFUSED = {
    lambda x: x * x.storage_offset(): "it asks an argument for storage_offset",
    lambda x: x * (x._base is None): "it asks an argument for _base",
    lambda x: x[1:] * (x[1:].data_ptr() > 0): "it asks an argument for data_ptr",
    lambda x: x * (x.grad is None): "it asks an argument for grad",
    lambda x: x * x._is_view(): "it asks an argument for _is_view",
    lambda x: x * hash(x.untyped_storage()): "it uses the memory of a tensor",
}


@pytest.mark.parametrize("function", REFUSED, ids=REFUSED.values())
def test_what_an_argument_is_asked_for(function):
    apply = recorded(function)
    with pytest.warns(FtnPytorchWarning, match=REFUSED[function]):
        for _ in range(CALLS):
            apply(X)


@pytest.mark.parametrize("name", ["is_leaf", "grad_fn", "retains_grad"])
def test_what_autograd_knows_of_an_argument(name):
    """Where no gradients are recorded, one that requires them may be computed, or not."""
    apply = recorded(lambda x: x * (2 if getattr(x, name) else 3))
    with pytest.warns(FtnPytorchWarning, match=f"it asks an argument for {name}"), torch.no_grad():
        for call in range(CALLS):
            apply((X + call).requires_grad_())


FITTING = {
    lambda x: x.shape[0] * x.numel() * x: "shape",
    lambda x: x * x.dim() if x.is_contiguous() and x.requires_grad is False else x: "looks",
    lambda x: x.new_zeros(x.shape, dtype=x.dtype) + x.to(x.device): "type",
    lambda x: x.contiguous() * len(x): "itself",
    lambda x: x * (2 if x.is_leaf and x.grad_fn is None else 3): "no gradients",
    lambda x: torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]: "in a transform",
}


@pytest.mark.parametrize("function", FITTING, ids=FITTING.values())
def test_what_all_arguments_of_a_recording_answer(function):
    apply = recorded(function)
    for call in range(CALLS):
        assert torch.equal(apply(X + call), function(X + call))
    assert apply.recording.is_ready


table = {X: 2.0}
several = [torch.ones(2, 3), X]
holder = Thing()
holder.array = X
OF_NAMES = {
    lambda x: x * (2 if x is X else 3): "a name",
    lambda x: x * (2 if any(x is each for each in several) else 3): "a list",
    lambda x: x * table.get(x, 3.0): "a key",
    lambda x: x * (2 if x is holder.array else 3): "a field",
}


@pytest.mark.parametrize("function", OF_NAMES, ids=OF_NAMES.values())
@pytest.mark.parametrize("is_first", [True, False])
def test_an_argument_that_is_what_a_name_leads_to(function, is_first):
    """Shape and numbers do not tell whether it is that very tensor."""
    apply = recorded(function)
    for call in range(3 * CALLS):
        x = X if is_first == (call < 2 * CALLS) else X.clone()
        assert torch.equal(apply(x), function(x)), call
        assert call != 2 * CALLS - 1 or apply.recording.is_ready
