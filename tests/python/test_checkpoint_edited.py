# SPDX-License-Identifier: MIT
"""Restarts of a script that was edited since: what comes from it, what from the file, and what does not fit."""

import pytest

import program

torch = pytest.importorskip("torch")

LAYERS = ("self.one = torch.nn.Linear(2, 2)", "self.two = torch.nn.Linear(2, 2)")
TRAINING = """
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {}
        {}
    def forward(self, x):
        return self.two(torch.tanh(self.one(x)))
net = Net()
free = torch.nn.Parameter(torch.ones(2, 2))
optimizer = torch.optim.{}([{}], lr=0.1)
{}
def step(x):
    optimizer.zero_grad()
    loss = (net(x) @ free).square().sum()
    loss.backward()
    optimizer.step()
    return loss.item()
"""


def training(layers=LAYERS, kind="Adam", trained="*net.parameters(), free", declared=""):
    return TRAINING.format(*layers, kind, trained, declared)


DECLARED = (
    "",
    'ftn_pytorch_state = ["optimizer", "net", "free"]',
    "import ftn_pytorch\nown = ftn_pytorch.Checkpoint(optimizer=optimizer, net=net, free=free)",
)


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("edited", [{"layers": LAYERS[::-1]}, {"trained": "free, *net.parameters()"}])
def test_an_optimizer_does_not_give_the_state_of_one_parameter_to_another(load, tmp_path, fails, declared, edited):
    before, place = load(training(declared=declared)), str(tmp_path / "steps")
    for step in range(3):
        program.call(before, "step", torch.full((1, 2), 1.0 + step))
    program.checkpoint(before, place)
    here = load(training(declared=declared, **edited), name="edited.py")
    was = [each.clone() for each in here.value("net").parameters()]
    with fails("FORMAT", "optimizer has another parameter in place", "in the file"):
        program.restore(here, place)
    assert all(map(torch.equal, was, here.value("net").parameters()))


@pytest.mark.parametrize("declared", DECLARED)
def test_names_and_code_beside_what_is_trained_may_change(load, tmp_path, declared):
    before, place = load(training(declared=declared)), str(tmp_path / "steps")
    losses = []
    for step in range(6):
        losses.append(program.call(before, "step", torch.full((1, 2), 1.0 + step)))
        if step == 2:
            program.checkpoint(before, place)
    edited = training(declared=declared).replace("net = Net()", "made = [Net()]\nfirst = made[0].one\nnet = made[0]")
    here = load(edited.replace("free = ", "more = [net.two]\nfree = "), name="edited.py")
    program.restore(here, place)
    assert [program.call(here, "step", torch.full((1, 2), 1.0 + step)) for step in range(3, 6)] == losses[3:]


@pytest.mark.parametrize("edited", ["torch.zeros(3)", "torch.zeros(2, dtype=torch.float64)"])
def test_a_tensor_that_others_hold_too_is_not_replaced_under_one_name_alone(load, tmp_path, fails, edited):
    text = """
    import torch
    history = torch.zeros(2)
    class Mean:
        def __init__(self): self.history = history
    mean = Mean()
    def step():
        history.add_(1)
        return mean.history.sum().item() / len(mean.history)
    """
    before, place = load(text), str(tmp_path / "steps")
    program.call(before, "step")
    program.checkpoint(before, place)
    here = load(text.replace("torch.zeros(2)", edited), name="edited.py")
    with fails("FORMAT", "history has"):
        program.restore(here, place)
    assert program.call(here, "step") == 1, "nothing has changed"


def test_random_numbers_go_on_where_the_load_of_a_state_draws_some(load, tmp_path, fails):
    runner = load(
        """
        import torch
        class Drawing:
            def __init__(self): self.is_whole = True
            def state_dict(self): return {}
            def load_state_dict(self, state):
                torch.rand(3)  # such as a layer that is made for a state
                if not self.is_whole:
                    raise ValueError("it does not fit")
        class Net(torch.nn.Linear):
            def load_state_dict(self, state, *options):
                torch.rand(3)
                return super().load_state_dict(state, *options)
        net, drawing = Net(2, 1), Drawing()
        def step(): return torch.rand(1).item()
        """
    )
    place = str(tmp_path / "steps")
    program.checkpoint(runner, place)
    first = [program.call(runner, "step") for _ in range(3)]
    program.restore(runner, place)
    assert [program.call(runner, "step") for _ in range(3)] == first
    program.restore(runner, place)
    runner.value("drawing").is_whole = False
    with fails("FORMAT", "it does not fit"):
        program.restore(runner, place)
    assert [program.call(runner, "step") for _ in range(3)] == first, "nor has a restore that failed drawn any"
