# SPDX-License-Identifier: MIT
"""A small training, to be recorded or not, for tests."""

import torch

from devices import count_on_host
from ftn_pytorch import recorded

CALLS = 14


class Problem:
    """A network, an optimizer and a step; the same for the same arguments."""

    def __init__(self, record, optimizer=None, loss=None, layers=None, bias=True):
        torch.manual_seed(0)
        nn = torch.nn
        self.net = nn.Sequential(
            nn.Linear(5, 8, bias=bias), nn.Tanh(), *(layers() if layers else []), nn.Linear(8, 3, bias=bias)
        )
        self.optimizer = (optimizer or (lambda p: torch.optim.SGD(p, lr=0.1)))(self.net.parameters())
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.95)
        net, made, loss = self.net, self.optimizer, loss or torch.nn.functional.mse_loss

        def step(x, y):
            made.zero_grad()
            value = loss(net(x), y)
            value.backward()
            made.step()
            return value

        self.step = recorded(step) if record else step

    def run(self, calls=CALLS, targets=lambda: torch.randn(7, 3)):
        torch.manual_seed(7)
        losses = []
        for _ in range(calls):
            losses.append(self.step(torch.randn(7, 5), targets()).item())
            self.schedule.step()
            count_on_host(self.optimizer)
        return losses

    def tensors(self):
        state = self.optimizer.state_dict()["state"]
        kept = [value for each in state.values() for value in each.values() if isinstance(value, torch.Tensor)]
        return [*self.net.state_dict().values(), *(p.grad for p in self.net.parameters()), *kept]


def assert_same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other):
        assert torch.equal(a, b)


def assert_replays(is_ready=True, targets=lambda: torch.randn(7, 3), **settings):
    """The same losses, parameters, gradients and states both ways."""
    plain, replayed = Problem(False, **settings), Problem(True, **settings)
    assert plain.run(targets=targets) == replayed.run(targets=targets)
    assert_same(plain.tensors(), replayed.tensors())
    assert replayed.step.recording.is_ready == is_ready, replayed.step.recording.obstacle
    return replayed.step.recording
