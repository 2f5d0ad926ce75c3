# SPDX-License-Identifier: MIT
"""Which ranks exchange halos: those of a test of all pairs, though only near ones are looked at."""

import itertools
import json
import random

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch.errors import FtnPytorchError  # noqa: E402
from ftn_pytorch.halo import Exchange  # noqa: E402
from ftn_pytorch.halo.domain import Box, Domain, boundaries  # noqa: E402
from ftn_pytorch.ranks import neighbours  # noqa: E402

BOUNDARIES = [
    "periodic",
    "closed",
    ("reflected", "periodic"),
    [("closed", "north fold T"), "periodic"],
    [("replicated", "north fold F"), "periodic"],
    ["periodic", ("replicated", "reflected")],
]


def cut(draw, box, depth):
    """Boxes of very different sizes, some of which nobody has."""
    axis = draw.randrange(2)
    if depth == 0 or box.shape[axis] < 3:
        return [box] if draw.random() < 0.85 else []
    n = draw.randrange(1, box.shape[axis])
    ends = [n, box.shape[axis] - n]
    parts = []
    for begin, length in zip((0, n), ends):
        start, shape = list(box.start), list(box.shape)
        start[axis], shape[axis] = start[axis] + begin, length
        parts += cut(draw, Box(tuple(start), tuple(shape)), depth - 1)
    return parts


def made_by(rank, domain, needs, width, boundary, monkeypatch):
    """The exchange of a rank, which the others tell what they need."""
    described = {"width": width, "grid": None, "extent": domain.extent, "at": domain.at, "boundary": boundary}
    everyone = [json.dumps({**described, "shape": box.shape, "start": box.start}) for box in domain.boxes]
    told = []

    def texts_of_all(ours, text, purpose):
        told.append(json.loads(text))
        return everyone if len(told) == 1 else [json.dumps(each) for each in needs]

    monkeypatch.setattr(neighbours, "texts_of_all", texts_of_all)
    monkeypatch.setattr(neighbours, "own_rank", lambda ours: rank)
    box = domain.boxes[rank]
    exchange = Exchange(box.shape, width, start=box.start, extent=domain.extent, boundary=boundary, at=domain.at)
    assert told[1] == needs[rank]
    return exchange


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=str)
def test_neighbours_are_those_of_all_pairs(boundary, monkeypatch):
    draw = random.Random(str(boundary))
    for case in range(4):
        extent = (draw.randrange(8, 14), draw.randrange(8, 14))
        boxes = cut(draw, Box((0, 0), extent), 4) or [Box((0, 0), extent)]
        draw.shuffle(boxes)
        width, at = (draw.randrange(4), draw.randrange(4)), "TUVF"[case]
        domain = Domain(boxes, boundaries(boundary, 2), extent, at)
        halos = [domain.halo(each, width) for each in range(len(boxes))]
        needs = [[other for other in range(len(boxes)) if len(domain.owned(other, halo[1])[0])] for halo in halos]
        for rank in draw.sample(range(len(boxes)), min(3, len(boxes))):
            exchange = made_by(rank, domain, needs, width, boundary, monkeypatch)
            places, sources, across = halos[rank]
            found = {other: domain.owned(other, sources)[0] for other in needs[rank]}
            chosen = torch.cat([*found.values(), torch.zeros(0, dtype=torch.int64)])
            assert torch.equal(exchange._places, places[chosen])
            assert torch.equal(exchange._across, across[chosen].bool())
            asking = [other for other, wanted in enumerate(needs) if rank in wanted]
            rows = {other: domain.owned(rank, halos[other][1])[1] for other in asking}
            assert torch.equal(exchange._index, torch.cat([*rows.values(), torch.zeros(0, dtype=torch.int64)]))
            ways = exchange._neighbours
            assert {other: n for other, n in ways.received.items() if n} == {o: len(each) for o, each in found.items()}
            assert {other: n for other, n in ways.sent.items() if n} == {o: len(each) for o, each in rows.items()}


def test_cells_in_common_are_those_of_all_pairs():
    draw = random.Random(1)
    refused = 0
    for _ in range(300):
        boxes = [
            Box((draw.randrange(30), draw.randrange(30)), (draw.randrange(1, 9), draw.randrange(1, 9)))
            for _ in range(draw.randrange(2, 9))
        ]
        pairs = [(i, j) for i, j in itertools.product(range(len(boxes)), repeat=2) if j < i]
        wrong = next(((i, j) for i, j in pairs if boxes[i].overlaps(boxes[j])), None)
        refused += wrong is not None
        try:
            Domain(boxes, boundaries("closed", 2), None, "T")
            assert wrong is None
        except FtnPytorchError as failure:
            assert wrong is not None and f"ranks {wrong[1]} and {wrong[0]} have cells in common" in failure.text
    assert 50 < refused < 250


@pytest.mark.parametrize("grid", [(40, 40), (1, 1600), (1600, 1)], ids=str)
def test_only_near_ranks_are_looked_at(grid, monkeypatch):
    seen = {"overlaps": 0, "owned": 0}

    def counted(of, name):
        plain = getattr(of, name)

        def function(*arguments):
            seen[name] += 1
            return plain(*arguments)

        monkeypatch.setattr(of, name, function)

    counted(Box, "overlaps")
    counted(Domain, "owned")
    boxes = [Box((5 * iy, 4 * ix), (5, 4)) for iy in range(grid[0]) for ix in range(grid[1])]
    domain = Domain(boxes, boundaries("periodic", 2), None, "T")
    assert seen["overlaps"] <= 8 * len(boxes)
    rank = len(boxes) // 2
    assert len(domain.owners(domain.halo(rank, (2, 2))[1])) == (8 if 1 not in grid else 3)
    assert seen["owned"] <= 40
