# SPDX-License-Identifier: MIT
"""A reader of saved recordings, written from docs/ftr-format.md alone, with torch and nothing of this package.

It runs on the host, leaves checkpoints and ranks out, and trusts torch's reader of archives.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import operator
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import torch

_CLOSING = struct.Struct("<16sIIQQ")
_REFUSED = {"aten::from_file", "aten::_from_file", "aten::save", "aten::_print", "aten::warn"}
_ENTRIES = {"ftn_pytorch checkpoint", "arrays", "numbers", "generator", "recording", "state", "holes", "ranks"}
_LARGEST = 1 << 31
_COMPARES = (operator.lt, operator.le, operator.eq)
_COMPUTES = dict(enumerate((operator.add, operator.sub, operator.mul, operator.truediv, operator.pow), 3))


class Refused(Exception):
    """The file is refused, or a call that no recording takes."""


def require(is_so: bool, text: str) -> None:
    if not is_so:
        raise Refused(text)


class File:
    """An opened file: ``call`` runs its functions, which change ``arrays``; ``numbers`` may be changed."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as stream:
            data = stream.read()
        archive, self.description = _parts(data)
        try:
            content = torch.load(io.BytesIO(archive), weights_only=True)
        except Exception as failure:
            raise Refused(f"the archive: {failure}") from failure
        require(isinstance(content, dict) and content.get("ftn_pytorch checkpoint") == 1, "no checkpoint")
        require(content.keys() <= _ENTRIES, f"unknown entries: {sorted(content.keys() - _ENTRIES)}")
        self.arrays: dict[str, torch.Tensor] = content["arrays"]
        self.numbers: dict[str, float] = content["numbers"]
        recording = content["recording"]
        require(recording["version"] == 2, f"version {recording['version']} of recordings")
        self.parameters = dict(recording.get("parameters", ()))
        self._settings = _settings(recording)
        self.functions = {
            name: [_Recording(each, self.numbers) for each in every] for name, every in recording["functions"].items()
        }
        torch.set_rng_state(content["generator"])

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        """The result of a function; Refused if no recording takes the arguments now."""
        require(name in self.functions, f"no function {name}")
        chosen = self._chosen(name, args, named)
        with _set_to(self._settings), torch.no_grad(), torch.autocast("cpu", enabled=False):
            return chosen.run(self.arrays, self.numbers)

    def _chosen(self, name: str, args: Sequence[Any], named: dict[str, Any]) -> _Recording:
        fitting = [each for each in self.functions[name] if each.takes(args, named, self.arrays, self.numbers)]
        require(bool(fitting), f"{name}: no recording takes these arguments now")
        for is_exact in (True, False):
            for each in fitting:
                if each.is_made_for_them(is_exact):
                    return each
        return fitting[0]


