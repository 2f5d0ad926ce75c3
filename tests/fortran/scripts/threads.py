# SPDX-License-Identifier: MIT
"""Threads of Python, of torch, and of a process that loads data."""

import threading

import torch


def of_python():
    found = []
    threads = [threading.Thread(target=lambda: found.append(float(torch.ones(9).sum()))) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(found)


def of_torch():
    torch.set_num_threads(2)
    return float(sum(torch.ones(300, 300, requires_grad=True).exp().sum().backward() is None for _ in range(3)))


def of_a_loader():
    data = torch.utils.data.TensorDataset(torch.ones(8, 2))
    return float(sum(x[0].sum() for x in torch.utils.data.DataLoader(data, batch_size=2, num_workers=1)))
