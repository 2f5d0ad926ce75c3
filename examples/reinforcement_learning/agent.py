# SPDX-License-Identifier: MIT
"""An agent that learns to act by proximal policy optimisation (PPO, Schulman et al. 2017). It knows nothing of poles.

``act`` chooses actions, and ``ftn_pytorch_train`` is told what they have led to. After some steps of all environments
it improves the policy by a few passes over these, and forgets them.
"""

from collections import deque

import torch
from torch import nn

from ftn_pytorch import recorded
from ftn_pytorch.kit import Log, Normaliser, Rollout


class Policy(nn.Module):
    """(n, observations) to logarithms of probabilities, (n, actions), and values, (n,)."""

    def __init__(self, observations, actions, width):
        super().__init__()
        self.scale = Normaliser(observations)
        self.actor, self.critic = (
            nn.Sequential(
                nn.Linear(observations, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)
            )
            for outputs in (actions, 1)
        )
        with torch.no_grad():
            self.actor[-1].weight *= 0.01  # at the beginning no action is better than others

    def forward(self, observation):
        return self.actor(self.scale(observation)).log_softmax(1)

    def value(self, observation):
        return self.critic(self.scale(observation)).squeeze(1)


def ftn_pytorch_setup(
    seed=0, updates=100, steps=64, observations=4, actions=2, width=64, lr=3e-3, epochs=6, batch=256, clip=0.2, log=""
):
    """``updates`` of the policy, one after each ``steps`` of all environments, by ``epochs`` passes over them."""
    global policy, optimizer, schedule, rollout, rows, settings, done, latest, running, returns
    torch.manual_seed(seed)
    policy = Policy(observations, actions, width)
    optimizer = torch.optim.Adam(policy.parameters(), lr=lr, eps=1e-5, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=updates)
    rollout = Rollout(steps, gamma=0.99, lam=0.95)
    rows = Log(log or None)
    settings = {"updates": updates, "epochs": epochs, "batch": batch, "clip": clip}
    done, latest = 0, 0.0
    running, returns = None, deque(maxlen=20)  # rewards of the episodes that go on, and of the latest that have ended


@torch.inference_mode()
def act(observation):
    """Actions from 0 on, (n,), drawn as the policy has it."""
    return torch.multinomial(policy(observation).exp(), 1).squeeze(1).int()


@torch.inference_mode()
def ftn_pytorch_forward(observation):
    """The most probable actions, (n,)."""
    return policy(observation).argmax(1).int()


def ftn_pytorch_train(observation, action, reward, next_observation, terminated, truncated):
    """What actions have led to. Returns whether the policy has all its updates, and the loss of the latest one."""
    global running, done, latest
    over = terminated | truncated
    running = reward.clone() if running is None else running + reward
    returns.extend(running[over].tolist())
    running[over] = 0
    if rollout.add(observation, action.long(), reward, next_observation, terminated, truncated):
        latest = improve(*rollout.finish(policy.value))
        done += 1
    return done >= settings["updates"], latest


def improve(observation, action, advantage, target):
    with torch.no_grad():
        before = policy(observation).gather(1, action[:, None])
    samples = (observation, action[:, None], advantage, target, before)
    for _ in range(settings["epochs"]):
        for batch in torch.randperm(len(action)).split(settings["batch"]):
            loss, entropy = step(*(each[batch] for each in samples))
    schedule.step()
    mean_return = sum(returns) / max(len(returns), 1)
    rows.write(done + 1, episode_return=mean_return, loss=loss, entropy=entropy, lr=schedule.get_last_lr()[0])
    # Last, so that the probabilities before and after a step are of the same scale
    policy.scale.update(observation)
    return loss.item()


@recorded
def step(observation, action, advantage, target, before):
    """One step of the optimizer, (n, ...) each; the loss before it, and the entropy of the policy."""
    chances = policy(observation)
    ratio = (chances.gather(1, action) - before).squeeze(1).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    clipped = ratio.clamp(1 - settings["clip"], 1 + settings["clip"])
    gain = torch.minimum(ratio * advantage, clipped * advantage).mean()
    loss = 0.5 * (policy.value(observation) - target).square().mean() - gain
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
    return loss.detach(), -(chances.exp() * chances).sum(1).mean().detach()
