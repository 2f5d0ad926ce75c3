# SPDX-License-Identifier: MIT
"""The command that draws logs: what is in the picture, what is refused, and that pictures are whole."""

import builtins
import math
import os
import sys
import xml.etree.ElementTree

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("matplotlib")

from ftn_pytorch.__main__ import main  # noqa: E402
from ftn_pytorch.commands import log_files, panels  # noqa: E402
from ftn_pytorch.kit import Log  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    """A run of one rank with all standard columns, one sparse and one of its own."""
    log = Log(str(tmp_path / "run 1" / "log.csv"))
    for step in range(1, 501):
        also = {"held_out": 1 / step, "held_out_r2": 1 - 1 / step} if step % 50 == 0 else {}
        log.write(step, loss=2 / step, lr=1e-3, gradient_norm=3.0, python_share=0.25, drift=0.1, energy=step, **also)
    log.flush()
    return tmp_path / "run 1"


def texts(file):
    return [each.text for each in xml.etree.ElementTree.parse(file).iter() if each.tag.endswith("}text")]


@pytest.fixture
def refused(capsys):
    """refused(path, *pieces): the command ends with 1 and says all pieces; options may follow by name."""

    def refused(path, *pieces, **options):
        before = set(os.listdir(path)) if os.path.isdir(path) else None
        assert main(["plot", str(path), *(f"--{name}={value}" for name, value in options.items())]) == 2
        told = capsys.readouterr().err
        assert told.startswith("plot: ") and [piece for piece in pieces if piece not in told] == []
        assert before is None or set(os.listdir(path)) == before, "something was left behind"

    return refused


def test_a_panel_for_each_kind_of_column(folder, capsys):
    assert main(["plot", str(folder)]) == 0
    assert capsys.readouterr().out.split("\n") == [f"{folder / 'run.png'}", f"{folder / 'run.svg'}", ""]
    found = texts(folder / "run.svg")
    labels = [panel.label for panel in panels.PANELS if panel.names != ("python_seconds",)]
    assert [text for text in found if text in {*labels, "energy"}] == [*labels, "energy"]
    assert f"{folder.parent.name}/run 1" in found and found.count("step") == 3
    assert (folder / "run.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name", ["run.png", "run.svg"])
def test_a_picture_of_somebody_else_is_replaced_by_name_only(folder, refused, name):
    assert main(["plot", str(folder)]) == 0
    assert main(["plot", str(folder)]) == 0, "its own pictures are drawn anew"
    (folder / name).write_bytes(b"a picture of mine")
    refused(folder, "FTN_PYTORCH_ERR_FILE", f"{folder / name} is there already", "--output")
    assert (folder / name).read_bytes() == b"a picture of mine"
    assert main(["plot", str(folder), "-o", str(folder / "run")]) == 0
    assert b"of mine" not in (folder / name).read_bytes()


def test_what_a_killed_run_was_writing_is_no_log(folder):
    (folder / "log.4711.part.csv").write_text("step,loss,score\n1,1.0,\n")
    assert {each.file for each in log_files.read(folder)} == {str(folder / "log.csv")}


def test_the_same_run_gives_the_same_picture(folder):
    drawn = [panels.draw(log_files.read(folder), "run", list(panels.FORMATS)) for _ in range(2)]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 3


@pytest.mark.parametrize(
    ("column", "label"),
    [
        ("loss", "training loss"), ("loss_wind", "training loss"), ("lossy", "lossy"),
        ("held_out_loss", "held-out loss"), ("r2", "skill"), ("held_out_skill", "skill"), ("lr_1", "learning rate"),
        ("gradient_norm", "norm of the gradient"), ("python_seconds", "time in Python in seconds"),
        ("drift_3", "drift of the inputs in standard deviations"),
    ],
)  # fmt: skip
def test_names_of_columns(column, label):
    assert panels._panel_of(column).label == label


def test_ranks_are_drawn_in_their_order(tmp_path):
    for rank in (10, 2, 0):
        log = Log(str(tmp_path / f"log.{rank}.csv"))
        log.write(1, loss=1.0)
        log.flush()
    (tmp_path / "other.csv").write_text("time,value\n1,2\n")
    (tmp_path / "steps.csv").write_text("steps,value\n1,2\n")
    assert [os.path.basename(each.file) for each in log_files.read(tmp_path)] == [
        "log.0.csv",
        "log.2.csv",
        "log.10.csv",
    ]
    pictures = panels.draw(log_files.read(tmp_path), "ranks", ["svg"])
    (tmp_path / "run.svg").write_bytes(pictures["svg"])
    assert [text for text in texts(tmp_path / "run.svg") if text.startswith("log.")] == ["log.0", "log.2", "log.10"]


def test_a_rank_that_has_logged_nothing_yet(tmp_path):
    (tmp_path / "log.0.csv").write_text("step,loss,lr\n1,0.5,\n")
    (tmp_path / "log.1.csv").write_text("step,loss,lr\n")
    assert main(["plot", str(tmp_path)]) == 0
    found = texts(tmp_path / "run.svg")
    assert "training loss" in found and "learning rate" not in found and "log.1" not in found


def test_one_file_and_another_name(folder, tmp_path):
    assert main(["plot", str(folder / "log.csv"), "--output", str(tmp_path / "v1.2")]) == 0
    assert (tmp_path / "v1.2.png").exists() and (tmp_path / "v1.2.svg").exists()
    assert os.listdir(folder) == ["log.csv"]


