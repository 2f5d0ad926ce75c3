# SPDX-License-Identifier: MIT
"""Write the Fortran that a template stands for: expand.py TEMPLATE OUTPUT [DEFINITION...]

Templates see the pieces of this folder and of their own, `interface`, which has what ftn_pytorch.h declares, and
`option_table`, which has the options of load.
"""

import sys
from pathlib import Path

import fypp

FORTRAN = Path(__file__).resolve().parent


def expanded(template: Path, *definitions: str) -> str:
    options = fypp.FyppOptions()
    options.defines = list(definitions)
    options.includes = [str(FORTRAN), str(template.parent)]
    options.moduledirs = [str(FORTRAN.parent / "src"), str(FORTRAN.parent / "python" / "ftn_pytorch" / "runners")]
    options.modules = ["interface", "option_table"]
    return fypp.Fypp(options).process_file(str(template))


if __name__ == "__main__":
    sys.dont_write_bytecode = True  # beside the sources
    try:
        Path(sys.argv[2]).write_text(expanded(Path(sys.argv[1]), *sys.argv[3:]))
    except fypp.FyppError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
