# SPDX-License-Identifier: MIT
"""Arguments of saved recordings that have memory in common, of which one is written."""

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import load_recording, recorded, save_recording  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

ARGUMENTS = {
    "one array": lambda memory: (memory[:4], memory[:4]),
    "one section": lambda memory: (memory[::3], memory[::3]),
    "parts of one array": lambda memory: (memory[:4], memory[2:6]),
    "sections between each other": lambda memory: (memory[::3], memory[1::3]),
    "sections side by side": lambda memory: (memory[:4], memory[4::2]),
    "an array and a section": lambda memory: (memory[:4], memory[::3]),
    "sections that overlap": lambda memory: (memory[:8:2], memory[2:10:2]),
}
REFUSED = ("an array and a section", "sections that overlap")


@recorded
def step(x, y):
    before = x.sum()
    y.mul_(2)
    return before, x.sum()


@pytest.fixture
def saved(tmp_path):
    for _ in range(8):
        step(torch.ones(4), torch.ones(4))
    return load_recording(save_recording(str(tmp_path / "step.ftr"), {"step": step}, {}))


@pytest.mark.parametrize("which", ARGUMENTS)
def test_what_is_written_is_seen_through_the_other_argument(saved, which, fails):
    """Where strides are not those of a recording, a run works with copies: one of both, or none of a part."""
    memory, expected = torch.arange(16.0)[:12], torch.arange(16.0)[:12]
    if which in REFUSED:
        with fails("ARGUMENT", "is given two arrays that overlap, and writes one of them"):
            saved.call("step", *ARGUMENTS[which](memory))
    else:
        found = saved.call("step", *ARGUMENTS[which](memory))
        assert [each.item() for each in found] == [
            each.item() for each in step.__wrapped__(*ARGUMENTS[which](expected))
        ]
    assert torch.equal(memory, expected)


def test_one_array_that_would_be_copied_in_two_ways_is_refused(tmp_path, fails):
    for _ in range(8):
        step(torch.ones(4, 4), torch.ones(4, 4).t())
    saved = load_recording(save_recording(str(tmp_path / "step.ftr"), {"step": step}, {}))
    memory = torch.arange(64.0).reshape(8, 8)
    section = memory[::2, ::2]
    with fails("ARGUMENT", "is given two arrays that overlap, and writes one of them"):
        saved.call("step", section, section)
    assert torch.equal(memory, torch.arange(64.0).reshape(8, 8))
