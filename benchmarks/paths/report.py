# SPDX-License-Identifier: MIT
"""The results as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import summary
from harness.tables import microseconds, page, table

from .plan import CASES, FILES, FLOOR, PATHS


def markdown(document: Mapping[str, Any]) -> str:
    """All tables, with what they were measured on."""
    part = document["part"]
    parts = [
        f"Written by `python benchmarks/run.py {' '.join(['paths', part]).strip()}`. The [README](../README.md) says "
        "what the cases, paths and columns mean.",
        f"Driver: {document['driver']}. {document['seconds'] / 60:.1f} minutes.",
    ]
    if document["results"]:
        parts += ["## Overview", overview(document["results"])]
    for case in dict.fromkeys(row["case"] for row in document["results"]):
        parts += [f"## {case}: {CASES[case].title}", case_table(document, case)]
    parts += ["## Cold start", cold_table(document["cold"])]
    if document["files"]:
        parts += ["## Files", files_table(document["files"])]
    if document["unavailable"]:
        parts += ["## Not available", unavailable_table(document["unavailable"])]
    if document["wrong"]:
        parts += ["## WRONG RESULTS, not measured", table(
            ("case", "size", "path", "error", "tolerance"),
            [(row["case"], row["size"], row["path"], f"{row['error']:.1e}", f"{row['tolerance']:.0e}")
             for row in document["wrong"]])]
    if judged := aims(document["results"], document["cold"]):
        parts += ["## Aims", table(("aim", "reached", "measured"), judged)]
    return page(f"Results of {'a part' if part else 'all paths'}", document, *parts)


def overview(results: Sequence[Mapping[str, Any]]) -> str:
    """The fastest call of plain Python in microseconds, and that of each path as a multiple of it."""
    paths = [path for path in PATHS if path != FLOOR and any(row["path"] == path for row in results)]
    lines = []
    for case, size in dict.fromkeys((row["case"], row["size"]) for row in results):
        fastest = {row["path"]: row["call_us"]["min"] for row in results if (row["case"], row["size"]) == (case, size)}
        floor = fastest.get(FLOOR)
        cells = [f"{fastest[path] / floor:.2f}" if path in fastest and floor else "" for path in paths]
        lines.append((case, size, microseconds(floor) if floor else "", *cells))
    head = ("case", "size", f"{PATHS[FLOOR]}, us", *(f"{PATHS[path]}, x" for path in paths))
    return "Fastest call of all rounds.\n\n" + table(head, lines)


def case_table(document: Mapping[str, Any], case: str) -> str:
    """Times of a call in microseconds, and what they are beside plain Python."""
    head = (CASES[case].unit, "path", "min, us", "mean", "median", "p99", "max", "x Python", "- Python, us")
    rows = [
        (row["size"], PATHS[row["path"]], *(microseconds(row["call_us"][name]) for name in summary.NAMES),
         f"{row['ratio']:.3f}" if "ratio" in row else "", f"{row['difference_us']:+,.2f}" if "ratio" in row else "")
        for row in _rows(document["results"], case)
    ]
    models = {size: document["models"].get(f"{case}_{size}", {}) for size in {row[0] for row in rows}}
    facts = next((f"{facts['parameters']:,} parameters. " for facts in models.values() if facts.get("parameters")), "")
    checked = f"Difference to plain Python before timing: {_errors(document['results'], case)}.\n\n"
    return facts + checked + table(head, rows)


def cold_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """From the start of a process to the end of its first call, and its memory then."""
    head = ("case", "path", "start, ms", "load, ms", "first call, ms", "together, ms", "median, ms", "x script",
            "peak memory, MiB", "private, MiB", "written, MiB", "Python in it")
    script = {(row["case"], row["size"]): row["total_ms"]["min"] for row in rows if row["path"] == "script"}
    order = list(PATHS)
    lines = []
    for case in dict.fromkeys(row["case"] for row in rows):
        for row in sorted((row for row in rows if row["case"] == case), key=lambda row: order.index(row["path"])):
            total, beside = row["total_ms"], script.get((case, row["size"]))
            times = (row["start_ms"], row["load_ms"], row["first_call_ms"], total["min"], total["median"])
            lines.append((
                f"{case} {row['size']}", PATHS[row["path"]], *(f"{value:,.0f}" for value in times),
                f"{total['min'] / beside:.2f}" if beside else "",
                *(f"{row[name]:,.0f}" for name in ("peak_mib", "private_mib", "dirty_mib")),
                "yes" if row["has_python"] else "no",
            ))
    return table(head, lines)


def files_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Sizes on disk."""
    return table(
        ("model", *(f"{text} (.{suffix}), KiB" for suffix, text in FILES.items())),
        [(row["model"], *(f"{row[suffix] / 1024:,.0f}" if suffix in row else "" for suffix in FILES)) for row in rows],
    )


