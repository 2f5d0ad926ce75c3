# SPDX-License-Identifier: MIT
"""A call of a model in a Triton server beside the same request by tritonclient alone.

run.py server triton+grpc://localhost:8001/net

Both are in one process and take turns. Median times. It needs a built library and a server, such as
tests/tools/triton_server.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import machine  # noqa: E402
from harness.serve import repeated, serve  # noqa: E402
from harness.tables import page, table  # noqa: E402
from harness.turns import Effort, pivoted, rows  # noqa: E402
from harness.worker import workers  # noqa: E402

BATCH = 32
EFFORT = Effort(seconds=3, rounds=50)


def options(parser):
    parser.add_argument("address", nargs="?", help="such as triton+grpc://localhost:8001/net")


def measure(chosen, keep):
    if not chosen.address:
        raise ValueError("which model? Give its address, such as triton+grpc://localhost:8001/net")
    environment = {**machine.worker_environment(), "PYTHONPATH": machine.package_of(chosen.build)}
    command = [sys.executable, __file__, chosen.address]
    with machine.described() as found, workers({"python": command}, environment) as started:
        ways = {way: (started["python"], way) for way in ("ours", "client")}
        found["results"] = rows({"case": f"batch {BATCH}"}, ways, EFFORT.of(chosen.rounds))
    return found


def markdown(found):
    lines = []
    for (case,), times in pivoted(found["results"], ["case"]).items():
        ours, bare = times["ours"]["median"], times["client"]["median"]
        lines.append((case, f"{ours:.0f}", f"{bare:.0f}", f"{ours / bare:.2f}"))
    return page("A model in a server", found, table(("case", "a call, us", "tritonclient alone, us", "ratio"), lines))


def ways(text):
    import numpy
    from tritonclient.grpc import InferenceServerClient, InferInput

    from ftn_pytorch import _embed
    from ftn_pytorch.runners.models.triton_client import Address

    address = Address.parse(text)
    runner = _embed.load(1, text, {}, {})
    (entry,) = runner._client.inputs
    (output,) = runner._client.outputs
    x = numpy.ones([BATCH, *entry.shape[1:]], entry.dtype)
    forward = _embed.bind(runner, "ftn_pytorch_forward", 0)[0]
    client = InferenceServerClient(address.server)

    def alone():
        given = InferInput(entry.name, list(x.shape), "FP32")
        given.set_data_from_numpy(x)
        return client.infer(address.model, [given]).as_numpy(output.name)

    return {"ours": lambda: forward(x), "client": alone}


if __name__ == "__main__":
    serve({way: repeated(function) for way, function in ways(sys.argv[1]).items()})
