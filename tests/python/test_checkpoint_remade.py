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


HEADER = """
import torch
torch.manual_seed(0)
net, n = torch.nn.Linear(2, 1), 0
"""

# name: script with step(), which is kept
KEPT = {
    "list of groups in place of another": "opt = torch.optim.SGD(net.parameters(), 0.1)\ndef step():\n"
    "    opt.param_groups = list(opt.param_groups)\n    opt.param_groups[0]['lr'] *= 0.9\n"
    "    return opt.param_groups[0]['lr']",
    "rate of a new optimizer under a name": "rate, opt = torch.tensor(0.1), None\ndef step():\n    global opt\n"
    "    if opt is None: opt = torch.optim.Adam(net.parameters(), lr=rate)\n    rate.mul_(0.9)\n"
    "    return opt.param_groups[0]['lr'].item()",
    "group of an optimizer in a new one": "one, two = torch.optim.SGD(net.parameters(), 0.1), None\ndef step():\n"
    "    global two\n    if two is None:\n        two = torch.optim.SGD(net.parameters(), 0.5)\n"
    "        two.param_groups[0] = one.param_groups[0]\n    one.param_groups[0]['lr'] *= 0.9\n"
    "    return two.param_groups[0]['lr']",
    "groups of a new optimizer under a name": "opt = groups = None\ndef step():\n    global opt, groups\n"
    "    if opt is None:\n        opt = torch.optim.SGD(net.parameters(), 0.1)\n        groups = opt.param_groups\n"
    "    groups[0]['lr'] *= 0.9\n    return opt.param_groups[0]['lr']",
    "network under another one": "outer = torch.nn.Sequential(torch.nn.Linear(1, 1))\ninner = torch.nn.Linear(1, 1)\n"
    "def step():\n    global n\n    n += 1\n    if n == 2: outer.append(inner)\n    if n == 5: outer[0] = inner\n"
    "    return outer(torch.ones(1)).item()",
    "fields of the user in a state": "opt = torch.optim.SGD(net.parameters(), 0.1)\ndef step():\n"
    "    held = opt.state[net.weight]\n    held['own'] = held.get('own', torch.zeros(3)) + 1\n"
    "    return held['own'].sum().item()",
}

# name: (script, pieces of the message)
REFUSED = {
    "list of an object with a state": (
        "class Own:\n    def __init__(self): self.log = []\n    def state_dict(self): return {'log': [*self.log]}\n"
        "    def load_state_dict(self, state): self.log[:] = state['log']\n"
        "own, held = Own(), None\ndef step():\n    global held\n    held = own.log",
        ["own.log is of an object that keeps its state itself, and a call has made another way to it"],
    ),
    "tensor of an object with a state": (
        "class Own:\n    def __init__(self): self.t = torch.zeros(1)\n    def state_dict(self): return {'t': self.t}\n"
        "    def load_state_dict(self, state): self.t.copy_(state['t'])\n"
        "own, held = Own(), []\ndef step(): held.append(own.t)",
        ["own.t is of an object that keeps its state itself"],
    ),
    "second list of groups": (
        "opt = torch.optim.SGD(net.parameters(), 0.1)\ngroups = opt.param_groups\n"
        "def step(): opt.param_groups = list(groups)",
        ["opt.param_groups is another list than after the load, which has a name of its own"],
    ),
    "parameter that was replaced, and is still there": (
        "old = net.weight\ndef step(): net.weight = torch.nn.Parameter(torch.zeros(1, 2))",
        ["old shares its numbers with another tensor since a call, or is no longer part of its network"],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_parts_of_optimizers_and_networks_stay_themselves(name, load, tmp_path):
    one, place = load(HEADER + KEPT[name]), str(tmp_path / "state")
    calls(one, 3)
    program.save(one, place)
    expected = calls(one, 4)
    program.restore(one, place)
    assert calls(one, 4) == expected
    two = load(HEADER + KEPT[name])
    program.restore(two, place)
    assert calls(two, 4) == expected


@pytest.mark.parametrize("name", REFUSED)
def test_second_ways_to_what_is_kept_elsewhere_are_refused(name, load, tmp_path, fails):
    text, pieces = REFUSED[name]
    runner = load(HEADER + text)
    calls(runner, 1)
    with fails("RESULT_TYPE", *pieces):
        program.save(runner, str(tmp_path / "state"))
