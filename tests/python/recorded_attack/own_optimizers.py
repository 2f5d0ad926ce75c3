# SPDX-License-Identifier: MIT
"""Optimizers that a user has written: rules by which a step is made of a rate, and ways in which it changes; steps that
change more than parameters."""

from __future__ import annotations

from .texts import blocks, file

# how far a step goes, as a term of group, p and self; and what is changed, the rate if nothing
RULES = {
    "rate": ('group["lr"]', ""),
    "two terms of a rate": ('group["lr"] ** 2 + group["lr"] * 0.1', ""),
    "max": ('max(group["lr"], 0.05)', ""),
    "min": ('min(group["lr"], 0.05)', ""),
    "round": ('round(group["lr"], 2)', ""),
    "int": ('(1 + int(group["lr"] * 20)) * 0.01', ""),
    "floor": ('(1 + math.floor(group["lr"] * 20)) * 0.01', ""),
    "abs": ('abs(group["lr"] - 0.07)', ""),
    "modulo": ('group["lr"] % 0.03 + 0.01', ""),
    "root": ('math.sqrt(group["lr"]) * 0.1', ""),
    "branch": ('(group["lr"] if group["lr"] > 0.05 else 0.2)', ""),
    "comparison": ('0.01 * (1 + (group["lr"] < 0.05))', ""),
    "table": ('{0.1: 0.1}.get(group["lr"], 0.02)', ""),
    "text": ("float(f\"{group['lr']:.2f}\")", ""),
    "function": ('group["rule"](group["lr"])', ""),
    "product": ('group["lr"] * group["decay"]', 'optimizer.param_groups[0]["decay"] = 0.9'),
    "quotient": ('group["lr"] / (1 + group["decay"])', 'optimizer.param_groups[0]["decay"] = 0.9'),
    "power": ('group["decay"] ** 3 * group["lr"]', 'optimizer.param_groups[0]["decay"] = 0.9'),
    "last group": ('self.param_groups[-1]["lr"]', ""),
    "flag": ('(0.1 if group["fast"] else 0.01)', 'optimizer.param_groups[0]["fast"] = False'),
    "name": ('{"fast": 0.1, "slow": 0.01}[group["speed"]]', 'optimizer.param_groups[0]["speed"] = "slow"'),
    "list": ('group["rates"][0]', 'optimizer.param_groups[0]["rates"][0] = 0.02'),
    "tuple": ('group["betas"][0] * max(group["betas"][1], 0.5)', 'optimizer.param_groups[0]["betas"] = (0.1, 0.9)'),
    "own field": ('group["lr"] * self.gain', "optimizer.gain = 3.0"),
    "field of a parameter": ('group["lr"] * p.lr_mult', "net.weight.lr_mult = 3.0"),
    "defaults": ('self.defaults["lr"]', 'optimizer.defaults["lr"] = 0.02'),
    "count in a field": ('group["lr"] / self.counted()', ""),
    "count in the state": ('group["lr"] / self.of(p)', ""),
}
CHANGES = {
    "jump": 'def change(): optimizer.param_groups[0]["lr"] = 0.02',
    "decay": 'def tick(call): optimizer.param_groups[0]["lr"] *= 0.96\ndef change(): pass',
    "warm-up": 'def tick(call): optimizer.param_groups[0]["lr"] = 0.02 if call < 25 else 0.1\ndef change(): pass',
}
_TEXT = """
class Own(torch.optim.Optimizer):
    gain = 1.0
    def __init__(self, parameters):
        super().__init__(parameters, dict(
            lr=0.1, decay=0.5, fast=True, speed="fast", rates=[0.1], rule=lambda rate: rate * rate, betas=(0.1, 0.3)))
        self.calls = 0
    def counted(self):
        self.calls += 1
        return self.calls
    def of(self, p):
        self.state[p]["calls"] = self.state[p].get("calls", 0) + 1
        return self.state[p]["calls"]
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-({RULE}))
net = nn.Linear(3, 1)
net.weight.lr_mult = net.bias.lr_mult = 1.0
optimizer = Own(net.parameters())
@recorded
def step(x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
"""


def own_optimizers() -> dict[str, str]:
    """Each rule with each change of the rate, or with the change that it has."""
    found = {}
    for name, (rule, change) in RULES.items():
        text = _TEXT.replace("{RULE}", rule)
        ways = {"own change": f"def change(): {change}"} if change else CHANGES
        found |= {f"own optimizer, {name}, {way}": f"{text}{lines}\n" for way, lines in ways.items()}
    return found


_BEFORE_STEPS = """
class Descent(torch.optim.Optimizer):
    def __init__(self, params, lr): super().__init__(params, dict(lr=lr))
    def all(self): return self.param_groups[0]["params"]
    @torch.no_grad()
    def step(self, closure=None):
        for place, p in enumerate(self.all()):
            self.move(p, place)
class Wrapper(Descent):
    def __init__(self, base):
        super().__init__([p for group in base.param_groups for p in group["params"]], 0.1)
        self.base, self.count = base, 0
        self.slow = [p.detach().clone() for p in self.all()]
net, left = nn.Linear(3, 1), nn.Linear(3, 1)
log = []
"""
_TRAIN = """
@recorded
def step(x):
    net.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    {THEN}
    return loss
def change(): pass
"""


def steps() -> dict[str, str]:
    """Each step twice, as it is and in a function that is refused."""
    found = {}
    for name, text in blocks(file("steps.txt")).items():
        for way, line in (("as it is", "pass"), ("refused", "log.append(1)")):
            found[f"step, {name}, {way}"] = _BEFORE_STEPS + text + _TRAIN.replace("{THEN}", line)
    return found
