# SPDX-License-Identifier: MIT
"""A small training of which every step is determined by the state before it, for the tests that kill and restart it."""

import hashlib
import random
from collections import deque

import numpy as np
import torch

from ftn_pytorch import Checkpoint


class Training:
    """Dropout, Adam, a schedule and a shuffled replay buffer; all random numbers come from those of the process."""

    def __init__(self):
        torch.manual_seed(1)
        random.seed(2)
        np.random.seed(3)
        nn = torch.nn
        self.net = nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.2), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.999)
        self.buffer = deque(maxlen=32)
        self.counters = {"step": 0}
        self.checkpoint = Checkpoint(
            net=self.net,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            buffer=self.buffer,
            counters=self.counters,
        )

    def step(self):
        """One step; its loss."""
        x = torch.randn(4) + float(np.random.normal())
        self.buffer.append((x, x.sum(dim=0, keepdim=True)))
        order = list(range(len(self.buffer)))
        random.shuffle(order)
        batch = [self.buffer[index] for index in order[:8]]
        self.optimizer.zero_grad()
        prediction = self.net(torch.stack([x for x, _ in batch]))
        loss = torch.nn.functional.mse_loss(prediction, torch.stack([y for _, y in batch]))
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.counters["step"] += 1
        return loss.item()

    def digest(self):
        """What tells this state from any other."""
        numbers = [parameter.detach().numpy().tobytes() for parameter in self.net.parameters()]
        numbers += [x.numpy().tobytes() for x, _ in self.buffer]
        numbers += [bytes(torch.get_rng_state().tolist()), repr(random.getstate()).encode()]
        numbers += [np.random.get_state()[1].tobytes(), repr(self.counters).encode()]
        return hashlib.sha256(b"".join(numbers)).hexdigest()
