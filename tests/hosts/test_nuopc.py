# SPDX-License-Identifier: MIT
"""The cap of hosts/nuopc in a driver of NUOPC, beside a component with a grid. `make test-hosts` runs it."""

from __future__ import annotations

import math
import os
import re
import shutil
import textwrap
from pathlib import Path

import pytest
from hosts_run import ROOT, esmx_builder, run, start

ESMF = os.environ.get("ESMFMKFILE", "")
pytestmark = pytest.mark.skipif(not ESMF, reason="ESMFMKFILE names no esmf.mk: make test-hosts")
NUOPC = ROOT / "hosts" / "nuopc"
FIELDS = ["import x sea_surface_temperature", "export y surface_net_downward_longwave_flux"]
EXAMPLE = NUOPC / "example" / "closure.py"


@pytest.fixture(scope="module")
def program():
    folder = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"])
    build = folder / "nuopc"
    options = [f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}", f"-DESMFMKFILE={ESMF}", "-DCMAKE_BUILD_TYPE=Release"]
    run("cmake", "-S", ROOT / "tests" / "hosts" / "nuopc", "-B", build, *options)
    run("cmake", "--build", build)
    return build / "test_nuopc"


@pytest.fixture
def coupled(program, tmp_path):
    """Runs the steps first to last, and gives what it printed."""

    def steps(ranks, script, first, last, *folder, expect=0):
        return start(ranks, tmp_path, program, script, first, last, *folder, expect=expect)[0]

    return steps


def results(text):
    """What each rank got in the end."""
    return sorted(re.findall(r"(rank \d) after step (\d+) got +(\S+)", text))


@pytest.mark.parametrize("ranks", [1, 2])
def test_it_trains_on_fields_of_another_component(coupled, ranks):
    text = coupled(ranks, EXAMPLE, 1, 4)
    assert "2010-03-01T00:30:00 noleap, day 60.0208" in text
    weights = re.findall(r"weight (-?\d\.\d{16})", text)
    assert len(weights) == 4 * ranks
    assert len(set(weights)) == 4  # the same on both ranks, another one in each step
    # what the other component got in step 4 is what the third step returned
    assert [step for _, step, _ in results(text)] == ["4"] * ranks
    assert all(float(got) != 0 for _, _, got in results(text))


@pytest.mark.parametrize(
    "initialize, wanted",
    [("", 0), ("def ftn_pytorch_initialize(y):\n    assert not y.any()\n    return {'y': y + 7}\n", 7 * 96)],
)
def test_exports_before_the_first_step(coupled, tmp_path, initialize, wanted):
    text = f"def ftn_pytorch_nuopc(): return {FIELDS}\n"
    text += "def ftn_pytorch_advance(x): return {'y': x}\n"
    (tmp_path / "first.py").write_text(text + initialize)
    (result,) = results(coupled(1, "first.py", 1, 1))
    assert float(result[2]) == wanted


def test_a_restarted_run_is_the_run_at_one_go(coupled):
    whole = results(coupled(2, EXAMPLE, 1, 4))
    coupled(2, EXAMPLE, 1, 2, "checkpoints")
    assert results(coupled(2, EXAMPLE, 3, 4, "checkpoints")) == whole


@pytest.mark.parametrize("interval, written", [("5400", 2), ("PT1H30M", 2), ("PT1H", 3), ("P1D", 0)])
def test_checkpoints_come_with_an_alarm(coupled, tmp_path, interval, written):
    coupled(1, EXAMPLE, 1, 7, "checkpoints", interval)
    assert len(list(tmp_path.glob("checkpoints/rank0/checkpoint-*"))) == written


@pytest.mark.parametrize("interval", ["hourly", "0", "-3600", "PT0S", "P"])
def test_an_interval_that_is_none_is_refused(coupled, tmp_path, interval):
    assert "FAILED in" in coupled(1, EXAMPLE, 1, 2, "checkpoints", interval, expect=1)
    assert f"RestartInterval={interval}: it is seconds" in (tmp_path / "PET0.ESMF_LogFile").read_text()


def test_an_interval_needs_a_folder(coupled, tmp_path):
    assert "FAILED in" in coupled(1, EXAMPLE, 1, 2, "", "3600", expect=1)
    assert "needs CheckpointFolder" in (tmp_path / "PET0.ESMF_LogFile").read_text()


CELLS = """
    import torch, ftn_pytorch

    def ftn_pytorch_nuopc():
        return {fields}

    def ftn_pytorch_advance(x, levels=None):
        host = ftn_pytorch.host()
        mask, area = torch.as_tensor(host["mask"]), torch.as_tensor(host["area"])
        assert mask.shape == area.shape == x.shape
        assert torch.equal(mask, (area % 3 == 0).int())
        text = f"{{tuple(x.shape)}}, areas {{area.sum():.0f}}, masked {{mask.sum()}}"
        if levels is not None:
            text += f", levels {{tuple(levels.shape)}} {{levels.amin(dim=(1, 2)).tolist()}}"
        print(text, flush=True)
        return {{"y": torch.where(mask == 1, 0, area)}}
"""


