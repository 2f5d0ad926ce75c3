# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch bench``: what a script, or a saved model, costs on each path, with the user's own shapes."""

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import FtnPytorchError, message
from ..runners.models import formats
from ..script import framework, loading, parameters
from ..script.conventions import FORWARD, TRAIN
from ..system import process
from ..values import differences, results
from . import check, export
from .bench_report import Report, Row, table
from .c_interface import Array, Library, Module, seconds_per_call
from .example_inputs import InputSpec, add_config, add_dtype, add_inputs, add_target, config_of, named_specs

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", help="a Python script, or a saved model")
    add_inputs(parser)
    add_target(parser)
    add_config(parser)
    add_dtype(parser)
    parser.add_argument(
        "--network", metavar="NAME", help="the network of the script to measure in the formats of saved models"
    )
    parser.add_argument("--aot", action="store_true", help="measure a package of AOTInductor, too; it takes a minute")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(chosen: argparse.Namespace) -> int:
    """Measure and show."""
    if note := process.busy():
        print(f"note: {note}", file=sys.stderr)
    with contextlib.redirect_stdout(sys.stderr):  # what the script prints
        report = _measure(chosen)
    print(json.dumps(asdict(report), indent=2) if chosen.json else "\n".join(table(report)))
    return 0


class _Bench:
    """Paths to one function, which are measured together; the first one is what the others are compared with."""

    def __init__(self, function: str, report: Report) -> None:
        self._function, self._report = function, report
        self._calls: list[tuple[Row, Callable[[], Any]]] = []
        self._wanted: list[Any] | None = None

    def add(
        self,
        path: str,
        make: Callable[[], tuple[Callable[[], Any], list[Any] | None]],
        unfit: Callable[[Callable[[], Any]], str] | None = None,
        loads: bool = False,
    ) -> None:
        """``make`` loads and calls once, and returns a function to time and its results, None where they may differ.

        ``unfit``: why that function is not to be timed, empty if it is.
        """
        row = Row(self._function, path)
        self._report.rows.append(row)
        before, begin = _resident(), time.perf_counter()
        try:
            call, found = make()
            seconds, memory = time.perf_counter() - begin, max(0, _resident() - before)
            row.note = unfit(call) if unfit else ""
        except FtnPytorchError as failure:
            row.note = " ".join(failure.text.split())
            return
        except Exception as failure:
            row.note = message(failure).splitlines()[0]
            return
        if row.note:
            return
        if loads or unfit:
            row.load_seconds, row.memory = seconds, memory
        if found is not None:
            self._wanted = self._wanted or found
            row.note = _difference(found, self._wanted)
        self._calls.append((row, call))

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be measured."""
        return not self._calls

    def measure(self) -> None:
        """Take the times of all paths."""
        if self.is_empty:
            return
        try:
            times = seconds_per_call([call for _, call in self._calls])
        except Exception as failure:
            text = failure.text if isinstance(failure, FtnPytorchError) else message(failure)
            for row, _ in self._calls:
                row.note = f"a later call failed: {text.splitlines()[0]}"
            return
        for (row, _), seconds in zip(self._calls, times):
            row.seconds, row.ratio = seconds, seconds / times[0]


def _measure(chosen: argparse.Namespace) -> Report:
    path = loading.find(chosen.file)
    inputs, targets = named_specs(chosen.input, "--input"), named_specs(chosen.target, "--target")
    given = [(spec.name, spec.array()) for spec in inputs]
    library = Library()
    report = Report(path, chosen.input)
    # Before torch is imported: whether a script uses it is told from what loading it does.
    begin, before = time.perf_counter(), _resident()
    module = library.load(path, False, {"dtype": chosen.dtype}, config_of(chosen))
    report.load_seconds, report.memory = time.perf_counter() - begin, _resident() - before
    if module.backend == "script":
        _measure_script(_Script(library, report, path, module, chosen), given, targets)
    else:
        _measure_model(library, report, path, module, given, targets)
    report.machine, report.warnings = _machine(), library.warnings
    report.ctypes_seconds = seconds_per_call([lambda: library.c.fpt_tensor_is_set(0)], 0.05)[0]
    report.peak_memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return report


def _measure_model(
    library: Library, report: Report, path: str, module: Module, given: Sequence[Array], targets: Sequence[InputSpec]
) -> None:
    """A saved model on both paths. Only a saved recording trains as it is."""
    aims = [(spec.name, spec.array()) for spec in targets]
    trains = module.backend == formats.RECORDING and module.has(TRAIN)
    predicts = not trains or module.has(FORWARD)
    if trains and predicts and not aims:
        aims = [("", each.zeros()) for each in module.forward(given) if each.is_array]
    module.free()
    if predicts:
        bench = _Bench("forward", report)
        _add_model(bench, library, "", path, given, _BACKENDS)
        bench.measure()
    if trains and not aims:
        report.rows.append(Row("train", "all paths", note=check.NO_TARGETS))
    elif trains:
        bench = _Bench("train", report)
        for backend in _BACKENDS:
            bench.add(backend, functools.partial(_trained, library, path, backend, given, aims), loads=True)
        bench.measure()


def _trained(library: Library, path: str, backend: str, given: Sequence[Array], aims: Sequence[Array]) -> Any:
    return _called(library.load(path, True, {"backend": backend}, {}).train_call(given, aims))


def _add_model(
    bench: _Bench, library: Library, title: str, file: str, given: Sequence[Array], backends: Sequence[str]
) -> None:
    """Rows of a saved model: through libtorch ("direct"), and through Python."""

    def through(backend: str) -> tuple[Callable[[], Any], list[Any] | None]:
        return _through(library.load(file, True, {"backend": backend}, {}), given)

    for backend in backends:
        bench.add(f"{title}{backend}", functools.partial(through, backend), loads=True)


def _through(module: Module, given: Sequence[Array]) -> tuple[Callable[[], Any], list[Any] | None]:
    """A call through the library that delivers into arrays, and these arrays after the first one.

    Where some results are no arrays, all are looked at and nothing is delivered.
    """
    found = module.forward(given)
    if not all(each.is_array for each in found):
        return functools.partial(module.forward, given), None
    outputs = [(each.name, each.zeros()) for each in found]
    call = module.forward_call(given, outputs)
    call()
    return call, [array for _, array in outputs]


@dataclass
class _Script:
    """A script that is loaded through the library."""

    library: Library
    report: Report
    path: str
    module: Module
    chosen: argparse.Namespace

    def __post_init__(self) -> None:
        self.module_of_python = check.module_of(self.path)
        self.names = vars(self.module_of_python)
        uses_torch = framework.decide(self.module_of_python, self.path, True) == framework.TORCH
        self.torch = framework.import_torch(self.path) if uses_torch else None

    def values(self, given: Sequence[Array]) -> list[Array]:
        """What Python code would pass."""
        if self.torch is None:
            return list(given)
        made = [(name, self.torch.from_numpy(value)) for name, value in given]
        wanted = getattr(self.torch, self.chosen.dtype, None)
        return [(name, value.to(wanted) if wanted and value.is_floating_point() else value) for name, value in made]

    def recorded_training(self, given: Sequence[Array], aims: list[Array]) -> tuple[Callable[[], Any], None]:
        return _called(self.recorded().train_call(given, aims))

    def unrecorded(self, call: Callable[[], Any]) -> str:
        """Empty if the call runs from its recording from now on. The time of another call is none of a recorded one."""
        told = len(self.library.warnings)
        for _ in range(_CALLS_UNTIL_RECORDED):
            call()
        is_told = any(" is not recorded: " in text for text in self.library.warnings[told:])
        return "is not recorded, for the reason below" if is_told else ""

    def recorded(self) -> Module:
        """The same script again, with what the library can record of it."""
        return self.library.load(self.path, False, {"dtype": self.chosen.dtype, "record": 1}, config_of(self.chosen))


def _measure_script(script: _Script, given: Sequence[Array], targets: Sequence[InputSpec]) -> None:
    module, report = script.module, script.report
    networks = parameters.networks_in(script.names)
    every = {id(one): one for network in networks.values() for one in network.parameters()}.values()
    report.parameters = sum(one.numel() for one in every)
    report.parameter_bytes = sum(one.numel() * one.element_size() for one in every)
    values = script.values(given)
    aims = [(spec.name, spec.array()) for spec in targets]
    if module.has(FORWARD):
        plain = _python_call(script.names[FORWARD], values)
        _count_flops(script, "forward", plain)
        bench = _Bench("forward", report)
        bench.add("Python", lambda: (plain, _arrays(plain())))
        bench.add("ftn_pytorch", lambda: _through(module, given))
        if script.torch is not None:
            bench.add("ftn_pytorch, recorded", lambda: (_through(script.recorded(), given)[0], None), script.unrecorded)
        bench.measure()
        if module.has(TRAIN) and not aims:
            aims = [("", each.zeros()) for each in module.forward(given) if each.is_array]
    if script.torch is not None and networks:
        _measure_network(script, networks, given)
    if module.has(TRAIN) and not aims:
        report.rows.append(Row("train", "all paths", note=check.NO_TARGETS))
    elif module.has(TRAIN):
        aims = check.named_targets(script.module_of_python, given, aims)
        train = _python_call(script.names[TRAIN], [*values, *script.values(aims)])
        _count_flops(script, "train", train)
        bench = _Bench("train", report)
        bench.add("Python", lambda: _called(train))
        bench.add("ftn_pytorch", lambda: _called(module.train_call(given, aims)))
        if script.torch is not None:
            recorded = functools.partial(script.recorded_training, given, aims)
            bench.add("ftn_pytorch, recorded", recorded, script.unrecorded)
        bench.measure()


def _measure_network(script: _Script, networks: Mapping[str, Any], given: Sequence[Array]) -> None:
    """One network of the script, without what the script does around it, in the formats of saved models."""
    chosen, torch = script.chosen, script.torch
    name = chosen.network or (next(iter(networks)) if len(networks) == 1 else "")
    if name not in networks:
        there = f"the script has {', '.join(networks)}"
        if chosen.network:
            raise FtnPytorchError("ARGUMENT", f"--network {chosen.network}: {there}")
        script.report.rows.append(Row("network", "saved models", note=f"{there}: choose one with --network"))
        return
    network = copy.deepcopy(networks[name]).eval().requires_grad_(False)
    examples = tuple(value for _, value in script.values(given))
    bench = _Bench(name, script.report)
    plain = functools.partial(network, *examples)
    bench.add("Python", lambda: (plain, _arrays(plain())))
    if bench.is_empty:
        return
    with tempfile.TemporaryDirectory() as folder:
        for title, to, aot, backends in _FORMATS[: None if chosen.aot else -1]:
            file = os.path.join(folder, f"{name.replace('.', '_')}_{aot}.{to}")
            settings = argparse.Namespace(to=to, aot=aot, trace=False, dynamic_batch=False)
            try:
                export.write(torch, network, examples, file, settings)
            except FtnPytorchError as failure:
                script.report.rows.append(Row(name, title, note=" ".join(failure.text.split())))
                continue
            _add_model(bench, script.library, f"{title}, ", file, [("", value) for _, value in given], backends)
        bench.measure()


def _python_call(function: Callable, values: Sequence[Array]) -> Callable[[], Any]:
    positional = [value for name, value in values if not name]
    return functools.partial(function, *positional, **{name: value for name, value in values if name})


def _called(call: Callable[[], Any]) -> tuple[Callable[[], Any], None]:
    """A function of which it is known that it can be called; what training gives is different in each call."""
    call()
    return call, None


def _arrays(result: Any) -> list[Any]:
    """The arrays among the results; numbers and texts are not compared."""
    return [value for value in results.unpack(result)[1] if hasattr(value, "shape")]


def _difference(found: Sequence[Any], wanted: Sequence[Any]) -> str:
    """Empty where results agree as other orders of the same sums do."""
    for one, other in zip(found, wanted):
        if differences.between(one, other).relative > differences.tolerance(other):
            return "other numbers than Python: the script draws random numbers, or changes with each call"
    return ""


def _count_flops(script: _Script, function: str, call: Callable[[], Any]) -> None:
    if script.torch is None:
        return
    from torch.utils.flop_counter import FlopCounterMode

    with contextlib.suppress(Exception), FlopCounterMode(display=False) as counter:
        call()
        script.report.flops[function] = counter.get_total_flops()


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


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