def _parts(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """Archive and description; nothing else of the file is looked at before the digest agrees."""
    require(len(data) >= _CLOSING.size + 32, "too short")
    mark, version, kind, length, size = _CLOSING.unpack(data[-_CLOSING.size - 32 : -32])
    require(mark == b"ftn_pytorch ckpt" and length + size + _CLOSING.size + 32 == len(data), "the end is missing")
    require(hashlib.sha256(data[:-32]).digest() == data[-32:], "the digest does not agree")
    require(1 <= version <= 3, f"format {version}")
    require(kind == 1, f"kind {kind}, which is no saved recording")
    return data[:length], json.loads(data[length : length + size])


# ---- settings


def _settings(recording: dict[str, Any]) -> dict[str, Any]:
    settings = recording["settings"]
    found = {name: each for name, each in settings.items() if name.startswith(("mkldnn", "deterministic"))}
    if "mkldnn_matmul_fp32" not in found:
        older = {"highest": "ieee", "high": "tf32", "medium": "bf16"}
        require(settings.get("matmul_precision") in older, "no precision of products")
        found["mkldnn_matmul_fp32"] = older[settings["matmul_precision"]]
    for name, each in found.items():
        if name.endswith("_fp32"):
            require(each in ("none", "ieee", "tf32", "bf16"), f"{name} is {each!r}")
    return {"default_dtype": getattr(torch, recording["default_dtype"]), **found}


def _present() -> dict[str, Any]:
    mkldnn = torch.backends.mkldnn
    return {
        "default_dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "mkldnn": mkldnn.enabled,
        "mkldnn_deterministic": mkldnn.deterministic,
        **{f"mkldnn_{name}_fp32": getattr(mkldnn, name).fp32_precision for name in ("matmul", "conv", "rnn")},
    }


def _put(wanted: dict[str, Any]) -> None:
    values = {**_present(), **wanted}
    torch.set_default_dtype(values["default_dtype"])
    torch.use_deterministic_algorithms(values["deterministic"], warn_only=values["deterministic_warn_only"])
    mkldnn = torch.backends.mkldnn
    mkldnn.enabled, mkldnn.deterministic = values["mkldnn"], values["mkldnn_deterministic"]
    for name in ("matmul", "conv", "rnn"):
        getattr(mkldnn, name).fp32_precision = values[f"mkldnn_{name}_fp32"]


@contextlib.contextmanager
def _set_to(wanted: dict[str, Any]) -> Iterator[None]:
    before = _present()
    try:
        _put(wanted)
        yield
    finally:
        _put(before)


# ---- recordings


def _is_one_tensor(one: Any, other: Any) -> bool:
    looks = [(each.data_ptr(), each.dtype, each.shape, each.stride()) for each in (one, other)]
    return looks[0] == looks[1]


def _is_equal(given: Any, constant: Any) -> bool:
    """Integer, real and logical are of different kinds, and so are zero and minus zero."""
    if isinstance(given, float) and isinstance(constant, float):
        return given.hex() == constant.hex()
    return type(given) is type(constant) and given == constant


class _Recording:
    def __init__(self, tape: dict[str, Any], numbers: dict[str, float]) -> None:
        self._tape = tape
        self._given: list[Any] = []
        self._batch = 0
        constants = {slot for slot, _ in tape["constants"]}
        self._check_inputs(constants)
        there = constants | {each[2] for each in tape["inputs"] if each[1] == "tensor"}
        require(all(kind != "setting" or rest[0] in numbers for kind, *rest in tape["numbers"]), "no such number")
        for code, one, other, _ in tape["branches"]:
            require(code in range(3), f"a comparison of code {code}")
            for formula in (one, other):
                self._check_formula(formula, set())
        self._operations = [self._operation(each, there, constants) for each in tape["operations"]]
        used = [*tape["results"], *(slot for _, slot in (*tape["before"], *tape["gradients"]) if slot != -1)]
        require(there.issuperset(used), "a slot that nothing is in")
        self._check_node(tape["template"], 0)

    def _check_slot(self, slot: int) -> None:
        require(0 <= slot < self._tape["slots"] <= 10_000_000, f"there is no slot {slot}")

    def _check_inputs(self, constants: set[int]) -> None:
        tape, follows = self._tape, False
        require(tape["least"] >= 1, f"a least batch of {tape['least']}")
        for slot, _ in tape["constants"]:
            self._check_slot(slot)
        for _, kind, what, *rest in tape["inputs"]:
            if kind == "value":
                require(isinstance(what, (type(None), bool, int, float, str)), "a constant that is no plain value")
                continue
            self._check_slot(what)
            require(kind == "tensor" and what not in constants and len(rest[1]) == len(rest[2]), "an input")
            for a, b in (*rest[1], *rest[2]):
                require(abs(a) < _LARGEST and (abs(b) < _LARGEST or (a == 0 and b >= 0)), "a size out of range")
                require(a == 0 or tape["batch"], "a size that follows from no batch")
            follows = follows or any(a for a, _ in rest[1])
        require(follows or not tape["batch"], "no input tells the batch")

    def _operation(self, operation: tuple, there: set[int], constants: set[int]) -> tuple:
        name, overload, schema, arguments, results = operation
        found = _operator(name, overload, schema)
        declared = found._schema.arguments
        require(len(arguments) == len(declared), f"{name} with {len(arguments)} arguments")
        require(len(results) <= len(found._schema.returns), f"{name} with {len(results)} results")
        for argument in arguments:
            self._check_argument(argument, there, constants)
        for slot in (slot for each in results for slot in each if slot != -1):
            self._check_slot(slot)
            require(slot not in constants, "a constant would change")
            there.add(slot)
        return found, declared, arguments, results

    def _check_argument(self, argument: tuple, there: set[int], constants: set[int]) -> None:
        kind, what, *_ = argument
        if kind in ("slot", "last"):
            require(what in there, f"nothing is in slot {what}")
            if kind == "last":
                require(what not in constants, "a constant would go")
                there.discard(what)
        elif kind == "list":
            require(there.issuperset(set(what) - {-1}), "a list with a slot that nothing is in")
        elif kind in ("number", "numbers"):
            for formula in [what] if kind == "number" else what:
                self._check_formula(formula, there)
        elif kind in ("size", "real", "fraction", "sizes"):
            require(self._tape["batch"], "a size that follows from no batch")
        elif kind in ("dtype", "layout", "memory_format"):
            require(isinstance(getattr(torch, what, None), getattr(torch, kind)), f"{kind} {what}")
        else:
            require(kind in ("value", "complex", "device"), f"an argument of kind {kind}")

    def _check_formula(self, formula: list[tuple[int, Any]], there: set[int]) -> None:
        height = 0
        for code, what in formula:
            require(code in range(9), f"a formula with code {code}")
            require(code != 0 or 0 <= what < len(self._tape["numbers"]), f"no number {what}")
            require(code != 1 or what in there, f"a formula with slot {what}")
            height += 1 if code < 3 else 0 if code == 8 else -1
            require(height > 0, "a formula that computes with nothing")
        require(height == 1, f"a formula that leaves {height} numbers")

    def _check_node(self, node: tuple, depth: int) -> None:
        kind, what = node[:2]
        require(depth <= 20, "a result of too many levels")
        if kind == "tensor":
            require(0 <= what < len(self._tape["results"]), f"no result {what}")
        elif kind != "value":
            require(kind in ("tuple", "list", "dict", "named"), f"a result of kind {kind}")
            require(kind in ("tuple", "list") or len(what) == len(node[2]), "results lack names")
            for each in node[-1]:
                self._check_node(each, depth + 1)

    # -- whether it is the one for a call

    def takes(self, args: Sequence[Any], named: dict[str, Any], arrays: dict[str, Any], numbers: Any) -> bool:
        """Arguments, branches and what must be so before the run."""
        tape, given = self._tape, self._in_order(args, named)
        if given is None:
            return False
        self._given, self._batch = given, 0
        one_of: dict[int, Any] = {}
        for each, value in zip(tape["inputs"], given):
            if each[1] == "value":
                if isinstance(value, torch.Tensor) or not _is_equal(value, each[2]):
                    return False
            elif not self._fits(each, value) or not _is_one_tensor(one_of.setdefault(each[2], value), value):
                return False
        read = self._numbers(numbers)
        constants = dict(tape["constants"])
        return all(
            _COMPARES[code](self._value(one, read), self._value(other, read)) is outcome
            for code, one, other, outcome in tape["branches"]
        ) and all(
            name not in arrays if slot == -1 else name in arrays and _is_one_tensor(arrays[name], constants[slot])
            for name, slot in tape["before"]
        )

    def _in_order(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any] | None:
        names = [each[0] for each in self._tape["inputs"]]
        if len(args) + len(named) != len(names) or not named.keys() <= set(names):
            return None
        others = iter(args)
        return [named[name] if name in named else next(others) for name in names]

    def _fits(self, described: tuple, value: Any) -> bool:
        _, _, _, dtype, sizes, _ = described
        if not isinstance(value, torch.Tensor) or value.dtype != getattr(torch, dtype) or value.dim() != len(sizes):
            return False
        for (a, b), size in zip(sizes, value.shape):
            if a and not self._batch:
                self._batch = (size - b) // a
            if a and not self._tape["least"] <= self._batch <= _LARGEST:
                return False
            if a * self._batch + b != size:
                return False
        return True

    def _has_strides(self, described: tuple, value: Any, is_exact: bool) -> bool:
        wanted = [a * self._batch + b for a, b in described[5]]
        pairs = zip(value.shape, value.stride(), wanted)
        return all(stride == other or (size == 1 and not is_exact) for size, stride, other in pairs)

    def is_made_for_them(self, is_exact: bool) -> bool:
        """Strides are those of the recording, also of axes of length 1 if it is exact; nothing else is one tensor."""
        tensors = [(each, value) for each, value in zip(self._tape["inputs"], self._given) if each[1] == "tensor"]
        return all(self._has_strides(*pair, is_exact) for pair in tensors) and not any(
            one[2] != other[2] and _is_one_tensor(first, second)
            for place, (one, first) in enumerate(tensors)
            for other, second in tensors[:place]
        )

    # -- a run

    def _numbers(self, numbers: dict[str, float]) -> list[float]:
        return [
            numbers[each[0]] if kind == "setting" else float(each[0].item()) + each[1]
            for kind, *each in self._tape["numbers"]
        ]

    def run(self, arrays: dict[str, Any], numbers: dict[str, float]) -> Any:
        """Run for the arguments of the last ``takes``."""
        tape, read = self._tape, self._numbers(numbers)
        slots: dict[int, Any] = dict(tape["constants"])
        copies = self._put_inputs(slots)
        for called, declared, arguments, results in self._operations:
            values = [self._argument(each, slots, read) for each in arguments]
            positional = [value for each, value in zip(declared, values) if not each.kwarg_only]
            by_name = {each.name: value for each, value in zip(declared, values) if each.kwarg_only}
            made = called(*positional, **by_name)
            made = made if len(called._schema.returns) != 1 else (made,)
            for places, result in zip(results, made or ()):
                tensors = result if isinstance(result, (list, tuple)) else [result]
                slots.update({slot: tensor for slot, tensor in zip(places, tensors) if slot != -1})
        for name, slot in tape["gradients"]:
            arrays.pop(name, None)
            if slot != -1:
                arrays[name] = slots[slot]
        for place in tape["written_inputs"]:
            if place in copies:
                given, copy = copies[place]
                given.copy_(copy)
        return self._filled(tape["template"], [slots[slot] for slot in tape["results"]])

    def _put_inputs(self, slots: dict[int, Any]) -> dict[int, tuple]:
        """Copies by place among the tensors, with what they are copies of."""
        copies = {}
        tensors = [(each, value) for each, value in zip(self._tape["inputs"], self._given) if each[1] == "tensor"]
        for place, (described, value) in enumerate(tensors):
            if described[2] in slots:
                continue
            slots[described[2]] = value
            if not self._has_strides(described, value, False):
                strides = [a * self._batch + b for a, b in described[5]]
                copy = torch.empty_strided(value.shape, strides, dtype=value.dtype).copy_(value)
                slots[described[2]], copies[place] = copy, (value, copy)
        return copies

    def _argument(self, argument: tuple, slots: dict[int, Any], read: list[float]) -> Any:
        kind, what = argument[:2]
        if kind == "last":
            return slots.pop(what)
        if kind == "list":
            return [None if slot == -1 else slots[slot] for slot in what]
        if kind in ("dtype", "layout", "memory_format"):
            return getattr(torch, what)
        if kind == "number":
            return self._value(what, read, slots)
        if kind == "numbers":
            return [self._value(each, read, slots) for each in what]
        if kind == "sizes":
            return [a * self._batch + b for a, b in what]
        return {
            "slot": lambda: slots[what],
            "value": lambda: what,
            "complex": lambda: complex(*argument[1:]),
            "device": lambda: torch.device("cpu"),
            "size": lambda: what * self._batch + argument[2],
            "real": lambda: float(what * self._batch + argument[2]),
            "fraction": lambda: what / self._batch,
        }[kind]()

    def _value(self, formula: list[tuple[int, Any]], read: list[float], slots: Any = None) -> float:
        stack: list[float] = []
        for code, what in formula:
            if code < 3:
                stack.append(float(read[what] if code == 0 else slots[what] if code == 1 else what))
            elif code == 8:
                stack.append(-stack.pop())
            else:
                upper = stack.pop()
                stack.append(_COMPUTES[code](stack.pop(), upper))
        return stack[0]

    def _filled(self, node: tuple, tensors: list[Any]) -> Any:
        kind, what = node[:2]
        if kind in ("tensor", "value"):
            return tensors[what] if kind == "tensor" else what
        items = [self._filled(each, tensors) for each in node[-1]]
        return items if kind == "list" else tuple(items) if kind == "tuple" else dict(zip(what, items))


def _operator(name: str, overload: str, schema: str) -> Any:
    namespace, _, base = name.partition("::")
    is_refused = name in _REFUSED or (name, overload) == ("aten::_assert_async", "msg")
    require(namespace == "aten" and not is_refused, f"the operator {name}, which no file may call")
    found = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
    require(found is not None, f"this torch has no operator {name}.{overload}")
    require(str(found._schema) == schema, f"{name} is {found._schema} in this torch, and {schema} in the file")
    return found
