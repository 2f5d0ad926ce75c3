# SPDX-License-Identifier: MIT
"""A network that learns the heating of a column, with dropout and AdamW."""

import torch

torch.set_num_threads(1)  # a network as small as this is slower on many
torch.manual_seed(0)
body = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh())
head = torch.nn.Linear(32, 1)
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=1e-3, fused=True)


def ftn_pytorch_forward(x):
    return head(body(x))


def ftn_pytorch_train(x, target):
    hidden = torch.nn.functional.dropout(body(x), 0.1)
    loss = torch.nn.functional.mse_loss(head(hidden), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return False, loss


def state():
    """All that a restart needs, as one vector: parameters, moments and counts of AdamW, the random generator."""
    moments = [each for one in optimizer.state.values() for each in one.values()]
    parts = [*body.parameters(), *head.parameters(), *moments, torch.get_rng_state()]
    return torch.cat([each.detach().flatten().to(torch.float32) for each in parts])
