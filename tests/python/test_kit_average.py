# SPDX-License-Identifier: MIT
"""Averages of weights: by hand, recorded, and in checkpoints."""

import copy

import pytest
import torch

import program
from ftn_pytorch import recorded
from ftn_pytorch.kit import Average


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))


def moved(net):
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += torch.randn_like(parameter)
    net(torch.randn(5, 3))


@pytest.mark.parametrize("rho", [None, 0.0, 0.9])
def test_weights_are_averaged_as_by_hand_and_buffers_are_those_of_the_network(rho):
    net = network()
    average, kept = Average(net, rho), []
    by_hand = [each.detach().clone() for each in net.parameters()]
    for _ in range(5):
        moved(net)
        kept.append([each.detach().clone() for each in net.parameters()])
        by_hand = [(rho or 0) * one + (1 - (rho or 0)) * other for one, other in zip(by_hand, kept[-1])]
        average.update()
    expected = [torch.stack(each).mean(0) for each in zip(*kept)] if rho is None else by_hand
    torch.testing.assert_close(list(average.parameters()), expected)
    assert all(map(torch.equal, average.module.buffers(), net.buffers()))
    assert not any(each.requires_grad for each in average.parameters())
    assert all(each.requires_grad for each in net.parameters())
    assert rho != 0 or all(map(torch.equal, average.parameters(), net.parameters()))
    assert set(average.state_dict()) == {"n_averaged", *(f"module.{name}" for name in net.state_dict())}


def test_buffers_are_averaged_where_that_is_asked_for():
    net = network()
    average, before = Average(net, 0.5, use_buffers=True), net[1].running_mean.clone()
    moved(net)
    average.update()
    torch.testing.assert_close(average.module[1].running_mean, (before + net[1].running_mean) / 2)


def test_a_copy_follows_a_copy_of_the_network():
    net = network()
    average = Average(net, 0.5)
    before = average.module[0].weight.clone()
    again_net, again = copy.deepcopy((net, average))
    moved(again_net)
    again.update()
    torch.testing.assert_close(again.module[0].weight, (before + again_net[0].weight) / 2)
    assert torch.equal(average.module[0].weight, before)


@pytest.mark.parametrize("rho", [None, 0.0, 0.9])
def test_a_recorded_step_has_the_numbers_of_plain_python(rho, extension):
    def run(record):
        net = network()
        average, optimizer = Average(net, rho), torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)

        def step(x):
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update()
            return loss + average(x).square().mean()

        step = recorded(step) if record else step
        losses = [step(torch.randn(8, 3)).detach().clone() for _ in range(20)]
        assert not record or step.recording.is_ready, step.recording.obstacle
        return [*losses, *average.state_dict().values()]

    assert all(map(torch.equal, run(False), run(True)))


SCRIPT = """
import torch
from ftn_pytorch.kit import Average

torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
target = Average(net, 0.9)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def ftn_pytorch_train(x, wanted):
    loss = (net(x) - wanted - 0.5 * target(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    target.update()
    return False, loss
"""


def test_a_restart_goes_on_bit_for_bit(load, tmp_path):
    def losses(runner, numbers):
        step = program.function(runner, "ftn_pytorch_train")
        x = torch.linspace(-1, 1, 8).reshape(4, 2)
        return [step(x * number, x.sum(1, keepdim=True))[1].item() for number in numbers]

    whole = losses(load(SCRIPT, name="whole.py"), range(1, 11))
    runner = load(SCRIPT, name="first.py")
    found = losses(runner, range(1, 6))
    program.checkpoint(runner, str(tmp_path / "checkpoints"), keep=1, step=5)
    runner = load(SCRIPT, name="second.py")
    program.restore(runner, str(tmp_path / "checkpoints"))
    assert found + losses(runner, range(6, 11)) == whole and len(set(whole)) == 10


def test_what_cannot_be_averaged_is_refused(fails):
    for rho in (1.0, -0.1):
        with fails("ARGUMENT", f"rho is {rho}"):
            Average(network(), rho)
    with fails("ARGUMENT", "no shapes before its first forward"):
        Average(torch.nn.LazyLinear(1))
