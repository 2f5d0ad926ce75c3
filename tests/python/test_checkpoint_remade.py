# SPDX-License-Identifier: MIT
"""Optimizers, schedulers and objects with a state that a call has made: they go on after a restart and going back."""

import pytest

import program

pytest.importorskip("torch")

# name: what a call makes once, which step() trains with: it is there before, in one restart, and made after, in another
TRAINED = {
    "under its name": "opt = torch.optim.Adam(net.parameters(), 0.5)",
    "of another class": "opt = torch.optim.SGD(net.parameters(), 0.5, momentum=0.5)",
    "with fields of its own": "opt = torch.optim.LBFGS(net.parameters(), 0.1, max_iter=1)\nrates = None",
    "of one tensor": "opt = torch.optim.Adam([net.weight], 0.5)",
    "with groups": "opt = torch.optim.Adam([{'params': [net.bias], 'lr': 0.1}, {'params': [net.weight]}])",
    "with a group more": "more = torch.ones(1, requires_grad=True)\nopt.add_param_group({'params': [more], 'lr': 0.1})",
    "that lost a group": "opt.add_param_group({'params': [more], 'lr': 0.1})\n"
    "group = opt.param_groups.pop(0)\nopt.state.clear()",
    "with a named group": "opt = torch.optim.SGD(net.parameters(), 0.5)\ngroup = opt.param_groups[0]",
    "of a new network": "net = torch.nn.Linear(2, 1)\nopt = torch.optim.Adam(net.parameters(), 0.5)",
    "in a list": "opts = [torch.optim.Adam([each], 0.5) for each in net.parameters()]\nopt = opts[1]",
    "with a scheduler": "opt = torch.optim.SGD(net.parameters(), 0.5)\n"
    "rates = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)",
    "beside the scheduler of another": "opt = torch.optim.SGD(net.parameters(), 0.5)",
    "with another scheduler": "rates = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5)",
    "the first scheduler of an optimizer": "opt = free\nrates = torch.optim.lr_scheduler.LambdaLR(opt, decay)",
    "schedulers in a scheduler": "opt = free\nrates = torch.optim.lr_scheduler.SequentialLR(opt, ["
    "torch.optim.lr_scheduler.ConstantLR(opt), torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)], [3])",
    "an own object with a state": "own = Own(2.0)",
}
TRAINING = """
import torch
torch.manual_seed(0)
net, n = torch.nn.Linear(2, 1), 0
class Own:
    def __init__(self, factor): self.factor, self.n = factor, 0
    def state_dict(self): return {'factor': self.factor}
    def load_state_dict(self, state): self.factor = state['factor']
more, opts, own = torch.ones(1, requires_grad=True), [], Own(1.0)
free = torch.optim.SGD([more], 0.5)
def decay(n): return 0.9 ** n
opt = torch.optim.Adam(net.parameters(), 0.5)
rates = torch.optim.lr_scheduler.StepLR(opt, 2)
group = opt.param_groups[0]
def step():
    global n, net, opt, opts, rates, group, more, own
    n, own.n = n + 1, own.n + 1
    if n == 2:
        {}
    net.zero_grad()
    loss = (net(torch.rand(3, 2)) * more * own.factor).square().sum()
    loss.backward()
    opt.step(lambda: loss)
    if rates: rates.step()
    group['lr'] *= 0.9
    return loss.item(), own.n, rates and rates.get_last_lr(), [each['lr'] for each in opt.param_groups]
"""


def calls(runner, count):
    return [program.call(runner, "step") for _ in range(count)]


@pytest.mark.parametrize("name", TRAINED)
def test_what_a_call_has_made_is_trained_after_a_restart(name, load, tmp_path):
    text = TRAINING.replace("{}", TRAINED[name].replace("\n", "\n        "))
    one, place = load(text), str(tmp_path / "state")
    calls(one, 3)
    program.save(one, place)
    expected = calls(one, 3)
    program.restore(one, place)
    assert calls(one, 3) == expected
    two = load(text)
    program.restore(two, place)
    assert calls(two, 3) == expected
