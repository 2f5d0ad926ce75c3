# SPDX-License-Identifier: MIT
"""Results of saved recordings on the direct path are those of the script."""

import json

SCRIPT = """
import dataclasses
import torch

@dataclasses.dataclass
class Fluxes:
    heat: object
    dust: object = None
    water: object = None

def ftn_pytorch_forward(x):
    return Fluxes(2 * x, water=x[:, :3] + 1)
"""


def test_an_empty_field_of_a_dataclass_is_left_out(command, build_dir, tmp_path):
    (tmp_path / "fluxes.py").write_text(SCRIPT)

    def run(*arguments) -> str:
        return command(*arguments, environment={"ftn_pytorch_ROOT": str(build_dir)}, cwd=tmp_path).stdout

    run("export", "fluxes.py", "--to", "recording", "--input", "2x4", "--output", "fluxes.ftr")
    script, file = (json.loads(run("check", each, "--input", "2x4", "--json")) for each in ("fluxes.py", "fluxes.ftr"))
    results = file["calls"][0]["results"]
    assert [each["name"] for each in results] == ["heat", "water"] and results == script["calls"][0]["results"]
