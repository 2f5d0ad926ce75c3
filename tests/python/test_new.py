# SPDX-License-Identifier: MIT
"""The command that writes a project; tests/install builds one and runs its tests."""

import os

import pytest

from ftn_pytorch.__main__ import main
from ftn_pytorch.commands import new


@pytest.fixture
def refused(capsys, tmp_path):
    """refused(name, *pieces): the command ends with 1, says all pieces, and leaves the folder as it was."""

    def refused(name, *pieces):
        before = sorted(tmp_path.rglob("*"))
        assert main(["new", str(tmp_path / name)]) == 2
        told = capsys.readouterr().err
        assert told.startswith("new: ") and [piece for piece in pieces if piece not in told] == []
        assert sorted(tmp_path.rglob("*")) == before

    return refused


def files_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("exists", [False, True])
def test_files_of_a_project(exists, tmp_path, capsys):
    folder = tmp_path / "wind"
    if exists:
        folder.mkdir()
    assert main(["new", str(folder)]) == 0
    assert str(folder) in capsys.readouterr().out
    assert files_of(folder) == [
        ".gitignore", "CMakeLists.txt", "README.md", "src/lorenz96.f90", "src/main.f90", "tests/check.py", "wind.py"
    ]  # fmt: skip
    assert os.listdir(tmp_path) == ["wind"]
    for name in files_of(folder):
        text = (folder / name).read_text()
        assert "project_name" not in text and "SPDX" not in text and text.strip()
    assert "program wind\n" in (folder / "src" / "main.f90").read_text()
    assert (folder / "src" / "lorenz96.f90").read_text().startswith("!> ")


def test_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "rain"]) == 0
    assert (tmp_path / "rain" / "rain.py").is_file()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("2d", "it must be a letter"), ("wind-1", "it must be a letter"), ("_wind", "it must be a letter"),
        ("w" * 64, "up to 62 letters"), ("wïnd", "it must be a letter"),
        ("lambda", "a keyword of Python"),
        ("torch", "would hide the module 'torch'"), ("random", "would hide the module 'random'"),
        ("test", "would hide the module 'test'"), ("sys", "built-in"),
        ("model", "uses this name"), ("Lorenz96", "uses this name"), ("real", "uses this name"),
        ("torch_in", "uses this name"), ("fpt", "uses this name"),
        ("install", "CMake"), ("CMakeFiles", "CMake"),
    ],
)  # fmt: skip
def test_names_that_cannot_be(name, why, refused):
    refused(name, repr(name), why)


def test_the_folder_that_one_is_in(tmp_path, monkeypatch):
    (tmp_path / "rain").mkdir()
    monkeypatch.chdir(tmp_path / "rain")
    assert main(["new", "."]) == 0
    assert os.path.isfile("rain.py") and os.path.isfile(".gitignore")


def test_a_script_of_this_name_nearby_is_no_module(tmp_path, monkeypatch):
    (tmp_path / "wind.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert main(["new", "wind"]) == 0


def test_folders_that_cannot_be(tmp_path, refused):
    (tmp_path / "wind").mkdir()
    (tmp_path / "wind" / "notes.txt").write_text("mine")
    refused("wind", "exists and is not empty")
    refused("none/wind", "cannot be written: No such file or directory")
    (tmp_path / "rain").write_text("a file")
    refused("rain", "cannot be written: Not a directory")


def test_a_full_disk_leaves_nothing(tmp_path, refused, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(new.Path, "write_text", full)
    refused("wind", "cannot be written: No space left on device")


def test_files_are_for_those_whom_the_mask_lets_in(tmp_path):
    """Whatever the modes of the installed copy are, which may be read-only."""
    before = os.umask(0o077)
    try:
        assert main(["new", str(tmp_path / "wind")]) == 0
    finally:
        os.umask(before)
    modes = {(tmp_path / "wind" / name).stat().st_mode & 0o777 for name in files_of(tmp_path / "wind")}
    assert modes == {0o600}
