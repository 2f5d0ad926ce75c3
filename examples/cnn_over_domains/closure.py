# SPDX-License-Identifier: MIT
"""A CNN over sub-domains that all ranks train, and beside it the same CNN without halos. It knows nothing of Fortran.

Arrays are of this rank: ``seen`` is (3, ny, nx), ``missed`` (ny, nx), both without halos.
"""

import copy

import torch
from torch import nn

from ftn_pytorch import all_reduce_mean, average_gradients, recorded, require_equal
from ftn_pytorch.halo import Exchange, OverSubdomains, halo_width

torch.set_default_dtype(torch.float64)


def ftn_pytorch_setup(nx, ny, px, py, scales, width=16, lr=3e-3):
    """scales: (4,), root mean squares of what is seen and of what is missed."""
    global cnn, over, lone, optimizers, exchange, scale_seen, scale_missed
    torch.manual_seed(0)
    cnn = nn.Sequential(
        nn.Conv2d(3, width, 5, padding=2),
        nn.SiLU(),
        nn.Conv2d(width, width, 5, padding=2),
        nn.SiLU(),
        nn.Conv2d(width, 1, 3, padding=1),
    )
    # Around the domain: periodic in x. Beyond a wall there is the mirror image of what is before it
    exchange = Exchange((ny, nx), halo_width(cnn), grid=(py, px), boundary=("reflected", "periodic"))
    over, lone = OverSubdomains(cnn, exchange), copy.deepcopy(cnn)
    optimizers = [torch.optim.Adam(net.parameters(), lr=lr) for net in (over, lone)]
    scales = torch.as_tensor(scales)
    scale_seen, scale_missed = scales[:3, None, None].clone(), scales[3].clone()


@recorded
def train(seen, missed):
    """A step of both networks; their losses as shares of the variance, of all ranks."""
    x, y = (seen / scale_seen)[None], (missed / scale_missed)[None, None]
    losses = []
    for net, optimizer in zip((over, lone), optimizers):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        average_gradients(net)
        optimizer.step()
        losses.append(loss.detach())
    return all_reduce_mean(torch.stack(losses)) / all_reduce_mean(y.square().mean())


@torch.no_grad()
def predict(seen):
    """(2, ny, nx): what the CNN over sub-domains says is missed, and what the one without halos says."""
    x = (seen / scale_seen)[None]
    return torch.cat([over(x)[0], lone(x)[0]]) * scale_missed


@torch.no_grad()
def errors(seen, missed):
    """(2,): of both networks, as shares of the variance of what is missed, of all ranks."""
    squares = (predict(seen) - missed).square().mean((1, 2))
    return all_reduce_mean(squares) / all_reduce_mean(missed.square().mean())


def compare(seen, missed, whole_seen, whole_missed, j0, i0):
    """Largest differences to the CNN over the whole domain on one rank: outputs, and gradients relative to the largest.

    whole_seen, whole_missed: (3, ...) and (1, ...), of all ranks. j0, i0: first cell of this rank.
    """
    y = (slice(j0, j0 + seen.shape[1]), slice(i0, i0 + seen.shape[2]))
    over.zero_grad()
    own = over((seen / scale_seen)[None])
    (own - missed / scale_missed).square().mean().backward()
    average_gradients(over)
    gradients = [parameter.grad.clone() for parameter in cnn.parameters()]

    h = exchange.width
    x = whole_seen / scale_seen
    x = torch.cat([x[:, : h[0]].flip(1), x, x[:, -h[0] :].flip(1)], 1)
    x = nn.functional.pad(x, (h[1], h[1], 0, 0), mode="circular")[None]
    over.zero_grad()
    whole = cnn(x)[..., h[0] : -h[0], h[1] : -h[1]]
    (whole - whole_missed / scale_missed).square().mean().backward()
    worst = max(
        float((mine - parameter.grad).abs().max() / parameter.grad.abs().max())
        for mine, parameter in zip(gradients, cnn.parameters())
    )
    over.zero_grad()
    require_equal(over)
    return float((own - whole[..., y[0], y[1]]).detach().abs().max()), worst


def about():
    """Width of the halo, messages and bytes of an exchange in one direction, whether the step is recorded."""
    messages, size = exchange.costs(itemsize=8, fields=3)
    return exchange.width[0], messages, size, train.recording.is_ready
