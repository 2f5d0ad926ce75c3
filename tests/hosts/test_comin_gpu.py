# SPDX-License-Identifier: MIT
"""Fields of a host of ComIn on a GPU: NAME@device as they lie there, and NAME as ComIn copies them.

It needs a GPU, the CUDA runtime, and ComIn 0.3 or later in FTN_PYTORCH_COMIN_SOURCE. FTN_PYTORCH_HOSTS_BUILD/prefix is
where ftn_pytorch is installed.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest
import torch
from hosts_run import COMIN, ROOT, run, start

SOURCES = [each for each in COMIN if not (each / "test" / "minimal_example").exists()]
pytestmark = pytest.mark.skipif(
    not (SOURCES and torch.cuda.is_available()),
    reason="needs a GPU, and ComIn 0.3 or later in FTN_PYTORCH_COMIN_SOURCE",
)

SCRIPT = """
    import ftn_pytorch
    import torch
    def ftn_pytorch_comin():
        return ["EP_ATM_PHYSICS_BEFORE heat {field} > {field}"]
    def heat(temp):
        where = temp.device.type
        print("temp", where, tuple(temp.shape), temp[0, 0, :2].tolist(), temp.max().item(), flush=True)
        return temp + 0.5
"""


@pytest.fixture(scope="module", params=SOURCES, ids=lambda source: source.name)
def built(request):
    """Folder of the host and of the plug-in."""
    base = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"])
    folder = base / "comin_gpu" / request.param.name
    comin, here = folder / "comin", folder / "host"
    run("cmake", "-S", request.param, "-B", comin, "-DCOMIN_ENABLE_EXAMPLES=OFF", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", comin, "--parallel", "--target", "ComIn")
    run(
        *("cmake", "-S", ROOT / "tests" / "hosts" / "comin", "-B", here, f"-DComIn_DIR={comin}"),
        *(f"-Dftn_pytorch_ROOT={base / 'prefix'}", "-DCMAKE_BUILD_TYPE=Debug"),
    )
    run("cmake", "--build", here)
    return here


def result(built, folder, field):
    """Standard output of a run in which the script reads and writes the field."""
    (folder / "heat.py").write_text(textwrap.dedent(SCRIPT).format(field=field))
    lines = {
        "name": "ftn_pytorch",
        "plugin_library": built / "plugin" / "libcomin_ftn_pytorch.so",
        "options": "heat.py",
    }
    text = "".join(f'  plugin_list(1)%{key} = "{value}"\n' for key, value in lines.items())
    (folder / "master.nml").write_text(f"&comin_nml\n{text}/\n")
    return start(1, folder, built / "gpu_host")[0].splitlines()


def test_a_field_on_the_device_is_not_copied(built, tmp_path):
    output = result(built, tmp_path, "temp@device")
    assert "temp cuda (3, 2, 8) [1.0, 2.0] 48.0" in output
    assert "on the host     -1.0    -1.0" in output and "on the GPU      1.5    48.5" in output


def test_without_device_the_host_copies_it(built, tmp_path):
    output = result(built, tmp_path, "temp")
    assert "temp cpu (3, 2, 8) [1.0, 2.0] 48.0" in output
    assert "on the host      1.5    48.5" in output and "on the GPU      1.5    48.5" in output
