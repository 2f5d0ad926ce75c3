# SPDX-License-Identifier: MIT
"""Numbers that a function takes out of tensors by ways on which no operator is called: it goes the way of each call."""

import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

MODES = {"": lambda function: function, "no_grad": torch.no_grad(), "inference": torch.inference_mode()}
LENGTHS = ([3, 2, 2, 1], [3, 3, 1, 1])
"""With as many rows, and other ones that are together."""


def _reads(which, x, lengths):
    if which == "text":
        return x * 2 if "[[" in str(lengths[lengths > 2]) or "3, 3" in str(lengths) else x * 3
    if which == "split":
        return x.tensor_split(lengths[1:])[0].sum(0)
    if which == "losses":
        targets = torch.ones(4, 3, dtype=torch.long, device="cpu")
        return torch.nn.functional.ctc_loss(x.log_softmax(-1).transpose(0, 1), targets, lengths, lengths)
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    return pad_packed_sequence(NETS[which](packed)[0], batch_first=True)[0]


torch.manual_seed(0)
NETS = {each.__name__: each(2, 3, batch_first=True) for each in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", ["text", "split", "losses", *NETS])
def test_integers_in_host_memory_decide_in_each_call(which, mode):
    function = MODES[mode](lambda x, lengths: _reads(which, x, lengths))
    apply = recorded(function)
    with warnings.catch_warnings(action="ignore", category=FtnPytorchWarning):
        for call in range(24):
            x, lengths = torch.randn(4, 3, 2), torch.tensor(LENGTHS[call >= 14])
            assert torch.equal(apply(x, lengths), function(x, lengths)), call
    # in inference mode more of it is seen: a layer is one operator, and a split asks for each number
    assert mode == "inference" or not apply.recording.is_ready


@pytest.mark.parametrize("mode", MODES)
def test_bytes_of_what_was_computed_decide_in_each_call(mode):
    function = MODES[mode](lambda x: x + pickle.dumps((x > 0).float()).count(b"\0\0\x80\x3f" * 3))
    apply = recorded(function)
    with pytest.warns(FtnPytorchWarning, match="uses the memory of a tensor as it is"):
        for call in range(24):
            x = torch.full((3,), 1.0 if call < 14 else -1.0)
            assert torch.equal(apply(x), function(x)), call


def test_an_integer_tensor_may_give_its_shape():
    @recorded
    def function(x, like):
        return x.view_as(like).to(like.device) * 2

    for call in range(12):
        x = torch.randn(6)
        assert torch.equal(function(x, torch.full((2, 3), call)), x.view(2, 3) * 2)
    assert function.recording.is_ready, function.recording.obstacle
