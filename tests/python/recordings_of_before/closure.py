# SPDX-License-Identifier: MIT
"""The script whose file version 0.2.0 has written, and the numbers that it then got: python closure.py."""

import json

import torch

from ftn_pytorch import recorded, save_recording

torch.manual_seed(2)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Dropout(0.25), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


@recorded
def ftn_pytorch_forward(x):
    with torch.no_grad():
        return net(x)


@recorded
def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss.detach()


if __name__ == "__main__":
    x = torch.arange(12.0).reshape(4, 3) / 10
    target = x.sum(1, keepdim=True)
    for _ in range(9):
        ftn_pytorch_train(x, target)
        ftn_pytorch_forward(x)
    functions = {"ftn_pytorch_forward": ftn_pytorch_forward, "ftn_pytorch_train": ftn_pytorch_train}
    save_recording("0.2.0.ftr", functions)
    losses = [float(ftn_pytorch_train(x, target)[1]) for _ in range(3)]
    with open("0.2.0.json", "w") as stream:
        json.dump({"losses": losses, "result": ftn_pytorch_forward(x).flatten().tolist()}, stream)
