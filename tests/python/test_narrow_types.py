# SPDX-License-Identifier: MIT
"""Exported programs whose inputs are of types that Fortran lacks: unsigned integers, half precision."""

import pytest

torch = pytest.importorskip("torch")

from formats_models import call, close, load  # noqa: E402


class Pixels(torch.nn.Module):
    def forward(self, pixels, fields: dict[str, torch.Tensor]):
        return pixels.to(torch.float32) / 255 + fields["weight"].to(torch.float32)


@pytest.fixture(scope="module", params=["float16", "bfloat16"])
def program(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("program") / "net.pt2")
    half = getattr(torch, request.param)
    inputs = torch.ones(2, 3, dtype=torch.uint8), {"weight": torch.ones(3, dtype=half)}
    torch.export.save(torch.export.export(Pixels(), inputs), path)
    return path, half


@pytest.mark.parametrize("integer", [torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("real", [torch.float32, torch.float64])
def test_arrays_are_converted(program, integer, real):
    path, half = program
    runner = load(path)
    for value in (0, 255, 7):
        pixels, weight = torch.full((2, 3), value, dtype=integer), torch.full((3,), 0.1, dtype=real)
        expected = pixels.to(torch.float32) / 255 + weight.to(half).to(torch.float32)
        close(call(runner, pixels, weight=weight)[1], [expected])
        close(call(runner, pixels, weight)[1], [expected])
    close(call(runner, pixels.to(torch.uint8), weight.to(half))[1], [expected])


def test_numbers_out_of_range_are_refused(program, fails):
    path, half = program
    runner = load(path)
    weight = torch.ones(3)
    for value in (-1, 256):
        with fails("DTYPE", "pixels", f"{value}", "uint8"):
            call(runner, torch.full((2, 3), value), weight=weight)
    with fails("DTYPE", "weight", "too large"):
        call(runner, torch.ones(2, 3, dtype=torch.int16), weight=torch.full((3,), 1e300, dtype=torch.float64))
    assert call(runner, torch.ones(2, 3, dtype=torch.int16), weight=torch.full((3,), torch.inf))[1][0].isinf().all()


def test_other_types_are_refused_with_what_to_pass(program, fails):
    runner = load(program[0])
    with fails("DTYPE", "array of float32", "expects uint8", "pass an integer array"):
        call(runner, torch.ones(2, 3), weight=torch.ones(3))
    with fails("DTYPE", "array of int64", "pass a real array"):
        call(runner, torch.ones(2, 3, dtype=torch.int16), weight=torch.ones(3, dtype=torch.int64))
