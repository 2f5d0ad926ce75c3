# SPDX-License-Identifier: MIT
"""The network in a Triton server, by nvidia-pytriton: python server.py PORT FOLDER/heating.npz"""

import sys

import numpy
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

port, file = int(sys.argv[1]), sys.argv[2]
weights = list(numpy.load(file).values())
levels = weights[0].shape[1]


@batch
def heating(temperature):
    hidden = numpy.tanh(temperature @ weights[0].T + weights[1])
    return {"heating": hidden @ weights[2].T + weights[3]}


with Triton(config=TritonConfig(grpc_port=port, http_port=port + 1, metrics_port=port + 2)) as triton:
    triton.bind(
        model_name="heating",
        infer_func=heating,
        inputs=[Tensor(name="temperature", dtype=numpy.float32, shape=(levels,))],
        outputs=[Tensor(name="heating", dtype=numpy.float32, shape=(levels,))],
        # Requests of several ranks that come within 0.2 ms are answered together.
        config=ModelConfig(max_batch_size=4096, batcher=DynamicBatcher(max_queue_delay_microseconds=200)),
    )
    triton.serve()
