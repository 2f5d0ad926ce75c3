# SPDX-License-Identifier: MIT
"""A run of ICON that was never made, as ComIn's recorders write one: what the replay tool of ComIn 0.3 and later reads.

python make_run.py FOLDER COMIN [RANKS]       COMIN: the sources of ComIn; needs ncgen, of the netCDF tools

The cells are those of make_grids.py, in blocks of 8. In each of three steps ICON calls `STEP`; the fields have their
values from its first entry point on.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from make_grids import CELLS, RANKS, place

BLOCK, LEVELS, STEPS = 8, 10, 3
OUTSIDE = -1  # of all domains
STEP = {
    "EP_ATM_TIMELOOP_START": False,
    "EP_ATM_ADVECTION_BEFORE": True,
    "EP_ATM_WRITE_OUTPUT_BEFORE": False,
    "EP_ATM_PHYSICS_BEFORE": True,
    "EP_ATM_TIMELOOP_END": False,
}  # True: it is called in each domain
# By step: those of the minimal host of ComIn 0.2. In the second domain they are larger by 1000.
FIELDS = {
    "temp": ("double", LEVELS, [42, 43, 44]),
    "u": ("double", LEVELS, [12, 14, 16]),
    "pres_sfc": ("double", 1, [50, 50, 57]),
    "single": ("float", LEVELS, [0.5, 1.5, 2.5]),
    "kind": ("int", 1, [3, 4, 5]),
}
TYPES = {"double": 1, "float": 2, "int": 3}  # of ComIn
ZAXIS = {1: 1, LEVELS: 2}  # likewise, by levels
LOGICAL = {True: "1b", False: "0b"}


@dataclass
class Variable:
    """extents: in the order of C. One with a name that `dimensions` has is unlimited."""

    kind: str
    extents: list[int]
    values: list
    attributes: dict[str, object]


def quoted(name: str) -> str:
    """A name of CDL."""
    return re.sub(r"([%:])", r"\\\1", name)


def text_of(value: object) -> str:
    """A value of CDL. Texts that are no numbers are in quotes."""
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    return f'"{value}"' if isinstance(value, str) and value not in LOGICAL.values() else str(value)


def attributes_of(owner: str, values: dict[str, object]) -> str:
    return "".join(f"  {owner}:{quoted(key)} = {text_of(value)} ;\n" for key, value in values.items())


def body(variables: dict[str, Variable], attributes: dict[str, object], unlimited: str = "") -> str:
    """Dimensions, variables, attributes and values of a file or a group."""
    dimensions, declared, values = "", "", ""
    for name, this in variables.items():
        names = [f"{quoted(name)}_{axis}" for axis in range(len(this.extents))]
        dimensions += "".join(f"  {each} = {extent} ;\n" for each, extent in zip(names, this.extents, strict=True))
        axes = ", ".join([unlimited, *names] if unlimited else names)
        declared += f"  {this.kind} {quoted(name)}({axes}) ;\n" + attributes_of(quoted(name), this.attributes)
        values += f"  {quoted(name)} = {text_of(this.values)} ;\n"
    dimensions = f"dimensions:\n{dimensions}" if dimensions else ""
    values = f"data:\n{values}" if values else ""
    return f"{dimensions}variables:\n{declared}{attributes_of('', attributes)}{values}"


def blocks(values: list, padding: object) -> Variable:
    """A field of the cells of a rank."""
    count = math.ceil(len(values) / BLOCK)
    kind = "int" if isinstance(values[0], int) else "double"
    return Variable(kind, [count, BLOCK], [*values, *[padding] * (count * BLOCK - len(values))], {})


def domain(owned: range, halo: list[int], number: int) -> str:
    """What the run recorder writes of a domain. The padding of the last block looks owned, as in ICON."""
    cells = [*owned, *halo]
    longitude, latitude = place(cells)
    count = math.ceil(len(cells) / BLOCK)
    variables = {
        "cells%clon": blocks(longitude, 0.0),
        "cells%clat": blocks(latitude, 0.0),
        "cells%area": blocks([1e9] * len(cells), 1e9),
        "cells%decomp_domain": blocks([0] * len(owned) + [1] * len(halo), 0),
        "cells%hhl": Variable("double", [count, LEVELS + 1, BLOCK], [0.0] * (count * (LEVELS + 1) * BLOCK), {}),
        "cells%glb_index": Variable("int", [len(cells)], [cell + 1 for cell in cells], {}),
    }
    attributes = {
        "id": number,
        "number_of_grid_used": 1,
        "dom_start": 0.0,
        "dom_end": 1e9,
        "nlev": LEVELS,
        "cells%ncells": len(cells),
        "cells%ncells_global": CELLS,
        "cells%nblks": count,
        "timestep_length": 600.0 / number,
    }
    return f"group: domain_{number} {{\n{body(variables, attributes)}}}\n"


def fields(cells: int, number: int) -> str:
    """What the variable recorder writes of a domain."""
    count = math.ceil(cells / BLOCK)
    variables = {}
    for name, (kind, levels, by_step) in FIELDS.items():
        extents = [1, 1, count, levels, BLOCK] if levels > 1 else [1, 1, 1, count, BLOCK]
        values = [value + 1000 * (number - 1) for value in by_step for _ in range(count * levels * BLOCK)]
        metadata = {"tracer": LOGICAL[False], "zaxis_id": ZAXIS[levels], "datatype": TYPES[kind]}
        variables[name] = Variable(kind, extents, values, {f"metadata::{key}": each for key, each in metadata.items()})
    return f"group: domain_{number} {{\n{body(variables, {}, 'event')}}}\n"


def write(
    folder: Path, source: Path, ranks: int, domains: int = 1, restart: bool = False, checkpoint: bool = False
) -> None:
    """The data of all ranks. source: checkout of the ComIn that reads it. restart: as the second half of a run of an
    hour. checkpoint: ICON writes a restart file at the end."""
    version = re.search(r"^  VERSION (\d+)\.(\d+)\.(\d+)", (source / "CMakeLists.txt").read_text(), re.MULTILINE)
    numbers = re.findall(r"^ +(EP_\w+)", (source / "include" / "comin.h").read_text(), re.MULTILINE)
    run = {"comin_version": [int(each) for each in version.groups()], "host_comm_size": ranks}
    begin = 30 * restart
    calls = [("EP_SECONDARY_CONSTRUCTOR", OUTSIDE, begin), ("EP_ATM_TIMELOOP_BEFORE", OUTSIDE, begin)]
    for step in range(STEPS):
        for name, is_inside in STEP.items():
            minute = begin + 10 * (step + (name == "EP_ATM_TIMELOOP_END"))
            calls += [(name, each, minute) for each in (range(1, domains + 1) if is_inside else [OUTSIDE])]
    end = begin + 10 * STEPS
    calls += [("EP_ATM_CHECKPOINT_BEFORE", OUTSIDE, end)] * checkpoint + [("EP_DESTRUCTOR", OUTSIDE, end)]
    times = [f"1950-01-01T{minute // 60:02}:{minute % 60:02}:00" for minute in (0, 60, begin, end)]
    shape = {
        **dict.fromkeys(["min_rlcell", "min_rlcell_int", "min_rlvert", "min_rlvert_int", "min_rledge"], -8),
        **dict.fromkeys(["min_rledge_int", "max_rlcell", "max_rlvert", "max_rledge", "grf_bdywidth_c"], 5),
        "grf_bdywidth_e": 9,
        "n_dom": domains,
        "max_dom": 10,
        "nproma": BLOCK,
        "wp": 0,
        "yac_instance_id": -1,
        "lrestartrun": int(restart),
        "has_device": 0,
        **dict(zip(("exp_start", "exp_stop", "run_start", "run_stop"), times, strict=True)),
    }
    history = {
        "current_ep": Variable("int", [len(calls)], [numbers.index(name) + 1 for name, _, _ in calls], {}),
        "current_domain_id": Variable("int", [len(calls)], [each for _, each, _ in calls], {}),
        "current_datetime": Variable(
            "char", [len(calls), 32], [f"1950-01-01T{at // 60:02}:{at % 60:02}:00" for *_, at in calls], {}
        ),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for rank, (owned, halo) in enumerate(RANKS[ranks]):
        of_rank = {**run, "host_comm_rank": rank}
        each = range(1, domains + 1)
        whole = body(history, {**of_rank, **shape}) + "".join(domain(owned, halo, number) for number in each)
        create(folder / f"{rank}.nc", whole)
        values = "".join(fields(len(owned) + len(halo), number) for number in each)
        create(folder / f"vars_{rank}.nc", f"dimensions:\n  event = UNLIMITED ;\n{attributes_of('', of_rank)}{values}")


def create(path: Path, text: str) -> None:
    command = ["ncgen", "-k", "nc4", "-o", path, "-"]
    subprocess.run(command, input=f"netcdf run {{\n{text}}}\n", text=True, check=True)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]), int([*sys.argv, "1"][3]))
