# SPDX-License-Identifier: MIT
"""Graphs in the JSON format of Model Explorer.

The format is that of ``model_explorer.graph_builder``: a file is a collection of graphs, a graph a list of nodes, and a
node names those that its inputs come from. Parts of a ``namespace`` between slashes are layers that can be opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Source = tuple[str, int]
"""A node and the number of its output."""


@dataclass
class Graph:
    """Nodes in the order in which they run."""

    name: str
    nodes: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        label: str,
        namespace: str = "",
        inputs: Sequence[Source] = (),
        settings: Mapping[str, object] = {},
        outputs: Sequence[str] = (),
    ) -> str:
        """Add a node; its identifier. ``outputs`` describes type and shape of each of its outputs."""
        node = str(len(self.nodes))
        edges = [
            {"sourceNodeId": source, "sourceNodeOutputId": str(number), "targetNodeInputId": str(place)}
            for place, (source, number) in enumerate(inputs)
        ]
        shapes = [
            {"id": str(number), "attrs": [{"key": "tensor_shape", "value": text}]}
            for number, text in enumerate(outputs)
        ]
        self.nodes.append(
            {
                "id": node,
                "label": label,
                "namespace": namespace,
                "attrs": [{"key": key, "value": str(value)} for key, value in settings.items()],
                "incomingEdges": edges,
                "outputsMetadata": shapes,
            }
        )
        return node

    def json(self, label: str) -> str:
        """The file, with ``label`` as the title of the collection."""
        return json.dumps({"label": label, "graphs": [{"id": self.name, "nodes": self.nodes}]}, indent=1)
