# SPDX-License-Identifier: MIT
"""Grids for the minimal host of ComIn 0.2: a band of 160 cells around the equator, for one rank and for two.

python make_grids.py FOLDER       needs ncgen, of the netCDF tools
"""

import math
import subprocess
import sys
from pathlib import Path

CELLS = 160
HALF = CELLS // 2
# By number of ranks: the cells of each, and those that it has of others
RANKS = {
    1: [(range(CELLS), [])],
    2: [(range(HALF), [HALF, CELLS - 1]), (range(HALF, CELLS), [0, HALF - 1])],
}
REAL, WHOLE = "double", "int"


def place(cells):
    """Longitudes and latitudes, rad."""
    longitude = [2 * math.pi * cell / CELLS - math.pi for cell in cells]
    return longitude, [0.2 * math.sin(3 * each) for each in longitude]


def grid(owned, halo):
    """The grid of a rank as CDL: its own cells, then those of other ranks."""
    cells = [*owned, *halo]
    count = len(cells)
    longitude, latitude = place(cells)
    variables = {
        "clon": (REAL, "cell", longitude),
        "clat": (REAL, "cell", latitude),
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
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for count, ranks in RANKS.items():
        for rank, cells in enumerate(ranks):
            path = folder / f"grid.{count}_{rank}.nc"
            subprocess.run(["ncgen", "-o", path, "-"], input=grid(*cells), text=True, check=True)


if __name__ == "__main__":
    main()
