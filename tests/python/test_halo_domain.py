# SPDX-License-Identifier: MIT
"""Halos in one process, where each cell comes from: walls, corners, folds; how far networks look; what is refused."""

import numpy
import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch.errors import FtnPytorchError  # noqa: E402
from ftn_pytorch.halo import Exchange, OverSubdomains, halo_width  # noqa: E402
from ftn_pytorch.halo.domain import Box, Domain, boundaries  # noqa: E402

nn = torch.nn
functional = torch.nn.functional


def field(ny, nx):
    return torch.arange(ny * nx, dtype=torch.float64).reshape(ny, nx)


def refused(status, text, function, *args, **named):
    with pytest.raises(FtnPytorchError, match=text) as caught:
        function(*args, **named)
    assert caught.value.status == status


@pytest.mark.parametrize("mode", ["circular", "replicate", "constant"])
def test_walls_are_those_of_torch(mode):
    name = {"circular": "periodic", "replicate": "replicated", "constant": "closed"}[mode]
    x = torch.randn(2, 3, 4, 5, 6)
    for axes in (1, 2, 3):
        width = tuple(range(1, axes + 1))
        got = Exchange(x.shape[-axes:], width, boundary=name)(x)
        pads = [each for h in reversed(width) for each in (h, h)]
        flat = x.reshape(1, -1, *x.shape[-axes:])
        assert torch.equal(got.reshape(1, -1, *got.shape[-axes:]), nn.functional.pad(flat, pads, mode=mode))


def test_a_reflected_wall_repeats_the_cell_at_the_wall():
    got = Exchange((3,), 2, boundary="reflected")(torch.tensor([1.0, 2.0, 3.0]))
    assert got.tolist() == [2, 1, 1, 2, 3, 3, 2]


def test_ends_of_one_axis_may_differ():
    got = Exchange((3,), 2, boundary=[("closed", "replicated")])(torch.tensor([1.0, 2.0, 3.0]))
    assert got.tolist() == [0, 0, 1, 2, 3, 3, 3]


def test_corners_follow_both_axes():
    x = field(3, 4)
    got = Exchange((3, 4), 1, boundary=("reflected", "periodic"))(x)
    assert got[0].tolist() == [3, 0, 1, 2, 3, 0] and got[-1].tolist() == [11, 8, 9, 10, 11, 8]


def test_a_halo_may_be_wider_than_a_periodic_domain():
    got = Exchange((3,), 7, boundary="periodic")(torch.tensor([0.0, 1.0, 2.0]))
    assert got.tolist() == [(i - 7) % 3 for i in range(17)]


# Of points at (column + a, row + b), on a grid that is folded about a point of row n - 1 (T) or n - 1/2 (F)
SHIFTS = {"T": (0, 0), "U": (0.5, 0), "V": (0, 0.5), "F": (0.5, 0.5)}


@pytest.mark.parametrize("pivot", ["T", "F"])
@pytest.mark.parametrize("at", SHIFTS)
def test_a_fold_turns_points_about_its_pivot(pivot, at):
    ny, nx, h = 5, 6, 2
    (a, b), (px, py) = SHIFTS[at], ((0, ny - 1) if pivot == "T" else (-0.5, ny - 0.5))
    got = Exchange((ny, nx), h, boundary=(("closed", f"north fold {pivot}"), "periodic"), at=at)(field(ny, nx))
    for row in range(ny, ny + h):
        for column in range(-h, nx + h):
            x, y = 2 * px - (column + a), 2 * py - (row + b)
            assert got[row + h, column + h] == round(y - b) * nx + round(x - a) % nx


def test_vectors_change_their_sign_across_a_fold():
    x = field(4, 6) + 1
    exchange = Exchange((4, 6), 1, boundary=(("closed", "north fold T"), "periodic"))
    plain, turned = exchange(x), exchange(x, sign=-1)
    assert torch.equal(plain[:-1], turned[:-1]) and torch.equal(plain[-1], -turned[-1]) and plain[-1].min() > 0