def unavailable_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Which paths could not run what, and why; sizes with the same reason share a line."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        reasons.setdefault((row["path"], row["reason"], row["case"]), []).append(str(row["size"]))
    merged: dict[tuple[str, str], list[str]] = {}
    for (path, reason, case), sizes in reasons.items():
        merged.setdefault((path, reason), []).append(f"{case} ({', '.join(sizes)})")
    return table(("path", "cases", "not available because"),
                 [(PATHS[path], ", ".join(cases), reason) for (path, reason), cases in merged.items()])


def aims(results: Sequence[Mapping[str, Any]], cold: Sequence[Mapping[str, Any]] = ()) -> list[tuple[str, str, str]]:
    """What the design asks for of what was measured: the aim, whether it was reached, and the numbers."""
    found = {(row["case"], row["size"], row["path"]): row for row in results}
    # FTorch calls libtorch as one does by hand, which stands in for it where it is not installed.
    peer = "ftorch" if any(path == "ftorch" for _, _, path in found) else "libtorch"
    rows: list[tuple[str, str, str]] = []

    def compare(case: str, size: int, path: str, other: str, factor: float, slack_us: float, aim: str) -> None:
        """At most so many times what the other path takes, and so much more; of both the fastest call of all rounds,
        which is the one that nothing else on the machine has slowed down."""
        one, two = found.get((case, size, path)), found.get((case, size, other))
        if not (one and two):
            return
        mine, its = one["call_us"]["min"], two["call_us"]["min"]
        if slack_us:
            value, limit = mine - factor * its, slack_us
            measured = f"{value:+.2f} us, at most {limit}"
        else:
            value, limit = mine / its, factor
            measured = f"{value:.3f}, at most {limit}"
        rows.append((f"{case} {size}, {aim}", "yes" if value <= limit else "no", measured))

    compare("mlp", 32, "direct", peer, 1, 0, f"direct: beside {PATHS[peer]}")
    compare("large_stride", 512, "direct", peer, 1, 0, f"direct: beside {PATHS[peer]}")
    compare("train_step", 32, "direct", peer, 1, 0, f"direct: beside {PATHS[peer]}")
    for case in ("mlp", "train_step"):
        compare(case, 32, "recording", "recorded", 1, 0, f"{PATHS['recording']}: beside {PATHS['recorded']}")
    compare("train_step", 32, "recording", peer, 0.6, 0, f"{PATHS['recording']}: beside {PATHS[peer]}")
    compare("mlp", 32, "onnx", "python-onnx", 1, 1, ".onnx beyond ONNX Runtime in Python")
    for case, size, path in found:
        if path == "script":
            compare(case, size, path, FLOOR, 1.02, 0.5, "script beyond 1.02 of plain Python")
    for case, size in (("resnet18", 1), ("resnet18", 10), ("unet", 1)):
        compare(case, size, "script", "direct", 1.03, 0, "script: beside direct")
    return rows + _aims_of_memory(cold)


def _aims_of_memory(cold: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """A process that trains without Python has a third less memory than one with Python."""
    found = {row["path"]: row for row in cold if row["case"] == "train_step"}
    rows: list[tuple[str, str, str]] = []
    if not {"recording", "script"} <= set(found):
        return rows
    for name, text in (("peak_mib", "peak memory"), ("private_mib", "private memory"), ("dirty_mib", "written memory")):
        aim = f"train_step, {PATHS['recording']}: {text} beside {PATHS['script']}"
        value = found["recording"][name] / found["script"][name]
        rows.append((aim, "yes" if value <= 2 / 3 else "no", f"{value:.3f}, at most 0.667"))
    return rows


def _rows(results: Sequence[Mapping[str, Any]], case: str) -> list[Mapping[str, Any]]:
    order = list(PATHS)
    return sorted((row for row in results if row["case"] == case), key=lambda r: (r["size"], order.index(r["path"])))


def _errors(results: Sequence[Mapping[str, Any]], case: str) -> str:
    rows = _rows(results, case)
    return f"{max(row['error'] for row in rows):.1e}, allowed {rows[0]['tolerance']:.0e}"
