# SPDX-License-Identifier: MIT
"""The graph of an ONNX model."""

from __future__ import annotations

from typing import Any

from ...errors import FtnPytorchError, message
from .graph import Graph, Source

_LONGEST = 200  # characters of a value that is shown


def graph_of(path: str) -> Graph:
    """FORMAT if the file cannot be read, IMPORT if the package onnx is not installed."""
    from ..export import require

    require("onnx")
    import onnx

    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as failure:
        raise FtnPytorchError("FORMAT", f"{path} cannot be read: {message(failure)}") from failure
    graph = Graph(model.graph.name or "graph")
    _Reader(onnx, graph, model.graph).add(model.graph, {}, "")
    return graph


class _Reader:
    def __init__(self, onnx: Any, graph: Graph, main: Any) -> None:
        self._onnx, self._graph = onnx, graph
        values = (*main.input, *main.value_info, *main.output)
        self._shapes = {value.name: self._type(value.type) for value in values}

    def add(self, graph: Any, outer: dict[str, Source], namespace: str) -> None:
        """Nodes of a graph; ``outer`` are the values that a graph inside of another one sees."""
        sources = dict(outer)
        constants = {each.name: each for each in graph.initializer}
        for name, tensor in constants.items():
            shape = self._text(tensor.data_type, tensor.dims)
            node = self._graph.add(name, self._join(namespace, "parameters"), (), {}, [shape])
            sources[name] = (node, 0)
        for value in graph.input:
            if value.name not in constants:
                shape = self._type(value.type)
                sources[value.name] = (self._graph.add(value.name, self._join(namespace, "inputs"), (), {}, [shape]), 0)
        for node in graph.node:
            self._add_node(node, sources, namespace)
        for value in graph.output:
            known = [sources[value.name]] if value.name in sources else []
            self._graph.add(value.name, self._join(namespace, "outputs"), known, {}, [])

    def _add_node(self, node: Any, sources: dict[str, Source], namespace: str) -> None:
        place = self._join(namespace, *self._modules(node))
        kinds = self._onnx.AttributeProto
        settings = {} if node.domain in ("", "ai.onnx") else {"domain": node.domain}
        for each in node.attribute:
            if each.type not in (kinds.GRAPH, kinds.GRAPHS):
                value = self._onnx.helper.get_attribute_value(each)
                text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
                settings[each.name] = text[:_LONGEST]
        inputs = [sources[name] for name in node.input if name in sources]
        shapes = [self._shapes.get(name, "") for name in node.output]
        made = self._graph.add(node.op_type, place, inputs, settings, shapes)
        for number, name in enumerate(node.output):
            sources[name] = (made, number)
        for each in node.attribute:
            for number, inner in enumerate([each.g] if each.type == kinds.GRAPH else each.graphs):
                self.add(inner, sources, self._join(place, f"{node.op_type} {made}", f"{each.name} {number}"))

    @staticmethod
    def _modules(node: Any) -> list[str]:
        """Modules that the node is in, as exporters of torch write them down, each with its class.

        ": nets.Net/blocks.0: nets.Block/gelu: aten.gelu.default" is an operator of a block of a network.
        """
        written = next((each.value for each in node.metadata_props if each.key == "namespace"), "")
        found, outer = [], ""
        for path, _, kind in (part.partition(": ") for part in written.split("/")[:-1]):
            found.append(f"{path.removeprefix(f'{outer}.')} {kind.rpartition('.')[2]}".strip())
            outer = path
        return found

    def _type(self, kind: Any) -> str:
        tensor = kind.tensor_type
        return self._text(tensor.elem_type, [size.dim_param or size.dim_value for size in tensor.shape.dim])

    def _text(self, dtype: int, sizes: Any) -> str:
        name = self._onnx.TensorProto.DataType.Name(dtype).lower()
        return f"{name}[{', '.join(map(str, sizes))}]"

    @staticmethod
    def _join(*parts: str) -> str:
        return "/".join(filter(None, parts))
