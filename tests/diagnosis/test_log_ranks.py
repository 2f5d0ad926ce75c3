# SPDX-License-Identifier: MIT
"""FTN_PYTORCH_LOG_RANKS and FTN_PYTORCH_LOG_LIMIT: who writes what observation finds, and how much."""

import json

WRITING = {"LOG": "info", "LOG_FILE": "log.%r", "PROFILE": "profile.%r", "TRACE": "trace.%r", "RECORD": "calls.%r"}


def of_four(rank: int) -> dict[str, str]:
    return {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": str(rank)}


def written(folder, rank: int) -> list[str]:
    return sorted(path.stem for path in folder.glob(f"*.{rank}"))


def test_only_chosen_ranks_write(run, script, tmp_path) -> None:
    for rank in (0, 1, 3):
        run(f"load={script}", "forward", **WRITING, LOG_RANKS="0,2-3", environment=of_four(rank))
    assert written(tmp_path, 0) == written(tmp_path, 3) == ["calls", "log", "profile", "trace"]
    assert written(tmp_path, 1) == []


def test_with_a_wrong_list_rank_0_writes_alone(run, script, tmp_path) -> None:
    for rank in (0, 1):
        run(f"load={script}", "forward", **WRITING, LOG_RANKS="all", environment=of_four(rank))
    assert written(tmp_path, 0) == ["calls", "log", "profile", "trace"]
    assert written(tmp_path, 1) == []


def test_log_and_trace_end_at_the_limit_and_the_program_goes_on(run, script, tmp_path) -> None:
    variables = {"LOG": "debug", "LOG_FILE": "log", "TRACE": "trace", "PROFILE": "profile", "LOG_LIMIT": "3K"}
    done = run(f"load={script}", *["forward"] * 40, **variables)
    assert done.stdout.count("forward FTN_PYTORCH_OK") == 40
    ending = "ends here: it has the size of FTN_PYTORCH_LOG_LIMIT, 3K"
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[-1].endswith(f"info the log {ending}") and sum(ending in line for line in lines) == 1
    events = json.loads((tmp_path / "trace").read_text())
    assert events[-1]["name"] == f"the trace {ending}" and len(events) < 40
    assert (tmp_path / "profile").read_text().count(" 40 ")


def test_recorded_calls_end_at_the_limit(run, script, tmp_path) -> None:
    done = run(f"load={script}", *["forward"] * 5, RECORD="calls", LOG_LIMIT="100")
    assert done.stdout.count("forward FTN_PYTORCH_OK") == 5
    # an array of 24 bytes goes in and one of 24 comes out; state and script do not count
    folders = sorted(path.name for path in (tmp_path / "calls").glob("call-*"))
    assert folders == ["call-0001", "call-0002"]
    assert all((tmp_path / "calls" / each / "result.json").exists() for each in folders)
