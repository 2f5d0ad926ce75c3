# SPDX-License-Identifier: MIT
"""python recorded_attack [COUNT [SEED]]: the verdict of each case, and how many there are of each."""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time

os.environ.setdefault("ftn_pytorch_ROOT", os.environ.get("FTN_PYTORCH_BUILD_DIR", ""))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from recorded_attack import by_hand, crossed  # noqa: E402
from recorded_attack.running import VARIED_FROM, change_matters, shows_a_change, verdict  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", nargs="?", type=int, default=350)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--useless", action="store_true", help="name the cases whose change does not show, and stop")
    parser.add_argument("--show", action="store_true", help="print the text of each wrong case")
    options = parser.parse_args()
    cases = {**by_hand(), **crossed(options.count, options.seed)}
    cases = {name: text for name, text in cases.items() if options.only in name}
    if options.useless:
        return sum(_is_useless(name, text) for name, text in cases.items()) > 0
    counts: collections.Counter = collections.Counter()
    start = time.perf_counter()
    for name, text in cases.items():
        for varied in VARIED_FROM:
            try:
                kind, why, _ = verdict(text, varied)
            except Exception as failure:
                kind, why = "broken", f"{type(failure).__name__}: {failure}"
            counts[kind] += 1
            print(f"{kind:11} {varied:5} | {name} | {why}", flush=True)
            if options.show and kind == "WRONG":
                print(text)
    print(dict(counts), f"{len(cases)} cases, {time.perf_counter() - start:.0f} s")
    return counts["WRONG"] > 0


def _is_useless(name: str, text: str) -> bool:
    try:
        found = shows_a_change(text) and not change_matters(text)
        why = "its change does not show" if found else ""
    except Exception as failure:
        why = f"{type(failure).__name__}: {failure}"
    if why:
        print(f"{name} | {why}", flush=True)
    return bool(why)


if __name__ == "__main__":
    sys.exit(main())
