# SPDX-License-Identifier: MIT
"""The runner for programs of torch.export (``.pt2``)."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...errors import FtnPytorchError, message
from ...script import compiling
from ...script.framework import TORCH, import_torch
from ...system import process
from ...tensors import device
from ...values import dtype_name
from . import formats
from .exported_content import without_code
from .input_specs import Input, check
from .narrow_types import is_narrow, narrowed
from .saved_model import SavedRunner
from .trees import Tree


class ExportedRunner(SavedRunner):
    """A program of torch.export.

    No gradients are recorded, since nothing here could use them. Inputs of shapes and types that are new are checked
    here and by torch; that takes 0.2 ms, so it is left out for those that were seen before.
    """

    backend = "exported"
    framework = TORCH
    what = "a program of torch.export"

    def _read(self) -> None:
        torch = import_torch(self.path)
        place = device.resolve(self._options.device, TORCH)
        options = self._options
        if options.compile is not None:
            compiling.prepare(options.compile_backend, place)
        program = _load(torch, self.path, options.weights_only)
        if place is not None:
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, place)
        tree, inputs = _inputs(program, self.path)
        guarded, model = program.module(), program.module(check_guards=False)
        _end_behind_guards(guarded)
        for parameter in (*guarded.parameters(), *model.parameters()):
            parameter.requires_grad_(False)
        network = model
        if options.compile is not None:
            model = torch.compile(model, mode=options.compile, backend=options.compile_backend)
        process.settle_threads()
        self._torch, self._tree, self._inputs, self._model, self._guarded = torch, tree, inputs, model, guarded
        self._network, self.device = network, place

    def networks(self) -> dict[str, Any]:
        return {"": self._network}

    def _forward(self) -> Callable:
        model, tree, inputs, where = self._model, self._tree, self._inputs, f"forward of {self.name}"
        tensor = self._torch.Tensor
        seen: set[tuple] = set()

        def forward(*args: Any, **named: Any) -> Any:
            flat: Any = args
            if named or not tree.is_plain:
                flat = tree.flat(args, named, where)
                args, named = tree.arguments(flat)  # type: ignore[assignment]
            key = tuple([(x.shape, x.dtype) if isinstance(x, tensor) else x for x in flat])
            if key not in seen:
                check(inputs, tree.flat(flat, {}, where), where)
                self._ask_torch(args, named, where)
                if len(seen) > 1023:
                    seen.clear()
                seen.add(key)
            return model(*args, **named)

        if not any(is_narrow(entry.dtype) for entry in inputs):
            return forward

        def forward_narrowed(*args: Any, **named: Any) -> Any:
            flat = tree.flat(args, named, where)
            return forward(*[narrowed(entry.dtype, x, f"{where}: {entry.name}") for entry, x in zip(inputs, flat)])

        return forward_narrowed

    def _ask_torch(self, args: Any, named: Any, where: str) -> None:
        """Run the guards of the program: sizes that follow from each other, and limits of sizes."""
        try:
            with self._torch.no_grad(), contextlib.suppress(_Kept):
                self._guarded(*args, **named)
        except (AssertionError, RuntimeError) as failure:
            raise FtnPytorchError("SHAPE", f"{where}: torch refuses these inputs: {message(failure)}") from failure


class _Kept(Exception):
    """All guards have been kept."""


def _end() -> None:
    raise _Kept


def _end_behind_guards(guarded: Any) -> None:
    """Cut off what the program computes: it would change its state, and draw random numbers, once more."""
    graph = guarded.graph
    first = next(each for each in graph.nodes if each.op not in ("placeholder", "get_attr", "call_module"))
    with graph.inserting_before(first):
        graph.call_function(_end)
    guarded.recompile()


def _load(torch: Any, path: str, weights_only: bool) -> Any:
    try:
        # torch asks for a name that ends in .pt2 and takes any stream.
        with _quiet():
            content = without_code(torch, path) if weights_only else io.BytesIO(Path(path).read_bytes())
            return torch.export.load(content)
    except FtnPytorchError:
        raise
    except Exception as failure:
        raise FtnPytorchError(
            "FORMAT",
            f"{path} cannot be read by torch.export.load of torch {torch.__version__}: {message(failure)}\n"
            f"{_origin(path)} Export it again with the torch that runs it.",
        ) from failure


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch logs what it then raises."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _origin(path: str) -> str:
    """Which torch wrote an archive, as far as it tells."""
    archive = formats.Archive(path)
    for name in archive.names:
        if name.startswith("models/") and name.endswith(".json"):
            program = archive.read_json(name)
            version = program.get("torch_version") if isinstance(program, dict) else None
            schema = program.get("schema_version") if isinstance(program, dict) else None
            return f"It was written by torch {version or 'of an unknown version'}, with schema {schema}."
    return "It was written by torch 2.6 or older."


def _inputs(program: Any, path: str) -> tuple[Tree, list[Input]]:
    signature = program.module_call_graph[0].signature
    tree = Tree(signature.in_spec, signature.forward_arg_names or (), path)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    given = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    inputs = []
    for name, spec in zip(tree.names, given):
        value: Any = values.get(getattr(spec.arg, "name", None))
        if getattr(value, "shape", None) is None:
            inputs.append(Input(name))
        else:
            shape = tuple(size if isinstance(size, int) else str(size) for size in value.shape)
            inputs.append(Input(name, dtype_name(value), shape))
    return tree, inputs
