# SPDX-License-Identifier: MIT
"""GeoGate's plug-in for FTorch, unchanged, with the package FTorch of this library, in ESMX.

It needs FTN_PYTORCH_GEOGATE_SOURCE, a checkout of the branch feature/ftorch, and an ESMF with PIO, by which GeoGate
reads its mesh.
"""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from hosts_run import esmx_builder, run, start

GEOGATE = os.environ.get("FTN_PYTORCH_GEOGATE_SOURCE", "")
ESMF = os.environ.get("ESMFMKFILE", "")
pytestmark = pytest.mark.skipif(
    not (GEOGATE and ESMF), reason="FTN_PYTORCH_GEOGATE_SOURCE or ESMFMKFILE names nothing: make test-hosts"
)

WIDTH, HEIGHT = 12, 8
BUILD = """
    components:
      geogate:
        source_dir: {source}
        build_type: cmake
        libraries: geogate
        fort_module: geogate_nuopc.mod
"""
RUN = """
    ESMX:
      App:
        startTime: 2010-03-01T00:00:00
        stopTime: 2010-03-01T02:00:00
        logKindFlag: ESMF_LOGKIND_Multi
      Driver:
        componentList: [ATM, ML]
        runSequence: |
          @1800
            ATM -> ML
            ML geogate_phases_ftorch
            ML -> ATM
            ATM
          @
    ATM:
      model: ESMX_Data
      output: {write_final: false}
      geom: {nx: 12, ny: 8}
      exportFields:
        sea_surface_temperature: {dim: 2, val: 290}
      importFields:
        surface_net_downward_longwave_flux: {dim: 2, min: -1000, max: 1000}
    ML:
      model: geogate
      attributes:
        ExportFields: [surface_net_downward_longwave_flux]
        ExportMeshFile: mesh.nc
        FtorchModelFile: learns.py
        FtorchInputFields: sea_surface_temperature
        FtorchOutputFields: surface_net_downward_longwave_flux
"""
# A script in place of a model: it trains where it is called. FTorch calls without gradients.
LEARNS = """
    import os
    import torch
    torch.manual_seed(0)
    net = torch.nn.Linear(1, 1).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    def ftn_pytorch_forward(x):
        y = (x - 280)[:, None] / 10
        with torch.enable_grad():
            optimizer.zero_grad()
            loss = (net(y) - 5).square().mean()
            loss.backward()
        optimizer.step()
        out = net(y)[:, 0]
        with open(f"steps.{os.getpid()}", "a") as steps:
            print(len(x), x.min().item(), loss.item(), out.mean().item(), file=steps)
        return out
"""


def mesh():
    """CDL of quadrilaterals around the globe, in the format of ESMF."""
    nodes = [(360 * i / WIDTH, 160 * j / HEIGHT - 80) for j in range(HEIGHT + 1) for i in range(WIDTH + 1)]
    first = [j * (WIDTH + 1) + i + 1 for j in range(HEIGHT) for i in range(WIDTH)]
    cells = [(node, node + 1, node + WIDTH + 2, node + WIDTH + 1) for node in first]
    centres = [(360 * (i + 0.5) / WIDTH, 160 * (j + 0.5) / HEIGHT - 80) for j in range(HEIGHT) for i in range(WIDTH)]
    sizes = f"nodeCount = {len(nodes)} ; elementCount = {len(cells)} ; maxNodePElement = 4 ; coordDim = 2 ;"
    listed = [", ".join(str(each) for row in rows for each in row) for rows in (nodes, centres, cells)]
    return f"""netcdf mesh {{
dimensions: {sizes}
variables:
  double nodeCoords(nodeCount, coordDim) ;
    nodeCoords:units = "degrees" ;
  double centerCoords(elementCount, coordDim) ;
    centerCoords:units = "degrees" ;
  int elementConn(elementCount, maxNodePElement) ;
    elementConn:start_index = 1 ;
  byte numElementConn(elementCount) ;
  :gridType = "unstructured" ;
  :version = "0.9" ;
data:
  nodeCoords = {listed[0]} ;
  centerCoords = {listed[1]} ;
  elementConn = {listed[2]} ;
  numElementConn = {", ".join(["4"] * len(cells))} ;
}}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("geogate")
    (folder / "esmxBuild.yaml").write_text(textwrap.dedent(BUILD).format(source=Path(GEOGATE).resolve() / "src"))
    ftorch = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"]) / "prefix" / "share" / "ftn_pytorch" / "ftorch"
    arguments = f"-DGEOGATE_USE_FTORCH=ON -DCMAKE_PREFIX_PATH={ftorch} -DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON"
    # what GeoGate's own pages say of its build
    modules = re.search(r"^ESMF_F90COMPILEPATHS=(.*)", Path(ESMF).read_text(), re.MULTILINE)[1]
    flags = f"FFLAGS=-ffree-line-length-none {modules}"
    run("env", flags, esmx_builder(ESMF), f"--esmfmkfile={ESMF}", f"--cmake-args={arguments}", folder=folder)
    return folder / "install" / "bin" / "esmx_app"


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_script_trains_in_the_plug_in_for_ftorch(program, tmp_path, ranks):
    (tmp_path / "esmxRun.yaml").write_text(textwrap.dedent(RUN))
    (tmp_path / "learns.py").write_text(textwrap.dedent(LEARNS))
    subprocess.run(["ncgen", "-o", tmp_path / "mesh.nc", "-"], input=mesh(), text=True, check=True)
    text, _ = start(ranks, tmp_path, program)
    steps = [[list(map(float, line.split())) for line in file.open()] for file in tmp_path.glob("steps.*")]
    cells, sst, losses, given = zip(*steps[0], strict=True)
    assert len(steps) == ranks and cells == (96 / ranks,) * 4 and set(sst) == {290} and losses[-1] < losses[0]
    assert all(each == steps[0] for each in steps), "the ranks have equal data"
    # ESMX_Data prints least, mean and largest value of what it takes, with two digits
    taken = [float(each) for each in re.findall(r"surface_net\w+ +96 +(\S+)", text)]
    assert taken[-4:] == pytest.approx(given, rel=0.06)
