# SPDX-License-Identifier: MIT
"""Runs of an ONNX Runtime session on the memory of the caller's arrays, prepared once per array and used again."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...script.shapes import Shape
from ...system import private_names
from .input_specs import Input, arrange, as_input, check
from .narrow_types import is_narrow, narrowed

_Key = tuple[Any, ...]
# Gives an array: one of the caller, who holds it during a call, or one of our own.
_Source = Callable[[], Any]


class Bindings:
    """A session, and a prepared run for each set of arrays that it was called with.

    The library passes the same array object for the same Fortran array as long as that stays where it is. So the
    identity of the objects tells a prepared run, for 0.2 us. Arrays are held by weak references only: a run is dropped
    with the first of its arrays, hence no memory is used that is gone, and the library does not see its arrays kept.
    """

    def __init__(
        self,
        session: Any,
        inputs: Sequence[Input],
        outputs: Sequence[Input],
        dtype: str,
        keep: bool,
        where: str,
    ) -> None:
        """``dtype``: "keep", or what real arrays are cast to. ``keep``: whether runs are prepared at all."""
        import numpy

        self._numpy = numpy
        self._inputs, self._outputs = list(inputs), list(outputs)
        self._dtype, self._keep, self._where = dtype, keep, where
        self.has_out = all(entry.name != "out" for entry in inputs)
        names = tuple(str(entry.name) for entry in outputs)
        self._result_type = type("Outputs", (tuple,), {"_fields": names})
        # ONNX Runtime does not hold a model to the names of its sizes: they explain a failure, and refuse nothing.
        self._needed = [replace(entry, shape=_without_names(entry.shape)) for entry in inputs]
        known_sizes = {size for entry in inputs for size in entry.shape or () if _is_name(size)}
        # Shapes that depend on the data are found out by trying.
        self._shapes_follow = all(
            entry.shape is not None and all(isinstance(size, int) or size in known_sizes for size in entry.shape)
            for entry in outputs
        )
        self._runs: dict[_Key, Callable[[], Any]] = {}
        self._references: dict[_Key, list[weakref.ref]] = {}
        self._start(session)
        self.forward = self._make_forward()

    def _start(self, session: Any) -> None:
        self._session = session
        self._runs.clear()
        self._references.clear()
        self._output_shapes: dict[_Key, list[tuple[int, ...]]] = {}

    def move_to(self, other: Bindings) -> None:
        """Go on with the session of another object; what was handed out as ``forward`` uses it from now on."""
        self._start(other._session)

    def _make_forward(self) -> Callable:
        runs, prepare = self._runs, self._call

        def forward(*args: Any, out: Any = None, **named: Any) -> Any:
            if named:
                run = runs.get((id(out), *map(id, args), *named, *map(id, named.values())))
            elif len(args) == 1:
                # Written out, because this is 0.3 us faster.
                run = runs.get((id(out), id(args[0])))
            else:
                run = runs.get((id(out), *map(id, args)))
            return prepare(args, named, out) if run is None else run()

        def forward_several(*args: Any, out: Any = None, **named: Any) -> Any:
            targets = () if out is None else (*out, *map(id, out.values())) if type(out) is dict else map(id, out)
            run = runs.get((*targets, *map(id, args), *named, *map(id, named.values())))
            return prepare(args, named, out) if run is None else run()

        return forward if len(self._outputs) == 1 else forward_several

    def _call(self, args: tuple, named: Mapping[str, Any], out: Any) -> Any:
        """A call that is not prepared."""
        values = arrange(self._inputs, args, named, self._where)
        arrays = [as_input(entry, value, self._dtype, self._where) for entry, value in zip(self._inputs, values)]
        check(self._needed, arrays, self._where)
        sizes = tuple(array.shape for array in arrays)
        shapes = self._output_shapes.get(sizes)
        targets = self._targets(out)
        has_arrays = all(hasattr(value, "__array_interface__") for value in values)
        if not self._keep or targets is None or shapes is None or not has_arrays:
            return self._run_once(arrays, sizes)
        outs = [targets.get(place) for place in range(len(self._outputs))]
        key = (*self._key_of(out), *map(id, args), *named, *map(id, named.values()))
        run = self._prepare(values, arrays, outs, shapes)
        if run is None:
            return self._run_once(arrays, sizes)
        result = run()
        held = [*values, *(target for target in outs if target is not None)]
        self._runs[key] = run
        self._references[key] = [weakref.ref(array, self._dropper(key)) for array in held]
        return result

    def _run_once(self, arrays: Sequence[Any], sizes: _Key) -> Any:
        feed = {entry.name: array for entry, array in zip(self._inputs, arrays)}
        try:
            results = self._session.run([entry.name for entry in self._outputs], feed)
        except Exception:
            check(self._inputs, arrays, self._where)
            raise
        if len(self._output_shapes) > 255:
            self._output_shapes.clear()
        self._output_shapes[sizes] = [result.shape for result in results]
        return self._result_type(results)

    def _key_of(self, out: Any) -> Iterable[Any]:
        if len(self._outputs) == 1:
            return (id(out),)
        return (*out, *map(id, out.values())) if type(out) is dict else map(id, out)

    def _dropper(self, key: _Key) -> Callable[[Any], None]:
        runs, references = self._runs, self._references

        def drop(_: Any) -> None:
            runs.pop(key, None)
            references.pop(key, None)

        return drop

    def _targets(self, out: Any) -> dict[int, Any] | None:
        """The caller's arrays by the place of their output; None if there are none, or if they do not fit the outputs.

        Then the library itself finds out and says what is wrong.
        """
        if out is None:
            return None
        if len(self._outputs) == 1:
            return {0: out} if hasattr(out, "__array_interface__") else None
        if type(out) is dict:
            places = {entry.name: place for place, entry in enumerate(self._outputs)}
            return {places[name]: array for name, array in out.items()} if set(out) <= set(places) else None
        return dict(enumerate(out)) if len(out) == len(self._outputs) else None

    def _narrowed(self, entry: Input, source: _Source) -> Any:
        return narrowed(entry.dtype, source(), f"{self._where}: {entry.name}")

    def _prepare(
        self, values: Sequence[Any], arrays: Sequence[Any], outs: Sequence[Any], shapes: Sequence[tuple[int, ...]]
    ) -> Callable[[], Any] | None:
        """A run on the memory of these arrays; None where that cannot be."""
        numpy = self._numpy
        binding = self._session.io_binding()
        copies: list[tuple[Any, _Source]] = []
        sources: list[_Source] = []
        for entry, value, array in zip(self._inputs, values, arrays):
            if array is not value or not value.flags.c_contiguous:
                array = numpy.array(array, order="C")
                source: _Source = weakref.ref(value)
                narrow = is_narrow(entry.dtype)
                copies.append((array, functools.partial(self._narrowed, entry, source) if narrow else source))
            sources.append(weakref.ref(value) if array is value else functools.partial(_same, array))
            if array.size == 0:
                return None
            binding.bind_input(entry.name, "cpu", 0, array.dtype, array.shape, array.__array_interface__["data"][0])
        results: list[_Source] = []
        in_place = True
        for place, (entry, target, shape) in enumerate(zip(self._outputs, outs, shapes)):
            others = [*values, *(other for index, other in enumerate(outs) if index != place)]
            if target is None or not self._fits(target, entry, shape, others):
                target = numpy.empty(shape, entry.dtype)
                in_place = False
                results.append(functools.partial(_same, target))
            else:
                results.append(weakref.ref(target))
            if target.size == 0:
                return None
            binding.bind_output(entry.name, "cpu", 0, target.dtype, shape, target.__array_interface__["data"][0])
        run = private_names.bound_run(self._session, binding)
        if in_place and not copies and self._shapes_follow:
            return run
        return self._longer_run(run, copies, sources, None if in_place else results)

    def _fits(self, target: Any, entry: Input, shape: tuple[int, ...], others: Iterable[Any]) -> bool:
        """Whether the model may write into an array of the caller, while it reads and writes the others."""
        return (
            target.dtype == entry.dtype
            and target.shape == shape
            and target.flags.c_contiguous
            and target.flags.aligned
            and target.flags.writeable
            and not any(other is not None and self._numpy.may_share_memory(target, other) for other in others)
        )

    def _longer_run(
        self,
        run: Callable[[], Any],
        copies: Sequence[tuple[Any, _Source]],
        sources: Sequence[_Source],
        results: Sequence[_Source] | None,
    ) -> Callable[[], Any]:
        """A run with copies before it, with results beside the caller's arrays, or with shapes that may change."""
        copyto, result_type = self._numpy.copyto, self._result_type

        def longer() -> Any:
            for buffer, source in copies:
                copyto(buffer, source(), casting="same_kind")
            try:
                run()
            except Exception:
                # Where the shapes depend on the data, what is bound may be too large or too small. The library says so
                # of what is returned; any other failure comes once more.
                arrays = [source() for source in sources]
                return self._run_once(arrays, tuple(array.shape for array in arrays))
            return None if results is None else result_type(result() for result in results)

        return longer


def _same(array: Any) -> Any:
    return array


def _is_name(size: Any) -> bool:
    """Whether a size has a name that tells it from others; exporters write "?" for any size."""
    return isinstance(size, str) and size.isidentifier()


def _without_names(shape: Shape | None) -> Shape | None:
    return None if shape is None else tuple(None if isinstance(size, str) else size for size in shape)
