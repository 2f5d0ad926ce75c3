# SPDX-License-Identifier: MIT
"""benchmarks/ for import; workers that answer what they are told to, and results made with them."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from harness.turns import QUICK  # noqa: E402
from paths.measure import Setting, measure_case, measure_starts  # noqa: E402

WORKER = """
import sys
print("hello from a library", flush=True)
print(">> started 0 Fortran compiler, ftn_pytorch 1", flush=True)
for line in sys.stdin:
    command, *numbers = line.split()
    if command == "{fails_in}":
        sys.exit("out of luck")
    elif command == "{refuses}":
        print(">> unavailable there is no such thing", flush=True)
    elif command == "open":
        print(">> opened 2000000 1000000", {error}, "1e-5", flush=True)
    elif command == "call":
        print(">> times", *[{nanoseconds}] * int(numbers[0]), flush=True)
"""


class Pretended(Setting):
    """Each path is a Python program with the commands of bench_driver."""

    PATHS = {
        "python": {"nanoseconds": 10000},
        "script": {"nanoseconds": 10100},
        "direct": {"nanoseconds": 5000, "error": 1e-3},
        "recording": {"nanoseconds": 4000},
        "copy": {"fails_in": "open"},
        "compiled": {"fails_in": "call"},
        "torchscript": {"nanoseconds": "'garbled'"},
        "onnx": {"refuses": "open"},
    }

    def command(self, case, path):
        told = {"nanoseconds": 1, "error": 0, "fails_in": "", "refuses": "", **self.PATHS[path]}
        return [sys.executable, "-c", WORKER.format(**told)]


@pytest.fixture
def setting():
    manifest = {
        "problems": {
            "mlp_32": {"stem": "mlp", "parameters": 5508},
            "mlp_256": {"stem": "mlp", "parameters": 5508},
            "train_step_32": {"stem": "train_step", "parameters": 5508},
        },
        "missing": {"mlp.pt2": "no compiler"},
        "refused": {},
    }
    return Pretended(Path(), Path(), Path("/models"), max(os.sched_getaffinity(0)), manifest, {})


@pytest.fixture
def document(setting):
    """Results of one case on pretended workers, complete as in the file."""
    outcome = measure_case("mlp", [32], ["python", "script", "direct", "pt2"], setting, QUICK, lambda text: None)
    outcome.extend(measure_starts("mlp", 32, ["python", "script"], setting, 2))
    outcome.extend(measure_starts("train_step", 32, ["script", "recording"], setting, 1))
    return {
        "seconds": 60.0,
        "driver": "compiler",
        "models": setting.manifest["problems"],
        "files": [{"model": "mlp", "ftr": 54286, "pt": 29877}, {"model": "train_step", "ckpt": 1 << 20}],
        "versions": {"python": "3"},
        "effort": {},
        "part": "",
        "machine": {
            "processor": "P",
            "cores": 2,
            "core_used": 1,
            "memory_gib": 1,
            "system": "S",
            "load_before": 0,
            "load_after": 1,
        },
        **vars(outcome),
    }
