# SPDX-License-Identifier: MIT
"""The recipe of hosts/dales in DALES itself, on two ranks. `make test-hosts` runs it.

FTN_PYTORCH_DALES_SOURCE names a checkout of DALES 4.4, which stays as it is: a copy is coupled, and another one is not.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hosts_run import ROOT, run, start

DALES = os.environ.get("FTN_PYTORCH_DALES_SOURCE", "")
pytestmark = pytest.mark.skipif(
    not DALES, reason="FTN_PYTORCH_DALES_SOURCE names no checkout of DALES: make test-hosts"
)
OURS = ROOT / "hosts" / "dales"
RANKS = 2
SMALL = {"itot": 16, "jtot": 16, "xsize": 1600.0, "ysize": 1600.0, "runtime": 240, "trestart": 120}
RESTART = "initd0000h02mx000y000.001"


@pytest.fixture(scope="module")
def programs():
    """DALES as it is, and coupled as docs/dales.md says."""
    folder = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"])
    for name in ("plain", "coupled"):
        source = folder / "dales" / name
        shutil.rmtree(source, ignore_errors=True)
        for part in ("src", "utils", "cases/standard"):
            shutil.copytree(Path(DALES) / part, source / part)
        shutil.copy2(Path(DALES) / "CMakeLists.txt", source)
        if name == "coupled":
            run(sys.executable, OURS / "couple.py", source)
        # Half of the compiler's time, and the results are compared with each other only
        options = [f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}", "-DCMAKE_Fortran_FLAGS_RELEASE=-O1"]
        run("cmake", "-S", source, "-B", source / "build", *options)
        run("cmake", "--build", source / "build", "--target", "dales4.4")
    return {name: folder / "dales" / name / "build" / "src" / "dales4.4" for name in ("plain", "coupled")}


def prepare(folder: Path, settings: dict[str, object], learning: dict[str, object]) -> None:
    """The case BOMEX in a folder: smaller, for minutes, with NAMLEARN and the script."""
    folder.mkdir(exist_ok=True)
    case = Path(DALES) / "cases" / "bomex"
    text = (case / "namoptions.001").read_text()
    for name, value in (SMALL | settings).items():
        text, count = re.subn(rf"^({name} *=).*", rf"\1 {value}", text, flags=re.MULTILINE)
        assert count == 1, f"the case has no {name}"
    lines = "".join(f"{name} = {value}\n" for name, value in learning.items())
    (folder / "namoptions.001").write_text(f"{text}\n&NAMLEARN\n{lines}/\n")
    for file in (case / "prof.inp.001", case / "lscale.inp.001", OURS / "closure.py"):
        shutil.copy(file, folder)


@pytest.fixture
def model(programs):
    """Runs the coupled model, or another program, in a folder."""

    def steps(folder, learning=None, program="coupled", expect=0, **settings):
        prepare(folder, settings, learning or {})
        return start(RANKS, folder, programs[program], "namoptions.001", expect=expect)

    return steps


@pytest.fixture(scope="module")
def trained(programs, tmp_path_factory):
    """The folder of a run that has learnt at one go."""
    folder = tmp_path_factory.mktemp("trained")
    prepare(folder, {}, {"learn_mode": "'train'"})
    start(RANKS, folder, programs["coupled"], "namoptions.001")
    return folder


def restart_files(folder: Path, minute: int) -> list[bytes]:
    files = sorted(folder.glob(f"initd0000h{minute:02}m*"))
    assert len(files) == RANKS
    return [file.read_bytes() for file in files]


def log(folder: Path) -> list[dict[str, str]]:
    with (folder / "run" / "log.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("program", ["plain", "coupled"])
def test_training_leaves_the_model_as_it_was(model, trained, tmp_path, program):
    model(tmp_path, program=program)
    assert [restart_files(tmp_path, minute) == restart_files(trained, minute) for minute in (2, 4)] == [True, True]
    losses = [float(row["loss"]) for row in log(trained)]
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("per", ["rank", "node"])
def test_a_restarted_run_is_the_run_at_one_go(model, trained, tmp_path, per):
    learning = {"learn_mode": "'train'", "learn_per": f"'{per}'"}
    model(tmp_path, learning, runtime=120)
    model(tmp_path, learning, runtime=120, lwarmstart=".true.", startfile=f"'{RESTART}'")
    assert restart_files(tmp_path, 4) == restart_files(trained, 4)
    assert log(tmp_path) == log(trained)


def test_the_network_runs_without_python(model, trained, tmp_path, monkeypatch):
    with_script, without = tmp_path / "script", tmp_path / "recording"
    for folder in (with_script, without):
        shutil.copytree(trained / "checkpoints", folder / "checkpoints")
    model(with_script, {"learn_mode": "'predict'"})
    prefix = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"]) / "prefix"
    shapes = ["80x8x16:float64"] * 2 + ["80:float64"] * 2  # levels and cells of a rank in y and x
    inputs = [word for shape in shapes for word in ("--input", shape)]
    export = [prefix / "bin" / "ftn_pytorch", "export", OURS / "closure.py", "--to", "recording", *inputs]
    run(*export, "--checkpoint", "checkpoints/rank0", "--output", "closure.ftr", folder=without)
    shutil.rmtree(without / "checkpoints")
    monkeypatch.setenv("FTN_PYTORCH_PYTHON", "/there/is/none")
    model(without, {"learn_mode": "'predict'", "learn_file": "'closure.ftr'"})
    assert restart_files(without, 4) == restart_files(with_script, 4) != restart_files(trained, 4)


@pytest.mark.parametrize(
    "learning, settings, text",
    [
        ({"learn_mode": "'learn'"}, {}, "learn_mode is off, train or predict"),
        ({"learn_mode": "'predict'"}, {}, "holds no checkpoint"),
        ({"learn_rate": 1}, {}, "learn_rate"),
    ],
)
def test_what_is_wrong_is_said(model, tmp_path, learning, settings, text):
    out, err = model(tmp_path, learning, expect=1, **settings)
    assert text in out + err


def test_a_warm_start_wants_the_network_of_its_time(model, trained, tmp_path):
    folder = tmp_path / "warm"
    shutil.copytree(trained, folder, ignore=shutil.ignore_patterns("checkpoints", "initd0000h04m*"))
    warm = {"lwarmstart": ".true.", "startfile": f"'{RESTART}'", "runtime": 120}
    _, err = model(folder, {"learn_mode": "'train'"}, expect=1, **warm)
    assert "holds no checkpoint" in err
    model(folder, {"learn_mode": "'train'", "learn_new": ".true."}, **warm)
    assert restart_files(folder, 4) == restart_files(trained, 4)
    assert len(list(folder.glob("checkpoints/rank0/*-000000000240.ckpt"))) == 1


def test_pictures(model, trained, tmp_path):
    pytest.importorskip("h5py")
    model(tmp_path, runtime=600)
    profiles = tmp_path / "profiles.001.nc"
    subprocess.run(
        [sys.executable, OURS / "plot.py", trained / "run" / "log.csv", *[profiles] * 2, tmp_path], check=True
    )
    assert all((tmp_path / f"dales_{name}.svg").stat().st_size > 1000 for name in ("learning", "profiles"))
