# SPDX-License-Identifier: MIT
"""The command that lists kept modules, and removes them; tests/install/test_modules_cache.py keeps some."""

from pathlib import Path

import pytest

from ftn_pytorch.__main__ import main
from ftn_pytorch.commands import modules


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One whole entry, and one that a build has left when it was ended."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "ftn_pytorch" / "modules"
    for name in ("0a1b", "0a1b.x.part"):
        (folder / name / "objects").mkdir(parents=True)
        (folder / name / "objects" / "a.o").write_bytes(b"1" * 1_500_000)
    (folder / "0a1b" / "key.txt").write_text("ftn_pytorch 1\nFortran: GNU 12.2.0, /usr/bin/gfortran , -O2\nC: GNU\n")
    return folder


def test_what_is_kept_is_listed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["modules"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "0a1b  1.5 MB  GNU 12.2.0, /usr/bin/gfortran , -O2",
        "0a1b.x.part  1.5 MB  not complete",
        f"{cache}: 2 entries, 3.0 MB",
    ]


def test_what_is_kept_can_be_removed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["modules", "--remove"]) == 0
    assert capsys.readouterr().out == f"{cache}: 2 removed, 3.0 MB\n" and list(cache.iterdir()) == []
    assert main(["modules"]) == 0 and ": 0 entries" in capsys.readouterr().out


@pytest.mark.parametrize("named", ["", "relative"])
def test_the_cache_of_a_user(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert modules.cache() == tmp_path / ".cache" / "ftn_pytorch" / "modules"
