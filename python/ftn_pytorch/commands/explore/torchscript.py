# SPDX-License-Identifier: MIT
"""The graph of a TorchScript model, with its modules as layers."""

from __future__ import annotations

import warnings
from typing import Any

from ...errors import FtnPytorchError, message
from ...script.framework import import_torch
from .graph import Graph, Source

_LONGEST = 200  # characters of a value that is shown
_CONTAINERS = ("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct")
_UNPACKING = ("prim::ListUnpack", "prim::TupleUnpack")
# What a value of the graph stands for: outputs of nodes, a module, a parameter or a constant.
Sources = dict[str, list[Source]]


def graph_of(path: str) -> Graph:
    """FORMAT if torch cannot read the file."""
    torch = import_torch(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            model = torch.jit.load(path, map_location="cpu")
    except Exception as failure:
        raise FtnPytorchError("FORMAT", f"{path} cannot be read: {message(failure)}") from failure
    graph = Graph(model.original_name or "graph")
    main = model.graph
    inputs = list(main.inputs())[1:]
    sources: Sources = {}
    for value in inputs:
        node = graph.add(value.debugName(), "inputs", (), {}, [_type(value)])
        sources[value.debugName()] = [(node, 0)]
    results = _Reader(graph).add(main, {_first(main): model}, sources, model.original_name)
    for number, result in enumerate(results, 1):
        graph.add(f"result {number}", "outputs", result)
    return graph


class _Reader:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def add(self, block: Any, modules: dict[str, Any], sources: Sources, namespace: str) -> list[list[Source]]:
        """Nodes of a graph or block; where its results come from.

        ``modules``: modules, parameters and constants by the names of their values. ``sources``: those of tensors.
        """
        for node in block.nodes():
            kind, outputs = node.kind(), [value.debugName() for value in node.outputs()]
            inputs = [value.debugName() for value in node.inputs()]
            if kind == "prim::GetAttr":
                self._add_attribute(node, modules, sources, namespace)
            elif kind == "prim::Constant":
                modules[outputs[0]] = _constant(node)
            elif kind == "prim::CallMethod" and _is_module(modules.get(inputs[0])):
                self._add_call(node, modules, sources, namespace)
            elif kind in _CONTAINERS:
                modules[outputs[0]] = [modules.get(name, "") for name in inputs]
                sources[outputs[0]] = [source for name in inputs for source in sources.get(name, [])]
            elif kind in _UNPACKING:
                found = sources.get(inputs[0], [])
                for number, name in enumerate(outputs):
                    sources[name] = found[number : number + 1] if len(found) == len(outputs) else found
            else:
                self._add_node(node, modules, sources, namespace)
        return [sources.get(value.debugName(), []) for value in _results(block)]

    def _add_attribute(self, node: Any, modules: dict[str, Any], sources: Sources, namespace: str) -> None:
        owner, name = modules.get(node.input().debugName()), node.s("name")
        value: Any = getattr(owner, name, None)
        output = node.output().debugName()
        modules[output] = value
        if hasattr(value, "shape"):
            shape = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
            sources[output] = [(self._graph.add(name, f"{namespace}/parameters", (), {}, [shape]), 0)]

    def _add_call(self, node: Any, modules: dict[str, Any], sources: Sources, namespace: str) -> None:
        """The nodes of a method of a module, as a layer of its own."""
        first, *given = [value.debugName() for value in node.inputs()]
        module = modules[first]
        called = getattr(module, node.s("name")).graph
        names = [value.debugName() for value in called.inputs()]
        inner_modules = {
            names[0]: module,
            **{name: modules[there] for name, there in zip(names[1:], given) if there in modules},
        }
        inner_sources = {name: sources[there] for name, there in zip(names[1:], given) if there in sources}
        part = f"{_path_of(node.inputsAt(0))} {module.original_name}".strip()
        results = self.add(called, inner_modules, inner_sources, f"{namespace}/{part}")
        for value, result in zip(node.outputs(), results):
            sources[value.debugName()] = result

    def _add_node(self, node: Any, modules: dict[str, Any], sources: Sources, namespace: str) -> None:
        """An operator; of conditions and loops also what is inside."""
        inputs = [value.debugName() for value in node.inputs()]
        label = node.kind().removeprefix("aten::")
        if label == "prim::CallFunction":
            label, inputs = str(modules.get(inputs[0], "function")), inputs[1:]
        settings = {
            f"input {number}": str(modules[name])[:_LONGEST]
            for number, name in enumerate(inputs)
            if name in modules and name not in sources
        }
        edges = [source for name in inputs for source in sources.get(name, [])]
        made = self._graph.add(label, namespace, edges, settings, [_type(value) for value in node.outputs()])
        for number, value in enumerate(node.outputs()):
            sources[value.debugName()] = [(made, number)]
        for number, block in enumerate(node.blocks()):
            for value in block.inputs():
                sources[value.debugName()] = [(made, 0)]
            self.add(block, modules, sources, f"{namespace}/{label} {made}/block {number}")


def _first(graph: Any) -> str:
    return next(iter(graph.inputs())).debugName()


def _results(block: Any) -> list[Any]:
    return list(block.outputs())


def _is_module(value: Any) -> bool:
    return hasattr(value, "graph") or hasattr(value, "named_parameters")


def _path_of(value: Any) -> str:
    """The name of a submodule where it is used, "blocks.0"."""
    node = value.node()
    if node.kind() != "prim::GetAttr":
        return ""
    return f"{_path_of(node.input())}.{node.s('name')}".removeprefix(".")


def _constant(node: Any) -> Any:
    """The value of a constant, the name of a function, None."""
    return node.s("name") if "name" in node.attributeNames() else node.output().toIValue()


def _type(value: Any) -> str:
    """Type and shape as far as the graph tells them."""
    kind = value.type()
    sizes = kind.sizes() if kind.kind() == "TensorType" else None
    if sizes is None:
        return str(kind)
    return f"{str(kind.dtype()).removeprefix('torch.')}{list(sizes)}"
