# SPDX-License-Identifier: MIT
"""A network of models.py on the GPU, called by Fortran; as a program, the same calls in Python on tensors there.

python functions.py <case> <size>    a process that measures, with the ways "python" and "graph"
"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import models  # noqa: E402
from harness.serve import serve  # noqa: E402

net = optimizer = None


def ftn_pytorch_setup(name, size, fused=False, capturable=False):
    """fused: the form of the optimizer that can be recorded. capturable: the one that a graph by hand needs as well."""
    global net, optimizer
    torch.set_num_threads(1)
    net = models.make(name, size).to("cuda")
    if models.CASES[name].optimizer:
        optimizer = models.make_optimizer(name, net, fused=fused or None, capturable=capturable)


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


def loop(calls):
    """Calls that wait for the GPU, as those of Fortran do."""
    for _ in range(calls):
        result = call(inputs)
        result.item() if optimizer else torch.cuda.synchronize()


def graph_by_hand(inputs):
    """One CUDA graph for all that a call does, which reads and writes tensors in their places; the result."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call(inputs)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call(inputs)
    return graph, result


def call(inputs):
    return ftn_pytorch_train(*inputs)[1] if optimizer else ftn_pytorch_forward(*inputs)


def replays(calls):
    """As loop, through a graph."""
    for _ in range(calls):
        graph.replay()
        result.item() if optimizer else torch.cuda.synchronize()


if __name__ == "__main__":
    name, size = sys.argv[1], int(sys.argv[2])
    ftn_pytorch_setup(name, size, fused=True, capturable=True)
    inputs = [value.to("cuda") for value in models.make_inputs(name, size)]
    graph, result = graph_by_hand(inputs)
    of_graph = net, optimizer  # whose memory it works on
    ftn_pytorch_setup(name, size)
    serve({"python": loop, "graph": replays})