def test_several_fields_keep_their_leading_axes():
    exchange = Exchange((3, 4), (1, 2), boundary="periodic")
    one, many = torch.randn(3, 4), torch.randn(2, 5, 3, 4)
    padded = exchange(one, many)
    assert torch.equal(padded[0], exchange(one)) and torch.equal(padded[1], exchange(many))
    assert padded[1].shape == (2, 5, 5, 8) and torch.equal(exchange.inner(padded[1]), many)


def test_gradients_and_their_gradients_are_right():
    exchange = Exchange((3, 4), 2, boundary=(("reflected", "north fold F"), "periodic"))
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: exchange(x, sign=-1), x)
    assert torch.autograd.gradgradcheck(lambda x: exchange(x * x.sin()), x)


def test_cells_that_no_rank_has_are_zero():
    domain = Domain([Box((0, 0), (2, 2)), Box((2, 2), (2, 2))], boundaries("periodic", 2), (4, 4), "T")
    places, sources, _ = domain.halo(0, (1, 1))
    found = sorted(int(place) for rank in (0, 1) for place in places[domain.owned(rank, sources)[0]])
    # the corners belong to rank 1, the sides to nobody
    assert found == [0, 3, 12, 15]


def test_numbers_of_a_host_are_taken():
    # as ftn_pytorch.host() has them
    def i4(*values):
        return numpy.array(values, numpy.int32)

    exchange = Exchange(i4(2, 3), i4(1, 1), start=i4(0, 0), extent=i4(2, 3), boundary="periodic")
    assert exchange(torch.ones(2, 3)).tolist() == torch.ones(4, 5).tolist()
    assert Exchange(i4(2, 3), numpy.int32(1), grid=i4(1, 1)).width == (1, 1)


def test_one_number_is_enough_for_one_axis():
    got = Exchange(3, 1, start=0, extent=3, boundary="periodic")(torch.tensor([1.0, 2.0, 3.0]))
    assert got.tolist() == [3.0, 1.0, 2.0, 3.0, 1.0]
    assert Exchange(3, 1, grid=1).shape == (3,)


def test_a_domain_that_makes_no_sense_is_refused():
    refused("ARGUMENT", "1.5 is no number of cells", Exchange, (3, 4), 1.5)
    refused("ARGUMENT", "4.7 is no number of cells", Exchange, (4.7, 4), 1)
    refused("ARGUMENT", "axis 0 cannot have the boundary 'open'", Exchange, (3, 3), 1, boundary="open")
    refused("ARGUMENT", "has 3 entries for 2 axes", Exchange, (3, 3), 1, boundary=["closed"] * 3)
    refused("ARGUMENT", "axis 1 cannot have", Exchange, (3, 3), 1, boundary=("closed", ("closed", "north fold T")))
    refused("ARGUMENT", "periodic at one end", Exchange, (3,), 1, boundary=[("closed", "periodic")])
    refused("ARGUMENT", "the last axis must be", Exchange, (3, 3), 1, boundary=(("closed", "north fold T"), "closed"))
    refused("ARGUMENT", "at='W'", Exchange, (3, 3), 1, at="W")
    refused("ARGUMENT", "reaches beyond both", Exchange, (3,), 4, boundary="reflected")
    refused("ARGUMENT", "do not fit", Exchange, (3, 3), (1, 1, 1))
    refused("ARGUMENT", "not for 2 axes", Exchange, (3, 3), 1, start=(0,))
    refused("ARGUMENT", "grid= or start=", Exchange, (3, 3), 1, start=(0, 0), grid=(1, 1))
    refused("ARGUMENT", "needs a cell at least", Exchange, (0, 3), 1)
    refused("ARGUMENT", r"1 ranks need grid=.*; grid=\[2, 1\]", Exchange, (3, 3), 1, grid=(2, 1))
    refused("FORMAT", "is not inside of", Exchange, (3, 3), 1, start=(0, 2), extent=(3, 4))
    boxes = [Box((0,), (3,)), Box((2,), (3,))]
    refused("FORMAT", "ranks 0 and 1 have cells in common", Domain, boxes, boundaries("closed", 1), None, "T")


