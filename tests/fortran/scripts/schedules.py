# SPDX-License-Identifier: MIT
"""Learning rates of torch's schedulers, for tests of those that are computed without Python."""

import torch

STEPS = 40
CASES = [  # class, options, rates that the program sets before a step
    ("StepLR", {"step_size": 3}, {}),
    ("StepLR", {"step_size": 1, "gamma": 0.7}, {5: 0.3}),
    ("StepLR", {"step_size": 7, "gamma": -0.9}, {}),
    ("MultiStepLR", {"milestones": [4, 2, 4, 4, 30]}, {}),
    ("MultiStepLR", {"milestones": [0, 5, 5, 1000], "gamma": 0.3}, {9: 0.7}),
    ("ExponentialLR", {"gamma": 0.93}, {}),
    ("ExponentialLR", {"gamma": 1.1}, {1: 0.01, 20: 0.02}),
    ("CosineAnnealingLR", {"T_max": 7}, {}),
    ("CosineAnnealingLR", {"T_max": 1, "eta_min": 0.3}, {}),
    ("CosineAnnealingLR", {"T_max": 13, "eta_min": -0.05}, {14: 0.4, 31: 0.01}),
    ("CosineAnnealingLR", {"T_max": 1000000, "eta_min": 1e-5}, {}),
    ("LinearLR", {}, {}),
    ("LinearLR", {"start_factor": 0.001, "total_iters": 13}, {20: 0.2}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 9}, {3: 0.6}),
    ("PolynomialLR", {}, {}),
    ("PolynomialLR", {"total_iters": 33, "power": 0.9}, {12: 0.05}),
]


def rates(name, options, changes, first):
    """The rate after creation, then after each step."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=first)
    scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
    found = scheduler.get_last_lr()
    for step in range(1, STEPS + 1):
        optimizer.step()
        if step in changes:
            optimizer.param_groups[0]["lr"] = changes[step]
        scheduler.step()
        found += scheduler.get_last_lr()
    return found


def write_schedules():
    """A word, and what belongs to it, in each line; numbers are written so that nothing is rounded."""
    with open("direct_schedules.txt", "w") as file:
        for case, (name, options, changes) in enumerate(CASES):
            first = 0.1 + case / 30
            print("class", name, first, file=file)
            for option, value in options.items():
                if isinstance(value, list):
                    print("row", option, len(value), *value, file=file)
                else:
                    print("real" if isinstance(value, float) else "integer", option, value, file=file)
            for step, rate in changes.items():
                print("set", step, rate, file=file)
            print("rates", STEPS, *rates(name, options, changes, first), file=file)
