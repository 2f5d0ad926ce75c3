# SPDX-License-Identifier: MIT
"""Write models of other formats than TorchScript into the current folder. Their answers can be computed by hand."""

import torch
from blend import Blend, examples
from onnx import TensorProto, helper, save


def write_exported():
    batch = torch.export.Dim("batch")
    axes = {name: {0: batch} for name in ("x", "index", "mask")}
    torch.export.save(torch.export.export(Blend(), examples(), dynamic_shapes=axes), "blend.pt2")


def write_onnx():
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Add", ["x", "x"], ["double"]),
        helper.make_node("Neg", ["x"], ["minus"]),
        helper.make_node("Where", ["mask", "double", "minus"], ["blended"]),
        helper.make_node("Gather", ["x", "index"], ["picked"]),
    ]
    inputs = [
        info("x", TensorProto.FLOAT, ["batch", 3]),
        info("index", TensorProto.INT64, ["batch"]),
        info("mask", TensorProto.BOOL, ["batch", 3]),
    ]
    outputs = [info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("blended", "picked")]
    graph = helper.make_graph(nodes, "blend", inputs, outputs)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), "blend.onnx")
    graph = helper.make_graph(nodes[:1], "double", inputs[:1], [info("double", TensorProto.FLOAT, ["batch", 3])])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), "double.onnx")


if __name__ == "__main__":
    write_exported()
    write_onnx()
    torch.save({"weight": torch.ones(2)}, "weights.pt")
    with open("blend.onnx", "rb") as whole, open("cut.onnx", "wb") as part:
        part.write(whole.read()[:-20])
