# SPDX-License-Identifier: MIT
"""Optimizers of torch in checkpoints: states whose next step would fail are refused, and nothing has changed then."""

import pytest

from ftn_pytorch.checkpoint import Checkpoint, optimizers

torch = pytest.importorskip("torch")

OPTIONS = {
    "Adam": {"amsgrad": True},
    "AdamW": {"fused": True},
    "Adagrad": {},
    "Adamax": {},
    "Adadelta": {},
    "NAdam": {"foreach": True},
    "RAdam": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "SGD": {"momentum": 0.9},
    "ASGD": {},
    "Rprop": {},
    "Adafactor": {},
    "LBFGS": {},
}
OF_OTHER_SHAPES = ("Adafactor", "LBFGS")
"""Their states are not of the shapes of parameters."""


def trained(kind, steps=2):
    """Parameters in two groups, one of them without elements in common with the others, and their optimizer."""
    torch.manual_seed(steps)
    net = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Linear(1, 4))
    scale = torch.nn.Parameter(torch.tensor(2.0))
    groups = [{"params": net[0].parameters()}, {"params": [*net[1].parameters(), scale], "lr": 0.02}]
    given = net.parameters() if kind == "LBFGS" else groups
    optimizer = getattr(torch.optim, kind)(given, lr=0.01, **OPTIONS[kind])
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(torch.ones(2, 3)).square().sum() * scale
        loss.backward()
        optimizer.step(*[loss.detach] * (kind == "LBFGS"))
    return {"net": net, "scale": [scale], "optimizer": optimizer}


def tensors_of(named):
    states = [each for state in named["optimizer"].state.values() for each in state.values()]
    return [each.clone() for each in (*named["net"].parameters(), *named["scale"], *states) if torch.is_tensor(each)]


def saved_unseen(monkeypatch, named, path):
    """A file that another version may have written, which did not look at the state."""
    with monkeypatch.context() as patched:
        patched.setattr(optimizers, "misfits_of", lambda *given: ())
        return Checkpoint(named).save(path)


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_state_of_each_is_taken(tmp_path, kind):
    written, here = trained(kind), trained(kind, 0)
    path = Checkpoint(written).save(str(tmp_path / "state"))
    Checkpoint(here).restore(path)
    assert all(map(torch.equal, tensors_of(here), tensors_of(written)))


class Own(torch.optim.Optimizer):
    """Keeps single precision beside weights of any, counts in integers, and a text."""

    def step(self):
        for each in self.param_groups[0]["params"]:
            new = {"master": each.detach().float() + 1e-3, "mask": each.detach() > 0, "at": [torch.tensor(0)]}
            state = self.state[each] = self.state[each] or new
            state["master"] -= self.param_groups[0]["lr"] * each.grad.float() * state["mask"]
            state["at"][0] += 1
            state["is"] = "warm"
            each.data.copy_(state["master"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [torch.optim.NAdam, Own])
def test_a_state_keeps_its_types_beside_weights_of_another(tmp_path, dtype, kind):
    def begun():
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 2).to(dtype)
        return {"net": net, "optimizer": kind(net.parameters(), *[{"lr": 0.01}] * (kind is Own))}

    def steps(net, optimizer):
        for _ in range(5):
            optimizer.zero_grad()
            net(torch.ones(2, 3, dtype=dtype)).square().sum().backward()
            optimizer.step()
        return torch.utils._pytree.tree_leaves(list(optimizer.state.values())), list(net.parameters())

    written, here = begun(), begun()
    steps(**written)
    Checkpoint(here).restore(Checkpoint(written).save(str(tmp_path / "state")))
    for one, other in zip(steps(**written), steps(**here)):
        assert len(one) == len(other)
        for wanted, found in zip(one, other):
            is_tensor = torch.is_tensor(wanted)
            assert (wanted.dtype == found.dtype and torch.equal(wanted, found)) if is_tensor else wanted == found


@pytest.mark.parametrize("kind", sorted(OPTIONS.keys() - set(OF_OTHER_SHAPES)))
@pytest.mark.parametrize("place", [1, 4])
def test_a_state_of_another_shape_is_refused_and_nothing_has_changed(tmp_path, fails, monkeypatch, kind, place):
    written, here = trained(kind), trained(kind)
    state = list(written["optimizer"].state.values())[place]
    name = next(name for name in state if name not in ("step", "mu_product", "eta", "mu"))
    state[name] = torch.zeros(5, 2)
    with fails("RESULT_TYPE", "optimizer could make no step with this state"):
        Checkpoint(written).save(str(tmp_path / "none"))
    path = saved_unseen(monkeypatch, written, str(tmp_path / "state"))
    before, generator = tensors_of(here), torch.get_rng_state()
    with fails("FORMAT", "does not fit", "optimizer could make no step with this state"):
        Checkpoint(here).restore(path)
    assert all(map(torch.equal, tensors_of(here), before)) and torch.equal(torch.get_rng_state(), generator)


def test_a_state_of_another_shape_is_refused_after_something_was_compiled(tmp_path, fails):
    torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))
    written = trained("Adam")
    next(iter(written["optimizer"].state.values()))["exp_avg"] = torch.zeros(5, 2)
    with fails("RESULT_TYPE", "optimizer could make no step with this state"):
        Checkpoint(written).save(str(tmp_path / "none"))


@pytest.mark.parametrize("rate", [0, True, "numpy.float32(0.02)", "numpy.array(0.02)", "torch.tensor(0.02)"])
def test_a_rate_of_any_type_of_number_is_taken(tmp_path, rate):
    numpy = pytest.importorskip("numpy")
    written, here = trained("SGD"), trained("SGD")
    rate = eval(str(rate), {"numpy": numpy, "torch": torch})
    written["optimizer"].param_groups[0]["lr"] = rate
    Checkpoint(here).restore(Checkpoint(written).save(str(tmp_path / "state")))
    assert here["optimizer"].param_groups[0]["lr"] == rate


def test_options_that_no_step_takes_are_refused(tmp_path, fails, monkeypatch):
    written, here = trained("Adam"), trained("Adam")
    written["optimizer"].param_groups[1]["lr"] = "fast"
    path = saved_unseen(monkeypatch, written, str(tmp_path / "state"))
    with fails("FORMAT", "optimizer could make no step"):
        Checkpoint(here).restore(path)
    assert here["optimizer"].param_groups[1]["lr"] == 0.02


def test_a_parameter_that_has_left_its_group_is_refused_until_its_state_has_gone(tmp_path, fails):
    named = trained("Adam")
    left = named["optimizer"].param_groups[1]["params"].pop()
    checkpoint = Checkpoint(named)
    with fails("RESULT_TYPE", "optimizer has the state of a parameter of shape () that none of its groups has any"):
        checkpoint.save(str(tmp_path / "state"))
    del named["optimizer"].state[left]
    checkpoint.save(str(tmp_path / "state"))
