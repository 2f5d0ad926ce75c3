# SPDX-License-Identifier: MIT
"""FTN_PYTORCH_PROFILE: the table at the end."""

import re


def rows_of(text: str) -> dict[str, list[list[str]]]:
    """Cells of each row by function: calls and failures, then mean, longest, share of call, Python and crossing."""
    rows = [[part.split() for part in line.split("|")] for line in text.splitlines()[3:]]
    return {" ".join(cells[0][:-2]): [cells[0][-2:], *cells[1:]] for cells in rows}


def test_table_has_calls_and_time_of_each_function(run, script) -> None:
    done = run(f"load={script}", *["forward"] * 5, "train", "call=fails", PROFILE=1)
    assert done.stderr.startswith("ftn_pytorch profile of rank 0: ")
    rows = rows_of(done.stderr)
    assert rows["weather.ftn_pytorch_forward"][0] == ["5", "0"]
    assert rows["weather.ftn_pytorch_train"][0] == ["1", "0"]
    assert rows["weather.fails"][0] == ["1", "1"]
    assert rows["load of weather"][0] == ["1", "0"]


def test_time_is_split_into_crossing_and_python(run, tmp_path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ndef ftn_pytorch_forward(x):\n    time.sleep(0.05)\n    return x\n")
    rows = rows_of(run(f"load={slow}", "forward", "forward", PROFILE=1).stderr)
    whole, python, crossing = (
        [float(cell.rstrip("%")) for cell in cells] for cells in rows["slow.ftn_pytorch_forward"][1:]
    )
    assert python[0] >= 50_000 and python[1] >= python[0]
    assert abs(whole[0] - python[0] - crossing[0]) < 0.02
    assert whole[2] > 0
    assert rows["load of slow"][2] == ["-", "-", "-"]


def test_files_of_the_state_have_rows(run, script) -> None:
    script.write_text(script.read_text() + "\nkept = numpy.ones(3)\n")
    done = run(f"load={script}", "save=state", "checkpoint=steps", "checkpoint=steps", "restore=nowhere", PROFILE=1)
    rows = rows_of(done.stderr)
    assert {name: cells[0] for name, cells in rows.items()} == {
        "load of weather": ["1", "0"],
        "save of weather": ["1", "0"],
        "checkpoint of weather": ["2", "0"],
        "restore of weather": ["1", "1"],
    }


def test_threads_are_added_up(run, script) -> None:
    assert rows_of(run(f"load={script}", "threads", PROFILE=1).stderr)["weather.ftn_pytorch_forward"][0] == ["6", "0"]


def test_two_modules_of_one_script_have_two_rows(run, script) -> None:
    # the handle of the first one is replaced, so its name is free again
    rows = rows_of(run(f"load={script}", "forward", f"load={script}", "forward", PROFILE=1).stderr)
    assert rows["weather.ftn_pytorch_forward"][0] == ["2", "0"]


def test_files_of_one_stem_have_rows_of_their_own(run, script, saved_model, tmp_path) -> None:
    (tmp_path / "net.py").write_text(script.read_text())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "net.py").write_text(script.read_text())
    loads = (f"direct={saved_model}", "load=net.py", "load=other/net.py", "load=net.py", "load=net.tar")
    actions = [action for load in loads for action in (load, "forward")]
    rows = rows_of(run(*actions, PROFILE=1).stderr)
    assert {name: int(cells[0][0]) for name, cells in rows.items()} == {
        "load of net": 1,
        "load of net.py": 2,
        "load of net.py#2": 1,
        "load of net.tar": 1,
        "net.ftn_pytorch_forward": 1,
        "net.py.ftn_pytorch_forward": 3,
        "net.py#2.ftn_pytorch_forward": 1,
    }


def test_table_goes_to_a_file(run, script, tmp_path) -> None:
    ranks = {"PMI_SIZE": "2", "PMI_RANK": "1"}
    done = run(f"load={script}", "forward", PROFILE=tmp_path / "profile.txt", environment=ranks)
    assert done.stderr == ""
    assert "profile of rank 1" in (tmp_path / "profile.1.txt").read_text()


def test_direct_path_is_covered_without_python(run, saved_model) -> None:
    rows = rows_of(run(f"direct={saved_model}", "forward", "forward", PROFILE=1).stderr)
    assert rows["net.ftn_pytorch_forward"][0] == ["2", "0"]
    assert rows["net.ftn_pytorch_forward"][2] == ["-", "-", "-"]


def test_children_do_not_print(run, script) -> None:
    done = run(f"load={script}", "forward", "fork", PROFILE=1)
    assert re.findall("profile of rank", done.stderr) == ["profile of rank"]
    assert rows_of(done.stderr)["weather.ftn_pytorch_forward"][0] == ["1", "0"]
