# SPDX-License-Identifier: MIT
"""``check --time``: what a script, or a saved model, costs on each path, with the user's own shapes."""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from ..errors import FtnPytorchError, message
from ..script import framework, parameters, results
from ..script.conventions import FORWARD, PREFIX, TRAIN
from ..system import process
from . import differences, export
from .c_interface import Array, note_others, seconds_per_call
from .opened import NO_TARGETS, Opened, opened
from .table_of_times import Report, Row, table

# Two to warm up, three attempts, three that are compared
_CALLS_UNTIL_RECORDED = 8
_BACKENDS = ("direct", "python")
# title, argument of export, whether it is compiled ahead of time, who runs it
_FORMATS = (
    ("TorchScript", "pt", False, _BACKENDS),
    ("torch.export", "pt2", False, ("python",)),
    ("ONNX", "onnx", False, ("python",)),
    ("AOTInductor", "pt2", True, _BACKENDS),
)


def run(chosen: argparse.Namespace) -> int:
    """Measure and show."""
    note_others()
    with contextlib.ExitStack() as stack:
        one, load_seconds, memory = _cost(lambda: stack.enter_context(opened(chosen)))
        inputs = chosen.input or list(map(str, one.inputs))
        report = Report(one.path, inputs, load_seconds=load_seconds, memory=memory)
        _measure(report, one)
        report.machine, report.warnings = _machine(), one.library.warnings
        report.ctypes_seconds = seconds_per_call([lambda: one.library.c.fpt_tensor_is_set(0)], 0.05)[0]
    report.peak_memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(asdict(report), indent=2) if chosen.json else "\n".join(table(report)))
    return 0


def _cost(make: Callable[[], Any]) -> tuple[Any, float, int]:
    """What was made, the seconds that it took, and by how many bytes the memory has grown."""
    before, begin = process.memory(), time.perf_counter()
    made = make()
    return made, time.perf_counter() - begin, max(0, process.memory() - before)


class _Path(NamedTuple):
    """A way to call something."""

    title: str
    make: Callable[[], tuple[Callable[[], Any], Sequence[Any] | None]]
    """Loads, calls once, and gives a function to time, and its results, None where they may be others in each call."""
    unfit: Callable[[Callable[[], Any]], str] | None = None
    """Why the function is not to be timed, empty if it is."""
    is_loaded: bool = True
    """Whether ``make`` loads anything."""


def _measure_paths(report: Report, function: str, paths: Iterable[_Path]) -> None:
    """Rows of paths that are measured together; the first one is what the others are compared with."""
    calls: list[tuple[Row, Callable[[], Any]]] = []
    wanted: Sequence[Any] | None = None
    for path in paths:
        row = Row(function, path.title)
        report.rows.append(row)
        try:
            (call, found), seconds, memory = _cost(path.make)
            row.note = path.unfit(call) if path.unfit else ""
        except Exception as failure:
            row.note = " ".join(_told(failure).split())
        if row.note:
            continue
        if path.is_loaded:
            row.load_seconds, row.memory = seconds, memory
        if found is not None:
            wanted = wanted or found
            row.note = _difference(found, wanted)
        calls.append((row, call))
    try:
        times = seconds_per_call([call for _, call in calls]) if calls else []
    except Exception as failure:
        for row, _ in calls:
            row.note = f"a later call failed: {_told(failure).splitlines()[0]}"
        return
    for (row, _), seconds in zip(calls, times):
        row.seconds, row.ratio = seconds, seconds / times[0]


def _measure(report: Report, one: Opened) -> None:
    """Each hook on all paths, and a network of a script in the formats of saved models."""
    given, aims = one.given(), one.aims([])
    script = _InPython(one, report) if one.module.backend == "script" else None
    if FORWARD in one.hooks:
        _measure_paths(report, "forward", _paths(one, script, FORWARD, given, []))
        aims = aims or (one.aims(one.forward(given)[0]) if TRAIN in one.hooks else [])
    if script is not None:
        script.measure_network(given)
    if TRAIN in one.hooks and aims:
        _measure_paths(report, "train", _paths(one, script, TRAIN, given, aims))
    elif TRAIN in one.hooks:
        report.rows.append(Row("train", "all paths", note=NO_TARGETS))


def _paths(one: Opened, script: _InPython | None, hook: str, given: list[Array], aims: list[Array]) -> list[_Path]:
    def through(load: Callable[[], Opened], is_compared: bool = True) -> Any:
        """Through the library, with results delivered into arrays where all are some."""
        loaded = load()
        if hook == TRAIN:
            return _called(loaded.train(given, aims))
        _, arrays, call = loaded.forward(given)
        return call, arrays if is_compared else None

    if script is None:
        loads = {backend: functools.partial(one.again, True, backend=backend) for backend in _BACKENDS}
        return [_Path(title, functools.partial(through, load)) for title, load in loads.items()]
    recorded = functools.partial(through, lambda: one.again(False, record=1), is_compared=False)
    return [
        _Path("Python", functools.partial(script.called, hook, given, aims), is_loaded=False),
        _Path("ftn_pytorch", functools.partial(through, lambda: one), is_loaded=False),
        *[_Path("ftn_pytorch, recorded", recorded, script.unrecorded)] * (script.torch is not None),
    ]


