# SPDX-License-Identifier: MIT
"""ONNX Runtime: products of matrices, and what a network is made of."""

import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, helper

FLOATS = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "n"])
RESULT = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "n"])
NODES = [
    helper.make_node("MatMul", ["x", "x"], ["square"]),
    helper.make_node("Tanh", ["square"], ["bounded"]),
    helper.make_node("Gemm", ["bounded", "x", "x"], ["sum"], transB=1),
    helper.make_node("Softmax", ["sum"], ["y"]),
]
MODEL = helper.make_model(
    helper.make_graph(NODES, "products", [FLOATS], [RESULT]), ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
)


def ftn_pytorch_forward(x):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(MODEL.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x[0].numpy().astype(np.float32)})
    return torch.from_numpy(y).double().flatten()
