# SPDX-License-Identifier: MIT
"""Run a benchmark, or take what was measured: write a table and its JSON file, draw pictures.

run.py paths --quick --case mlp --plot       measure
run.py paths --from FILE.json --plot         measure nothing: table and pictures of a stored result
run.py NAME --help                           what a benchmark takes beside that

NAME is a folder with a benchmark.py, which says what is measured: see README.md. Exit code 1 if a result was wrong, 2
if nothing could be measured.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from harness import document  # noqa: E402
from harness.worker import Unavailable  # noqa: E402

FAILURES = (OSError, ValueError, KeyError, ImportError, RuntimeError, Unavailable, subprocess.SubprocessError)
NAMES = sorted(file.parent.name for file in HERE.glob("*/benchmark.py"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    if not words or words[0] not in NAMES:
        parser.add_argument("NAME", choices=NAMES)
        parser.parse_args(words)
    benchmark = importlib.import_module(f"{words[0]}.benchmark")
    parser = argparse.ArgumentParser(
        prog=f"run.py {words[0]}", description=benchmark.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=Path("build/release"), help="build folder (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="default: %(default)s")
    parser.add_argument("--name", default=words[0], help="of the files that are written (default: %(default)s)")
    parser.add_argument("--rounds", type=int, help="turns that each process takes; by default those of the README")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="measure nothing, read this JSON file")
    if hasattr(benchmark, "draw"):
        parser.add_argument("--plot", action="store_true", help="draw pictures, too: needs matplotlib")
    if hasattr(benchmark, "options"):
        benchmark.options(parser)
    chosen = parser.parse_args(words[1:])
    file = chosen.output / f"{chosen.name}.json"
    try:
        if chosen.source:
            found = document.read(chosen.source)
        else:
            # What is there is written whenever there is more, and is left if the run is ended.
            found = benchmark.measure(chosen, lambda partly: document.write(partly, file))
        if hasattr(benchmark, "apply"):  # options of stored results, too
            benchmark.apply(chosen, found)
        document.write(found, file)
        text = benchmark.markdown(found)
        file.with_suffix(".md").write_text(text)
        print(text)
        for picture in benchmark.draw(found, chosen.output) if getattr(chosen, "plot", False) else ():
            print(f"picture: {picture}")
    except FAILURES as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        return 2
    return 1 if found.get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