def _called(call: Callable[[], Any]) -> tuple[Callable[[], Any], None]:
    """A function of which it is known that it can be called; what training gives is different in each call."""
    call()
    return call, None


class _InPython:
    """A script that is called by Python itself."""

    def __init__(self, one: Opened, report: Report) -> None:
        self._one, self._report, self._names = one, report, vars(one.script)
        uses_torch = framework.decide(one.script, one.path, True) == framework.TORCH
        self.torch = framework.import_torch(one.path) if uses_torch else None
        self._networks = parameters.networks_in(self._names)
        every = {id(each): each for network in self._networks.values() for each in network.parameters()}.values()
        report.parameters = sum(each.numel() for each in every)
        report.parameter_bytes = sum(each.numel() * each.element_size() for each in every)

    def called(self, hook: str, given: list[Array], aims: list[Array]) -> tuple[Callable[[], Any], list[Any] | None]:
        """A hook with what Python code would pass, called once, and its results; those of training differ."""
        values = self._values([*given, *(self._one.named(given, aims) if hook == TRAIN else [])])
        positional = [value for name, value in values if not name]
        call = functools.partial(self._names[hook], *positional, **{name: value for name, value in values if name})
        self._count_flops(hook.removeprefix(PREFIX), call)
        return _called(call) if hook == TRAIN else (call, _arrays(call()))

    def unrecorded(self, call: Callable[[], Any]) -> str:
        """Empty if the call runs from its recording from now on. The time of another call is none of a recorded one."""
        warnings = self._one.library.warnings
        before = len(warnings)
        for _ in range(_CALLS_UNTIL_RECORDED):
            call()
        is_told = any(" is not recorded: " in text for text in warnings[before:])
        return "is not recorded, for the reason below" if is_told else ""

    def measure_network(self, given: list[Array]) -> None:
        """One network of the script, without what the script does around it, in the formats of saved models."""
        chosen, networks = self._one.chosen, self._networks
        if self.torch is None or not networks:
            return
        name = chosen.network or (next(iter(networks)) if len(networks) == 1 else "")
        if name not in networks:
            there = f"the script has {', '.join(networks)}"
            if chosen.network:
                raise FtnPytorchError("ARGUMENT", f"--network {chosen.network}: {there}")
            self._report.rows.append(Row("network", "saved models", note=f"{there}: choose one with --network"))
            return
        network = copy.deepcopy(networks[name]).eval().requires_grad_(False)
        examples = tuple(value for _, value in self._values(given))
        with tempfile.TemporaryDirectory() as folder:
            _measure_paths(self._report, name, self._formats(network, examples, folder, given))

    def _formats(self, network: Any, examples: tuple, folder: str, given: list[Array]) -> Iterator[_Path]:
        call = functools.partial(network, *examples)
        yield _Path("Python", lambda: (call, _arrays(call())), is_loaded=False)
        if self._report.rows[-1].note:
            return
        for title, to, aot, backends in _FORMATS[: None if self._one.chosen.aot else -1]:
            file = os.path.join(folder, f"network_{aot}.{to}")
            settings = argparse.Namespace(to=to, aot=aot, trace=False, dynamic_batch=False)
            try:
                export.write(self.torch, network, examples, file, settings)
            except FtnPytorchError as failure:
                yield _Path(title, functools.partial(_fail, failure))
                continue
            saved = replace(self._one, path=file, is_recording=False)
            for path in _paths(saved, None, FORWARD, [("", value) for _, value in given], []):
                if path.title in backends:
                    yield path._replace(title=f"{title}, {path.title}")

    def _values(self, given: Sequence[Array]) -> list[Array]:
        """What Python code would pass."""
        if self.torch is None:
            return list(given)
        made = [(name, self.torch.from_numpy(value)) for name, value in given]
        wanted = getattr(self.torch, self._one.chosen.dtype, None)
        return [(name, value.to(wanted) if wanted and value.is_floating_point() else value) for name, value in made]

    def _count_flops(self, function: str, call: Callable[[], Any]) -> None:
        if self.torch is None:
            return
        from torch.utils.flop_counter import FlopCounterMode

        with contextlib.suppress(Exception), FlopCounterMode(display=False) as counter:
            call()
            self._report.flops[function] = counter.get_total_flops()


def _told(failure: Exception) -> str:
    return failure.text if isinstance(failure, FtnPytorchError) else message(failure).splitlines()[0]


def _fail(failure: Exception) -> Any:
    raise failure


def _arrays(result: Any) -> list[Any]:
    """The arrays among the results; numbers and texts are not compared."""
    return [value for value in results.unpack(result)[1] if hasattr(value, "shape")]


def _difference(found: Sequence[Any], wanted: Sequence[Any]) -> str:
    """Empty where results agree as other orders of the same sums do."""
    for one, other in zip(found, wanted):
        if differences.between(one, other).relative > differences.tolerance(other):
            return "other numbers than Python: the script draws random numbers, or changes with each call"
    return ""


def _machine() -> dict[str, Any]:
    model = ""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    torch = sys.modules.get("torch")
    return {
        "processor": model or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads() if torch else 1,
        "python": platform.python_version(),
        "torch": str(torch.__version__) if torch else "",
    }
