# SPDX-License-Identifier: MIT
"""script.py for pytorch-fortran, which passes no configuration and a list of inputs."""
import script


def ftn_pytorch_save(problem: str) -> None:
    """Make the network: "CASE SIZE FOLDER". It is the only hook of pytorch-fortran that gets a text."""
    case, size, folder = problem.split(maxsplit=2)
    script.ftn_pytorch_setup(case, int(size), folder)


def ftn_pytorch_forward(inputs):
    return script.ftn_pytorch_forward(*inputs)


def ftn_pytorch_train(inputs, target):
    return script.ftn_pytorch_train(*inputs, target)
