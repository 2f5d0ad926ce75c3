# SPDX-License-Identifier: MIT
"""A network of models.py on the GPU, called by Fortran; as a program, the same calls in Python on tensors there.

python functions.py <case> <size>
"""

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import models  # noqa: E402

net = optimizer = None


def ftn_pytorch_setup(name, size, fused=False):
    """fused: the form of the optimizer that can be recorded."""
    global net, optimizer
    torch.set_num_threads(1)
    net = models.make(name, size).to("cuda")
    optimizer = models.make_optimizer(name, net, fused=fused or None) if models.CASES[name].optimizer else None


@torch.inference_mode()
def ftn_pytorch_forward(x):
    return net(x)


def ftn_pytorch_train(x, target):
    return False, models.train_step(net, optimizer, x, target)


@torch.inference_mode()
def compare(x, *results):
    """Largest difference of results to that of x, relative to its largest value."""
    expected = net(x)
    return max((result - expected).abs().max() for result in results) / expected.abs().max()


def loop(inputs, calls):
    """Seconds of calls that wait for the GPU, as those of Fortran do."""
    begin = time.perf_counter()
    for _ in range(calls):
        if optimizer:
            ftn_pytorch_train(*inputs)[1].item()
        else:
            ftn_pytorch_forward(*inputs)
            torch.cuda.synchronize()
    return time.perf_counter() - begin


if __name__ == "__main__":
    name, size = sys.argv[1], int(sys.argv[2])
    ftn_pytorch_setup(name, size)
    inputs = [value.to("cuda") for value in models.make_inputs(name, size)]
    print("ready", flush=True)
    for line in sys.stdin:
        print(f"{loop(inputs, int(line.split()[1])):.9f}", flush=True)
