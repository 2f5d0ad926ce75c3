# SPDX-License-Identifier: MIT
"""python promises [--promise NAME ...] [--only TEXT ...] [--product COUNT [--seed SEED]] [--write]: verdicts.

``--write`` puts them into the headers of the corpus, which the tests compare with what they find, and counts them in
``matrix.md``. Scripts of the product that are restarted (``--promise restarted``) are others than those of the rest,
and have theirs in ``corpus/product/restarted.txt``.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("ftn_pytorch_ROOT", os.environ.get("FTN_PYTORCH_BUILD_DIR", ""))
sys.path[:0] = [str(ROOT / name) for name in ("tests", "tests/python", "python")]

import torch  # noqa: E402

from promises.asked import PROMISES, verdict  # noqa: E402
from promises.crossing import crossed, restarts, write_verdicts  # noqa: E402
from promises.matrix import PATH, written  # noqa: E402
from promises.scripts import corpus, with_verdicts  # noqa: E402


def warm_processes() -> None:
    """Processes that the package starts are forks of one that has imported torch, as in tests."""
    get_context = torch.multiprocessing.get_context
    get_context("forkserver").set_forkserver_preload(["torch", "torch._dynamo"])
    torch.multiprocessing.get_context = lambda way=None: get_context({"spawn": "forkserver"}.get(way, way))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--promise", nargs="*", default=[*PROMISES], choices=[*PROMISES])
    parser.add_argument(
        "--only", nargs="*", default=[""], help="scripts of this file, or whose name holds one of these"
    )
    parser.add_argument("--product", type=int, default=0, help="scripts of the product of kinds, places and ways")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warm_processes()
    of_restarts = options.product and options.promise == ["restarted"]
    product = restarts if of_restarts else crossed
    scripts = product(options.product, options.seed) if options.product else corpus()
    chosen = [
        each for each in scripts.values() if any(text in each.name or text == each.family for text in options.only)
    ]
    counts: collections.Counter = collections.Counter()
    found: dict[str, dict[str, str]] = {}
    kinds: dict[str, str] = {}
    begin, has_failed = time.perf_counter(), False
    for script in chosen:
        for promise in options.promise:
            if not script.can_be_asked(promise):
                continue
            try:
                kind, text = verdict(script, promise)
            except Exception as failure:  # of what asks; the others are asked all the same
                has_failed = True
                print(f"! {promise:14} {failure!r} | {script.name}", flush=True)
                continue
            wanted = script.verdict_of(promise)
            if wanted not in ("either", kind) and not (kind == "wrong" and wanted == "unseen"):
                found.setdefault(script.name, {})[promise] = kind
            counts[promise, kind] += 1
            kinds[script.name] = kind
            mark = " " if (options.product and not of_restarts) or wanted == kind else "!"
            print(f"{mark} {promise:14} {kind:8} | {script.name} | {text}", flush=True)
    for (promise, kind), count in sorted(counts.items()):
        print(f"{promise:14} {kind:8} {count:6}")
    print(f"{len(chosen)} scripts, {time.perf_counter() - begin:.0f} s")
    if options.write and of_restarts:
        write_verdicts(kinds)
    elif options.write:
        with_verdicts(found)
        PATH.write_text(written([*PROMISES]))
    return has_failed or any(kind == "wrong" for _, kind in counts)


if __name__ == "__main__":
    sys.exit(main())
