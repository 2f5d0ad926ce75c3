# SPDX-License-Identifier: MIT
"""A CNN over sub-domains beside the same CNN over the whole domain: what ranks of an MPI or of a process group run."""

import torch

from ftn_pytorch.halo import Exchange, OverSubdomains, halo_width

PADS = {"periodic": "circular", "replicated": "replicate"}


def network(channels=2, padding="valid"):
    torch.manual_seed(3)
    layer = torch.nn.Conv2d
    return torch.nn.Sequential(
        layer(channels, 3, 3, padding=padding),
        torch.nn.Tanh(),
        layer(3, 3, (5, 3), dilation=(1, 2), padding=padding),
        torch.nn.Tanh(),
        layer(3, 1, 1),
    ).double()


class UNet(torch.nn.Module):
    """Pools twice, and undoes it: its stride is four."""

    def __init__(self, channels=2, padding="same"):
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Conv2d(channels, 3, 3, padding=padding)
        self.down = torch.nn.Conv2d(3, 3, 3, padding=padding)
        self.up = torch.nn.ConvTranspose2d(3, 3, 4, 4)
        self.last = torch.nn.Conv2d(6, 1, 3, padding=padding)
        self.double()

    def forward(self, x):
        wide = torch.tanh(self.first(x))
        narrow = torch.nn.functional.avg_pool2d(torch.nn.functional.max_pool2d(wide, 2), 2)
        return self.last(torch.cat([self.up(torch.tanh(self.down(narrow))), wide], 1))


def padded(field, width, boundary):
    """The whole domain with its halo, by torch and by hand."""
    for axis, (h, name) in enumerate(zip(width, boundary)):
        dim = field.dim() - len(width) + axis
        n = field.shape[dim]
        lower, upper = {
            "periodic": ([*range(-h, 0)], [i % n for i in range(n, n + h)]),
            "reflected": ([*range(h - 1, -1, -1)], [*range(n - 1, n - 1 - h, -1)]),
            "replicated": ([0] * h, [n - 1] * h),
            "closed": ([0] * h, [0] * h),
        }[name]
        ends = [
            field.index_select(dim, torch.tensor([i % n for i in each], dtype=torch.long, device=field.device))
            for each in (lower, upper)
        ]
        if name == "closed":
            ends = [torch.zeros_like(each) for each in ends]
        field = torch.cat([ends[0], field, ends[1]], dim)
    return field


def slices(rank, grid, rows, columns):
    iy, ix = divmod(rank, grid[1])
    y, x = sum(rows[:iy]), sum(columns[:ix])
    return slice(y, y + rows[iy]), slice(x, x + columns[ix])


def differences(rank, grid, rows, columns, boundary, total, padding="valid", device="cpu", make=network):
    """Largest differences of outputs, gradients of inputs and, relative, of weights. total: sums over ranks."""
    net = make(padding=padding).to(device)
    width = halo_width(net)
    generator = torch.Generator().manual_seed(1)
    whole = torch.randn(2, 2, sum(rows), sum(columns), generator=generator, dtype=torch.float64)
    whole = whole.to(device).requires_grad_()
    plain = make().to(device)
    wanted = plain(padded(whole, width, boundary))
    cut = [(n - m) // 2 for n, m in zip(wanted.shape[2:], whole.shape[2:])]
    wanted = wanted[(..., *(slice(c, n - c) for c, n in zip(cut, wanted.shape[2:])))]
    weights = torch.linspace(1, 2, wanted.numel(), dtype=torch.float64, device=device).reshape(wanted.shape)
    (weights * wanted**2).sum().backward()
    mine = (..., *slices(rank, grid, rows, columns))
    part = whole.detach()[mine].clone().requires_grad_()
    exchange = Exchange(part.shape[-2:], width, grid=grid, boundary=boundary)
    got = OverSubdomains(net, exchange)(part)
    (weights[mine] * got**2).sum().backward()
    found = [float((got - wanted[mine]).abs().max()), float((part.grad - whole.grad[mine]).abs().max())]
    for own, right in zip(net.parameters(), plain.parameters()):
        found.append(float((total(own.grad) - right.grad).abs().max() / right.grad.abs().max()))
    return found


def alone(whole, width, boundary, at):
    """What one rank with the whole domain makes of it."""
    from ftn_pytorch.halo.domain import Box, Domain, boundaries

    shape = tuple(whole.shape[1:])
    domain = Domain([Box((0, 0), shape)], boundaries(boundary, 2), None, at)
    places, sources, across = domain.halo(0, (width, width))
    result = torch.nn.functional.pad(whole, [width] * 4).reshape(len(whole), -1)
    values = whole.reshape(len(whole), -1)[:, sources.clamp(min=0)] * torch.where(across.bool(), -1, 1)
    result[:, places] = torch.where(sources < 0, 0, values)
    return result.reshape(len(whole), *(n + 2 * width for n in shape))


def trained(rank, size, keeps, device="cpu"):
    """Losses and weights of a CNN over sub-domains that all ranks train, and the step; recorded if keeps."""
    from ftn_pytorch import average_gradients, recorded

    net = network().to(device)
    over = OverSubdomains(net, Exchange((4, 5), halo_width(net), grid=(size, 1), boundary=("closed", "periodic")))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, capturable=device != "cpu")

    def step(x, target):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(over(x), target)
        loss.backward()
        average_gradients(net)
        optimizer.step()
        return loss.detach()

    step = recorded(step) if keeps else step
    generator = torch.Generator().manual_seed(rank)
    losses = []
    for _ in range(20):
        x = torch.randn(1, 2, 4, 5, generator=generator, dtype=torch.float64).to(device)
        losses.append(float(step(x, x.sum(1, keepdim=True))))
    weights = [parameter.detach().cpu().numpy().tobytes().hex() for parameter in net.parameters()]
    return [losses, weights, over.exchange._neighbours.calls], step
