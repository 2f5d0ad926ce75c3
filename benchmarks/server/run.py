# SPDX-License-Identifier: MIT
"""A call of a model in a Triton server beside the same request by tritonclient alone.

``python benchmarks/server/run.py ADDRESS``, such as triton+grpc://localhost:8001/net. Both take turns, call by call.
"""

import sys
from pathlib import Path

import numpy
from tritonclient.grpc import InferenceServerClient, InferInput

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks")]
from analysis.turns import medians  # noqa: E402

from ftn_pytorch import _embed  # noqa: E402
from ftn_pytorch.runners.models.triton_client import Address  # noqa: E402

BATCH, CALLS = 32, 3000


def main(text):
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

    ours, bare = medians([lambda: forward(x), alone], CALLS)
    print(f"batch {BATCH}: {ours:.0f} us, tritonclient alone {bare:.0f} us, ratio {ours / bare:.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
