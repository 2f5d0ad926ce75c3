# SPDX-License-Identifier: MIT
"""Numbers that depend on the floating-point environment, computed here and by a Python of its own."""

import functools
import hashlib
import os
import subprocess
import sys
import threading

import numpy
import torch


def numbers():
    """Results of all kinds, as bytes: training, exceptional values, denormal numbers, rounding."""
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.GELU(), torch.nn.Linear(50, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    x, results = torch.randn(200, 20), []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (net(x) - x.sin().sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        results.append(loss)
    zeros, tiny = torch.zeros(1 << 15), torch.full((1 << 15,), 1e-40)
    results += [
        zeros / zeros,
        torch.log(zeros),
        torch.softmax(torch.full((8,), -torch.inf), 0),
        tiny * 0.5,
        tiny + tiny,
    ]
    results += [
        torch.linalg.solve(torch.eye(30) * 1e-30, torch.full((30, 30), 1e30)),
        torch.linalg.svd(x)[1],
        x.exp(),
        x / 3,
    ]
    results += [torch.exp(torch.full((100,), 1000.0)), torch.tensor(5e-324) / 2, net(x)]
    arrays = [result.detach().numpy() for result in results]
    arrays += [
        numpy.float64(1e-310) / numpy.arange(1, 50),
        numpy.linalg.inv(numpy.eye(5) * 1e-160),
        numpy.float64(1) / 3,
    ]
    return b"".join(numpy.asarray(array).tobytes() for array in arrays)


def digest():
    with numpy.errstate(all="ignore"):
        return hashlib.sha256(numbers()).hexdigest() + str(float("1e-310") * 0.1) + str(0.1 + 0.7)


@functools.cache
def plain_digest():
    plain = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True,
                           env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())})  # fmt: skip
    return plain.stdout.strip()


def is_as_in_plain_python():
    return digest() == plain_digest()


def fails():
    raise ValueError(torch.zeros(1) / torch.zeros(1))


def in_threads():
    """Threads of Python's own have the environment of Python too, and so have those of autograd."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(digest())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tiny = torch.full((1 << 16,), 1e-40)
    assert (tiny * 1.0).min() > 0 and len(found) == 2


if __name__ == "__main__":
    print(digest())
