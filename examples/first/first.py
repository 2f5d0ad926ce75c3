# SPDX-License-Identifier: MIT
import torch

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def ftn_pytorch_forward(x):        # inputs in, result out
    return net(x)

def ftn_pytorch_train(x, target):  # inputs and target in, (finished, loss) out
    loss = torch.nn.functional.mse_loss(net(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss < 1e-6, loss