def told(text):
    """Of all ranks in a step: cells, the sum of areas, masked ones."""
    lines = re.findall(r"\(([\d, ]+)\), areas (\d+), masked (\d+)", text)
    cells = [math.prod(int(n) for n in shape.split(",") if n.strip()) for shape, _, _ in lines]
    return sum(cells), sum(int(area) for _, area, _ in lines), sum(int(masked) for _, _, masked in lines)


@pytest.mark.parametrize("ranks", [1, 2])
def test_mask_area_and_levels(coupled, tmp_path, ranks):
    (tmp_path / "cells.py").write_text(textwrap.dedent(CELLS.format(fields=[*FIELDS, "import levels quantity_levels"])))
    text = coupled(ranks, "cells.py", 1, 1)
    assert told(text) == (96, 78 * 8, 32)
    assert len(re.findall(rf"levels \(3, 8, {12 // ranks}\) \[1.0, 2.0, 3.0\]", text)) == ranks


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_mesh(coupled, tmp_path, ranks):
    (tmp_path / "cells.py").write_text(textwrap.dedent(CELLS.format(fields=FIELDS)))
    text = coupled(ranks, "cells.py", 1, 2, "", "", "mesh")
    assert told(text) == (2 * 96, 2 * 78 * 8, 2 * 32)
    # what the other component got in step 2: areas of the cells that are not masked
    assert sum(float(got) for _, _, got in results(text)) == pytest.approx((78 - 30) * 8)


TWO = """
    import ftn_pytorch

    def ftn_pytorch_nuopc():
        return {fields}

    def ftn_pytorch_advance({field}):
        host = ftn_pytorch.host()
        print("{field}", tuple(host["mask"].shape), tuple(host["area"].shape), flush=True)
        return {result}
"""


def test_each_component_is_told_its_cells(coupled, tmp_path):
    one = textwrap.dedent(TWO).format(fields=FIELDS, field="x", result='{"y": x}')
    two = textwrap.dedent(TWO).format(fields=["import levels quantity_levels"], field="levels", result="{}")
    (tmp_path / "one.py").write_text(one)
    (tmp_path / "two.py").write_text(two)
    text = coupled(1, "one.py", 1, 2, "", "", "mesh", "two.py")
    # x is on a mesh, and levels are on a grid
    assert re.findall(r"(?:x|levels) \(.*\)", text).count("x (96,) (96,)") == 2
    assert re.findall(r"(?:x|levels) \(.*\)", text).count("levels (8, 12) (8, 12)") == 2


@pytest.mark.parametrize(
    "script, text",
    [
        ("def ftn_pytorch_nuopc():\n    return ['imports x']\n", 'line "imports x": it is import or export'),
        ("x = 1\n", "ftn_pytorch_nuopc"),
        (
            f"def ftn_pytorch_nuopc():\n    return {FIELDS}\ndef ftn_pytorch_advance(x):\n    return {{'y': 1 / 0}}\n",
            "ZeroDivisionError",
        ),
    ],
)
def test_what_fails_is_in_the_log_of_esmf(coupled, tmp_path, script, text):
    (tmp_path / "script.py").write_text(script)
    assert "FAILED in" in coupled(1, "script.py", 1, 2, expect=1)
    assert text in (tmp_path / "PET0.ESMF_LogFile").read_text()


@pytest.fixture(scope="module")
def esmx(tmp_path_factory):
    """The executable of ESMX with the cap, as docs/hosts.md builds it."""
    folder = tmp_path_factory.mktemp("esmx")
    shutil.copytree(NUOPC, folder / "nuopc")
    prefix = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"]) / "prefix"
    arguments = f"--cmake-args=-DCMAKE_PREFIX_PATH={prefix} -DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON"
    run(esmx_builder(ESMF), f"--esmfmkfile={ESMF}", arguments, "nuopc/example/esmxBuild.yaml", folder=folder)
    return folder / "install" / "bin" / "esmx_app"


def test_esmx_needs_no_fortran(esmx, tmp_path):
    for name in ("closure.py", "esmxRun.yaml"):
        shutil.copy(NUOPC / "example" / name, tmp_path)
    text, _ = start(2, tmp_path, esmx)
    weights = re.findall(r"weight (-?\d\.\d{16})", text)
    assert len(weights) == 8 and len(set(weights)) == 4
    assert len(list(tmp_path.glob("checkpoints/rank0/checkpoint-*"))) == 2
    # ESMX_Data looks at what it imports: zero in its first step, and then what the network gave
    assert re.search(r"surface_net\w+ +96 +0\.00E\+00 +0\.00E\+00 +0\.00E\+00 +T", text)
