# SPDX-License-Identifier: MIT
"""The share of the time that a program spends in its script, as a column of the log."""

import inspect

import pytest

from ftn_pytorch.kit import Log, timing


@pytest.fixture
def clock(monkeypatch):
    """clock(seconds): what the time goes on by; nothing else moves it."""
    now = [100.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    def clock(seconds):
        now[0] += seconds

    return clock


def test_each_row_has_the_share_since_the_row_before(clock, tmp_path):
    log = Log(str(tmp_path / "log.csv"))

    @log.timing
    def inner():
        clock(1)

    @log.timing
    def train(step):
        """Its own."""
        clock(1)
        inner()
        log.write(step)
        clock(2)
        return step

    clock(6)
    assert train(1) == 1
    clock(14)
    train(2)
    clock(1)
    log.write(3)
    log.flush()
    # 2 of 8, then 2 from after the row and 2 more of 18, then 2 of 3
    assert (tmp_path / "log.csv").read_text() == f"step,python_share\n1,0.25\n2,{4 / 18}\n3,{2 / 3}\n"
    assert train.__doc__ == "Its own." and list(inspect.signature(train).parameters) == ["step"]


def test_blocks_that_fail_count_too(clock):
    shares = timing.Timing()
    with pytest.raises(ZeroDivisionError), shares:
        clock(1)
        raise ZeroDivisionError
    clock(3)
    assert shares.share() == 0.25


def test_no_column_where_nothing_is_timed(tmp_path):
    log = Log(str(tmp_path / "log.csv"))
    log.write(1, loss=0.5)
    log.flush()
    assert (tmp_path / "log.csv").read_text() == "step,loss\n1,0.5\n"
