# SPDX-License-Identifier: MIT
"""Episodes of several environments side by side, which end in different steps and in both ways."""

import torch


def played(steps=60, environments=3, seed=0, dtype=torch.float64):
    """A list of the arguments of ``add``. An observation is (environment, number of its step), an action a number."""
    random = torch.Generator().manual_seed(seed)
    place = torch.arange(environments, dtype=dtype)
    found = []
    for step in range(steps):
        observation = torch.stack([place, torch.full_like(place, 2.0 * step)], 1)
        ends = torch.rand(environments, generator=random)
        found.append(
            (
                observation,
                torch.randint(5, (environments,), generator=random),
                torch.randn(environments, generator=random, dtype=dtype),
                observation + torch.tensor([0.0, 1.0], dtype=dtype),  # what an episode ends with is seen there only
                ends < 0.1,
                ends > 0.9,
            )
        )
    return found
