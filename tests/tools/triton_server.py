# SPDX-License-Identifier: MIT
"""A real Triton server with the model of ``tests/python/triton_double.py``: triton_server.py PORT"""

import sys

import numpy
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


@batch
def net(x):
    return {"y": numpy.tanh(x).sum(1, keepdims=True)}


port = int(sys.argv[1])
with Triton(config=TritonConfig(grpc_port=port, http_port=port + 1, metrics_port=port + 2)) as triton:
    triton.bind(
        model_name="net",
        infer_func=net,
        inputs=[Tensor(name="x", dtype=numpy.float32, shape=(3,))],
        outputs=[Tensor(name="y", dtype=numpy.float32, shape=(1,))],
        config=ModelConfig(max_batch_size=16, batcher=DynamicBatcher(max_queue_delay_microseconds=500)),
    )
    triton.serve()
