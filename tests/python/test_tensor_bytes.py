# SPDX-License-Identifier: MIT
"""Bytes of tensors of any type and any strides."""

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch.ranks import equality  # noqa: E402
from ftn_pytorch.recording import comparison  # noqa: E402
from ftn_pytorch.system.tensor_bytes import bytes_of  # noqa: E402

TYPES = [torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64, torch.bool]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("part", [lambda x: x, lambda x: x.t(), lambda x: x[::2, :1][:1], lambda x: x[:0]])
def test_they_are_the_elements_in_order(dtype, part):
    tensor = part(torch.arange(12).reshape(4, 3).to(dtype))
    found = bytes_of(tensor)
    assert found.dtype == torch.uint8 and found.shape == (tensor.numel() * tensor.element_size(),)
    assert torch.equal(found.clone().view(dtype), tensor.reshape(-1))
    assert torch.equal(bytes_of(tensor, torch.int8).view(torch.uint8), found)


def test_what_is_conjugate_or_negative_by_a_bit_is_written_so():
    z = torch.tensor([1 + 2j])
    assert torch.equal(bytes_of(z.conj()), bytes_of(torch.tensor([1 - 2j])))
    assert torch.equal(bytes_of(z.conj().imag), bytes_of(torch.tensor([-2.0])))


def test_one_element_with_a_stride_has_a_digest_and_is_compared():
    one = torch.zeros(4, dtype=torch.complex128)[::2][:1]
    assert one.stride() == (2,)
    assert equality.digest(one) == equality.digest(torch.zeros(1, dtype=torch.complex128))
    assert comparison.is_same(one, torch.zeros(1, dtype=torch.complex128), 0.0)
