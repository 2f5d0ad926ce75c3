# SPDX-License-Identifier: MIT
"""A call of a model in a Triton server beside the same request by tritonclient alone.

``python benchmarks/server/run.py ADDRESS``, such as triton+grpc://localhost:8001/net. Both take turns, call by call.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy
from tritonclient.grpc import InferenceServerClient, InferInput

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
from ftn_pytorch import _embed
from ftn_pytorch.runners.models.triton_client import Address

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

    times = [], []
    for _ in range(CALLS):
        for function, taken in zip((lambda: forward(x), alone), times):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    ours, bare = (1e6 * statistics.median(taken) for taken in times)
    print(f"batch {BATCH}: {ours:.0f} us, tritonclient alone {bare:.0f} us, ratio {ours / bare:.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
