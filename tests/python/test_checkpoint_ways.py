# SPDX-License-Identifier: MIT
"""Ways in which code writes to what it holds, by other names and through others: kept bit for bit, or refused."""

import pytest

import checkpoint_more_ways
import checkpoint_ways
from restarting import run

KEPT = {**checkpoint_ways.KEPT, **checkpoint_more_ways.KEPT}
REFUSED = checkpoint_more_ways.REFUSED


@pytest.mark.parametrize("way", KEPT)
def test_what_is_written_to_in_any_way_goes_on_bit_for_bit(way, load, tmp_path):
    place = str(tmp_path / "state")
    whole = run(load, KEPT[way], 7)
    assert run(load, KEPT[way], 3, place) + run(load, KEPT[way], 4, place, restores=True) == whole
    assert len(set(whole)) > 1


@pytest.mark.parametrize("way", REFUSED)
def test_what_is_written_to_in_any_way_is_refused_where_it_cannot_be_kept(way, load, tmp_path, fails):
    path, text = REFUSED[way]
    with fails("RESULT_TYPE", path, "model.py:", "ftn_pytorch_transient"):
        run(load, text, 2, str(tmp_path / "state"))
