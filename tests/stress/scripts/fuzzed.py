# SPDX-License-Identifier: MIT
"""Functions that take anything and return everything, for the driver fuzz_abi."""

import ctypes
import sys
import warnings
from collections import namedtuple
from dataclasses import dataclass

import numpy
import torch

warnings.filterwarnings("ignore", message=".*(never awaited|prototype stage|beta state|are deprecated)")

Pair = namedtuple("Pair", "first second")


@dataclass
class Record:
    first: object
    second: object


class Odd:
    """Fails in whatever is asked of it."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __len__(self):
        raise RuntimeError("no length")

    def __bool__(self):
        raise RuntimeError("no truth")


class OddList(list):
    def __len__(self):
        raise RuntimeError("no length")

    def __iter__(self):
        raise RuntimeError("no items")


class OddTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("no torch function")


async def coroutine():
    return 1.0


def generator():
    yield 1.0


def _results():
    """Results of every kind, in memory of their own."""
    f = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    z = torch.view_as_complex(torch.arange(4.0).reshape(2, 2))
    n = numpy.arange(6.0).reshape(2, 3)
    return [
        None, True, 1, -(2**62), 2**70, 1.5, float("nan"), float("inf"), 1 + 2j, "text", "", "\udce9", "x" * 5000,
        b"bytes", f, f.T, f[:, 1], f[:0], f.float(), f.half(), f.bfloat16(), f.int(), f.to(torch.uint8), f > 2,
        f.to(torch.complex64),
        z, z.conj(), z.conj().imag, torch.tensor(2.0), torch.tensor(3), torch.tensor(True), torch.tensor([]),
        torch._neg_view(f), f.clone().requires_grad_(), torch.nn.Parameter(f.clone()), f.expand(4, 2, 3), f.to_sparse(),
        torch.empty(3, device="meta"), torch.zeros([1] * 9), torch.quantize_per_tensor(f.float(), 0.1, 0, torch.qint8),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), f.as_subclass(OddTensor), f.to(torch.uint16),
        n, n.T, n[::-1], n[:, ::2], n.astype("float32"), n.astype(">f8"), n.astype("S3"), numpy.array("text"),
        n.astype(object), numpy.array(1.5), numpy.float32(2), numpy.bool_(True), numpy.longdouble(1),
        numpy.ma.masked_array(n), numpy.empty((0, 3)),
        numpy.zeros(3, [("a", "f8")]), numpy.array(["2020-01-01"], "M8[D]"), numpy.ones([1] * 8), numpy.zeros(2, "V0"),
        (), (f,), (f, f), [f, 1.0], (f, "text", None), ((f,),), {}, {"a": f}, {"a": f, "b": 1.0, "é": "x"}, {1: f},
        {"a": {"b": f}}, Pair(f, 2.0), Record(f, 2.0), Record, torch.max(f, 0), Odd(), OddList([f]),
        OddList([True, 1.0]), [True, 1.0], (False, f), (True, Odd()), (Odd(), 1.0),
        (torch.tensor(True), torch.tensor(0.5)), (numpy.bool_(False), numpy.float64(1)), (1.0, True), (True, "loss"),
        (True, None), (True, 1j), (True, 2**70), (True, float("nan")), [True, 0.5, 1], "ab", memoryview(b"abcd"),
        range(3), iter([1]), {1, 2}, type, sys, coroutine(), generator(), lambda: 1, NotImplemented, ...,
        Exception("as a value"),
    ]  # fmt: skip


RESULTS = _results()


def count():
    return len(RESULTS)


def pick(i, *_, **__):
    return RESULTS[int(i) % len(RESULTS)]


def same(*args, **kwargs):
    values = (*args, *kwargs.values())
    return values[0] if len(values) == 1 else values


def named(**kwargs):
    return kwargs


def fails(i, *_, **__):
    kinds = [ValueError("é"), KeyError(1), SystemExit(3), KeyboardInterrupt(), MemoryError(), GeneratorExit(),
             StopIteration(),
             RecursionError(), OSError(2, "\udce9"), UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "bad"),
             Exception("x" * 10000),
             BaseException(), ImportError("no"), SyntaxError("bad", ("f", 1, 1, "x")), AssertionError()]  # fmt: skip
    raise kinds[int(i) % len(kinds)]


def changes(*args, **kwargs):
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            value.zero_()


def disturbs(i, *args, **kwargs):
    """What a script may do to its inputs and should not."""
    for x in (*args, *kwargs.values()):
        if not isinstance(x, torch.Tensor):
            continue
        i = int(i) % 9
        if i == 0 and x.is_floating_point():
            x.requires_grad_()
        elif i == 1 and x.dim() == 2:
            x.t_()
        elif i == 2:
            x.set_(torch.zeros(3, dtype=x.dtype))
        elif i == 3:
            x.data = torch.zeros(5, dtype=x.dtype)
        elif i == 4:
            x.unsqueeze_(0)
        elif i == 5:
            x.owner = x
        elif i == 6 and x.numel() > 1:
            x.resize_(1)
        elif i == 7:
            torch.utils.swap_tensors(x, torch.zeros(2, dtype=x.dtype))
        elif i == 8:
            disturbs.kept = x


def writes(*args, out=None, **kwargs):
    for value in out if isinstance(out, list) else [out]:
        if isinstance(value, torch.Tensor):
            value.zero_()


callback = None


def set_callback(address):
    global callback
    callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(int(address))


def again(i, *_, **__):
    return callback(float(i))


def ftn_pytorch_forward(*args, **kwargs):
    return same(*args, **kwargs)


def ftn_pytorch_train(i, *_, **__):
    return pick(i) if isinstance(i, (int, float)) else (True, 0.5)


def ftn_pytorch_save(file):
    if "fail" in file:
        raise OSError("disk full")


def deep(n, *_, **__):
    return deep(n, *_)