def test_fields_that_do_not_fit_are_refused():
    exchange = Exchange((3, 4), 1)
    refused("SHAPE", r"is for sub-domains of \(3, 4\), and a field is \(4, 3\)", exchange, torch.zeros(4, 3))
    refused("SHAPE", "a field is", exchange, torch.zeros(4))
    refused("DTYPE", "one type and device", exchange, torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.float64))
    refused("ARGUMENT", "no field", exchange)
    refused("ARGUMENT", "a field is a ndarray", exchange, numpy.zeros((3, 4)))
    refused("SHAPE", "a field with its halo is", exchange.inner, torch.zeros(3, 4))
    assert exchange(torch.zeros(0, 2, 3, 4)).shape[0] == 0
    x = torch.ones(3, 4, requires_grad=True)
    exchange(x).mul_(2).sum().backward()
    assert x.grad[1, 1] == 2
    for dtype, sign in ((torch.bool, -1), (torch.uint8, -1), (torch.int32, 0.5)):
        refused("DTYPE", "there is no", exchange, torch.zeros(3, 4, dtype=dtype), sign=sign)
    assert exchange(torch.ones(3, 4, dtype=torch.int32), sign=-1).dtype == torch.int32


class Called(nn.Module):
    """A function as a network of one channel."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def pooled(x):
    return functional.interpolate(functional.avg_pool2d(x, 2), size=x.shape[-2:])


def box(x):
    return functional.avg_pool2d(x, 3, 1, 1)


@pytest.mark.parametrize(
    ("function", "width"),
    [
        (lambda x: torch.where(x > 0, x.roll(1, -1), x.roll(-2, -1)), (0, 2)),  # by the sign of each cell
        (lambda x: box((x > 0).to(x.dtype)), (1, 1)),  # a comparison hides what is not a number
        (lambda x: box(torch.sqrt(x)), (1, 1)),  # of positive numbers only
        (lambda x: torch.where(x > 273.15, box(x), x), (1, 1)),  # of large numbers only
        (lambda x: functional.dropout(box(x), 0.5, True), (1, 1)),
        (lambda x: x.argmax(1, keepdim=True) + (box(x) > 0), (1, 1)),
        (pooled, (2, 2)),
        (lambda x: box(pooled(box(x))), (4, 4)),
        (lambda x: x * (torch.arange(x.shape[-1]) % 2), (2, 2)),  # the same for shifts of two cells
        (lambda x: box(x)[..., 2:-2, 3:-3], (2, 3)),  # more is cut off than it looks
        (lambda x: functional.fold(functional.unfold(x, 3, padding=1), x.shape[-2:], 3, padding=1), (1, 1)),
        (lambda x: x * box(box(torch.ones_like(x))), (2, 2)),  # the edges have other numbers than the inside
    ],
)
def test_what_a_function_of_the_user_looks_at(function, width):
    assert halo_width(Called(function), channels=1) == width


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x + torch.linspace(0, 1, x.shape[-1]), "depend on where a cell is"),
        (lambda x: functional.pad(x, (1, 0))[..., :-1] - x.mean(), "or on all cells"),
        (lambda x: x / x[0, 0].numel(), "on how many cells there are"),
        (lambda x: x - torch.nanmedian(x), "or on all cells"),
        (lambda x: box(x) / torch.nan_to_num(x).amax((-2, -1), keepdim=True), "on how many cells there are"),
        (lambda x: (x, x), "this network makes a tuple"),
        (lambda x: x.sum(1), "this network makes a tensor with 3 axes"),
        (
            lambda x: box(x)[..., ::2, ::2],
            "65 cells of the input become 33 along axis 0 of the output, and 67 become 34",
        ),
    ],
)
def test_functions_over_subdomains_that_would_be_others_are_refused(function, text):
    refused("ARGUMENT", text, halo_width, Called(function), channels=1)


def test_what_a_network_raises_is_seen():
    with pytest.raises(ZeroDivisionError):
        halo_width(Called(lambda x: x / (1 // 0)), channels=1)


@pytest.mark.parametrize(
    ("network", "width"),
    [
        (nn.Conv2d(1, 1, 1), (0, 0)),
        (nn.Conv2d(1, 1, (3, 5)), (1, 2)),
        (nn.Conv2d(1, 1, 3, padding=1, dilation=1), (1, 1)),
        (nn.Sequential(nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.Conv2d(4, 1, 7, padding=6, dilation=2)), (8, 8)),
        (nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4).eval(), nn.Dropout(), nn.Conv2d(4, 1, 3)), (2, 2)),
        (nn.Conv2d(1, 1, 3, padding="same", padding_mode="reflect"), (1, 1)),
        (nn.Sequential(nn.Conv2d(1, 1, 3, padding=20, dilation=20), nn.GELU()), (20, 20)),
        (nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.PixelShuffle(2)), (4, 4)),
        (nn.Sequential(nn.Conv2d(1, 2, 3, stride=3), nn.Upsample(scale_factor=3)), (3, 3)),
        (nn.Sequential(nn.AvgPool2d(4), nn.Conv2d(1, 1, 3, 1, 9, 9), nn.Upsample(scale_factor=4)), (40, 40)),
    ],
    ids=str,
)
def test_it_is_found_how_far_a_network_looks(network, width):
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    assert halo_width(network) == width
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        return x + self.conv(torch.relu(self.conv(x)))


def test_a_layer_that_is_used_twice_counts_twice():
    assert halo_width(Residual()) == (2, 2)


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), "depend on cells 256 away or on all cells"),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.InstanceNorm2d(2)), "depend on cells 256 away or on all cells"),
        (nn.Conv2d(1, 1, 3, stride=2), "65 cells of the input become 32"),
        (nn.MaxPool2d(2), "give channels="),
        (nn.Conv2d(1, 1, 2), "65 cells of the input become 64"),
    ],
    ids=str,
)
def test_networks_that_are_not_local_are_refused(network, text):
    refused("ARGUMENT", text, halo_width, network)


def test_other_numbers_of_axes():
    assert halo_width(nn.Conv1d(1, 1, 5, padding=2), axes=1) == (2,)
    assert halo_width(nn.Conv3d(1, 1, (1, 3, 5)), axes=3) == (0, 1, 2)
    refused("ARGUMENT", "axes=4", halo_width, nn.Conv2d(1, 1, 3), axes=4)
    refused("ARGUMENT", "no output of this network depends", halo_width, Silent(), channels=1)


class Silent(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)


def test_a_network_may_change_its_state_in_each_call():
    torch.manual_seed(0)
    layers = [nn.Conv2d(channels, 32, 3, padding=1) for channels in (2, 32)]
    network = nn.Sequential(*map(nn.utils.parametrizations.spectral_norm, layers))
    before = [each.clone() for each in network.buffers()]
    assert halo_width(network) == (2, 2)
    assert all(map(torch.equal, before, network.buffers()))


def test_a_layer_that_looks_farther_in_training_is_found_out():
    net = nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.BatchNorm2d(1)).eval()
    over = OverSubdomains(net, Exchange((4, 5), 1))
    over(torch.zeros(1, 1, 4, 5))
    net.train()
    refused("ARGUMENT", "or on all cells", over, torch.zeros(1, 1, 4, 5))
    net.eval()
    over(torch.zeros(1, 1, 4, 5))


def test_a_network_over_one_sub_domain():
    net = nn.Sequential(nn.Conv2d(1, 3, 5, padding=2, padding_mode="circular"), nn.Tanh(), nn.Conv2d(3, 1, 1)).double()
    x = torch.randn(2, 1, 6, 7, dtype=torch.float64)
    over = OverSubdomains(net, Exchange((6, 7), 3, boundary="periodic"))
    torch.testing.assert_close(over(x), net(x), rtol=0, atol=1e-14)
    assert {name.removeprefix("network.") for name in over.state_dict()} == set(net.state_dict())
    refused(
        "ARGUMENT", r"looks \(2, 2\) cells away, and the halo is \(1, 1\)", OverSubdomains, net, Exchange((6, 7), 1)
    )
