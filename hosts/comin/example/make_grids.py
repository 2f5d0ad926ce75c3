# SPDX-License-Identifier: MIT
"""Grids for the minimal host of ComIn: a band of 160 cells around the equator, for one rank and for two.

python make_grids.py FOLDER       needs ncgen, of the netCDF tools
"""

import math
import subprocess
import sys
from pathlib import Path

CELLS = 160
REAL, WHOLE = "double", "int"


def grid(owned, halo):
    """The grid of a rank as CDL: its own cells, then those of other ranks."""
    cells = [*owned, *halo]
    count = len(cells)
    longitude = [2 * math.pi * cell / CELLS - math.pi for cell in cells]
    variables = {
        "clon": (REAL, "cell", longitude),
        "clat": (REAL, "cell", [0.2 * math.sin(3 * each) for each in longitude]),
        "vlon": (REAL, "vertex", [0.0] * (count + 2)),
        "vlat": (REAL, "vertex", [0.0] * (count + 2)),
        "elon": (REAL, "edge", [0.0] * (2 * count + 1)),
        "elat": (REAL, "edge", [0.0] * (2 * count + 1)),
        "vertex_of_cell": (WHOLE, "nv, cell", [cell + corner for corner in (1, 2, 3) for cell in range(count)]),
        "cells_decomp_domain": (WHOLE, "cell", [0] * len(owned) + [1] * len(halo)),
        "cells_glb_index": (WHOLE, "cell", [cell + 1 for cell in cells]),
    }
    sizes = f"cell = {count} ; vertex = {count + 2} ; edge = {2 * count + 1} ; nv = 3 ;"
    declared = "".join(f"  {kind} {name}({axes}) ;\n" for name, (kind, axes, _) in variables.items())
    data = "".join(f"  {name} = {', '.join(map(str, values))} ;\n" for name, (_, _, values) in variables.items())
    return f"netcdf grid {{\ndimensions: {sizes}\nvariables:\n{declared}data:\n{data}}}\n"


def main():
    folder, half = Path(sys.argv[1]), CELLS // 2
    folder.mkdir(parents=True, exist_ok=True)
    ranks = {
        "grid.1_0": (range(CELLS), []),
        "grid.2_0": (range(half), [half, CELLS - 1]),
        "grid.2_1": (range(half, CELLS), [0, half - 1]),
    }
    for name, (owned, halo) in ranks.items():
        subprocess.run(["ncgen", "-o", folder / f"{name}.nc", "-"], input=grid(owned, halo), text=True, check=True)


if __name__ == "__main__":
    main()