def test_long_series_are_thinned_and_keep_their_course():
    n = 100_000
    values = np.exp(-np.arange(n) / n) + 0.1 * np.random.default_rng(0).standard_normal(n)
    steps, middle = panels.thinned(np.arange(n, dtype=float), values)
    assert len(steps) == panels.POINTS
    np.testing.assert_allclose(middle, np.exp(-steps / n), atol=0.03)


def test_gaps_are_what_is_not_finite_and_where_nothing_was_logged():
    nan, inf = math.nan, math.inf
    steps = np.array([1, 2, 3, 4, 5, 100, 101], dtype=float)
    drawn = panels.thinned(steps, np.array([1, nan, 3, inf, 5, 6, 7]))
    np.testing.assert_array_equal(drawn[1], [1, nan, 3, nan, 5, nan, 6, 7])
    np.testing.assert_array_equal(drawn[0], [1, 2, 3, 4, 5, nan, 100, 101])
    # What is logged rarely has no gaps.
    assert not np.isnan(panels.thinned(np.arange(0, 1000, 50.0), np.ones(20))[1]).any()
    # A stretch with some values that are not finite shows the others.
    mixed = np.ones(10 * panels.POINTS)
    mixed[::2] = nan
    assert not np.isnan(panels.thinned(np.arange(len(mixed), dtype=float), mixed)[1]).any()


@pytest.mark.parametrize("values", [[math.nan] * 3, [1.0], [-1.0, 0.0, 1.0], [0.0, math.inf], [1e300, 1e-300]])
def test_any_values_can_be_drawn(values, tmp_path, recwarn):
    log = Log(str(tmp_path / "log.csv"))
    for step, value in enumerate(values):
        log.write(step, loss=value, lr=value, python_share=value)
    log.flush()
    assert main(["plot", str(tmp_path)]) == 0
    assert [str(each.message) for each in recwarn] == []


def test_a_row_that_is_being_written_is_left_out(folder):
    with open(folder / "log.csv", "a") as file:
        file.write("501,0.00")
    assert log_files.read(folder)[0].steps[-1] == 500


def test_what_cannot_be_read(tmp_path, folder, refused):
    refused(tmp_path / "nowhere", "nowhere cannot be read: No such file")
    refused(tmp_path, "has no log", "*.csv")
    (tmp_path / "table.csv").write_text("time,loss\n1,2\n")
    refused(tmp_path / "table.csv", "table.csv is no log: its first column is 'time'")
    (tmp_path / "table.csv").write_bytes(b"step,\xff\n")
    refused(tmp_path / "table.csv", "is no log")


@pytest.mark.parametrize("text", ["", "step,loss\n", "step\n1\n", "step,loss\n1,\n", "step,lo"])
def test_an_empty_log(text, tmp_path, refused):
    (tmp_path / "log.csv").write_text(text)
    refused(tmp_path / "log.csv", "nothing has been logged yet")


@pytest.mark.parametrize(
    ("row", "why"), [("2,abc", "abc"), ("x,1.0", "'x'"), ("2", "1 values for 2"), ("2,1.0,3.0", "3 values for 2")]
)
def test_a_damaged_log(row, why, tmp_path, refused):
    (tmp_path / "log.csv").write_text(f"step,loss\n1,0.5\n{row}\n3,0.1\n")
    refused(tmp_path, "log.csv: line 3 is damaged", why)


def test_pictures_that_cannot_be_written(folder, tmp_path, refused):
    refused(folder, "run.png cannot be written: there is no folder", output=tmp_path / "none" / "run")
    (folder / "run.png").mkdir()
    refused(folder, "run.png cannot be written: it is a folder")


def test_matplotlib_is_missing(folder, monkeypatch, refused):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "ftn_pytorch.commands.panels")
    monkeypatch.delattr("ftn_pytorch.commands.panels")
    refused(folder, "plot needs matplotlib", "-m pip install matplotlib")


def test_one_row_has_whole_steps(tmp_path):
    (tmp_path / "log.csv").write_text("step,loss\n7,0.5\n")
    assert main(["plot", str(tmp_path)]) == 0
    assert {"6", "7", "8"} <= set(texts(tmp_path / "run.svg"))


@pytest.mark.parametrize(("name", "begin"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_the_ending_of_a_name_says_which_picture(name, begin, folder, tmp_path):
    assert main(["plot", str(folder), "--output", str(tmp_path / name)]) == 0
    assert set(os.listdir(tmp_path)) == {"run 1", name} and (tmp_path / name).read_bytes().startswith(begin)


def test_an_ending_that_is_none_of_a_picture(folder, tmp_path, refused):
    refused(folder, "a.pfd: pictures are png, svg, pdf", output=tmp_path / "a.pfd")


def test_a_column_without_numbers_has_no_empty_panel(tmp_path):
    (tmp_path / "log.csv").write_text("step,loss,drift,energy\n1,nan,nan,3\n2,nan,nan,4\n")
    assert main(["plot", str(tmp_path)]) == 0
    found = texts(tmp_path / "run.svg")
    assert "training loss" in found and "energy" in found and not any("drift" in text for text in found)
    (tmp_path / "log.csv").write_text("step,drift\n1,nan\n")
    assert main(["plot", str(tmp_path)]) == 0
