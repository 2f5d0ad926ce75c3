# SPDX-License-Identifier: MIT
"""Small ONNX models for tests, and their functions as the library binds them."""

import numpy
import onnx
from onnx import helper

import program
from ftn_pytorch.script.conventions import FORWARD


def write(path, nodes, inputs, outputs):
    """The path of a model as a text. Nodes are (operator, inputs, outputs); values are (name, type, shape)."""
    values = [[helper.make_tensor_value_info(*entry) for entry in entries] for entries in (inputs, outputs)]
    graph = helper.make_graph([helper.make_node(*node) for node in nodes], "g", *values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return str(path)


def load(path, **options):
    return program.load_model(path, **options)


def forward_of(runner):
    function, one_list, has_out, _ = program.bind(runner, FORWARD)
    assert (one_list, has_out) == (False, True)
    return function


def array(*values, dtype="float32"):
    return numpy.array(values, dtype)
