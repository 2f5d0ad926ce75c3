# SPDX-License-Identifier: MIT
"""Networks of the tests of formats, and the files that torch's own tools make of them."""

import warnings

import torch

import program
from ftn_pytorch import __main__
from ftn_pytorch.script.conventions import FORWARD

TOLERANCE = 1e-6


class Mixed(torch.nn.Module):
    """Three inputs of different types, two outputs."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, index, mask):
        y = self.linear(x)
        return y[index], torch.where(mask, y, torch.zeros_like(y))


class MixedFields(Mixed):
    """The same numbers, with a dictionary in and a dictionary out."""

    def forward(self, x, fields: dict[str, torch.Tensor]):
        picked, masked = super().forward(x, fields["index"], fields["mask"])
        return {"picked": picked, "masked": masked}


class Named(torch.nn.Module):
    """A dictionary in, a dictionary out."""

    def forward(self, fields: dict[str, torch.Tensor]):
        return {"sum": fields["a"] + fields["b"], "difference": fields["a"] - fields["b"]}


class Results(torch.nn.Module):
    """Tensors in, a dictionary out."""

    def forward(self, a, b):
        return {"sum": a + b, "difference": a - b}


def mixed(kind=Mixed):
    torch.manual_seed(5)
    return kind().eval()


def examples(rows=6):
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, 4, generator=generator)
    index = torch.randint(0, rows, (rows,), generator=generator)
    return x, index, torch.rand(rows, 3, generator=generator) > 0.5


BATCH = {"x": {0: "batch"}, "index": {0: "batch"}, "mask": {0: "batch"}}


def batch_axes():
    batch = torch.export.Dim("batch")
    return {name: {0: batch} for name in ("x", "index", "mask")}


def write_scripted(path):
    _jit_save(torch.jit.script, mixed(), path)


def write_traced(path):
    _jit_save(lambda net: torch.jit.trace(net, examples()), mixed(), path)


def _jit_save(make, net, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(make(net), path)


def write_exported(path):
    torch.export.save(torch.export.export(mixed(), examples(), dynamic_shapes=batch_axes()), path)


def write_package(path):
    """With dictionaries; the one that our export writes has none."""
    x, index, mask = examples()
    axes = batch_axes()
    exported = torch.export.export(
        mixed(MixedFields),
        (x, {"index": index, "mask": mask}),
        dynamic_shapes={"x": axes.pop("x"), "fields": axes},
    )
    torch._inductor.aoti_compile_and_package(exported, package_path=str(path))


def write_onnx(path):
    _onnx(path, dynamo=True, dynamic_shapes=batch_axes(), external_data=False)


def write_onnx_by_trace(path):
    names = ["x", "index", "mask"]
    _onnx(path, dynamo=False, input_names=names, output_names=["picked", "masked"], dynamic_axes=BATCH)


def _onnx(path, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(mixed(), examples(), str(path), verbose=False, **settings)


INPUTS = ["--input", "6x4", "--input", "6:int64", "--input", "6x3:bool"]
SOURCES = {
    "scripted": ("pt", write_scripted),
    "traced": ("pt", write_traced),
    "exported": ("pt2", write_exported),
    "onnx": ("onnx", write_onnx),
    "onnx by trace": ("onnx", write_onnx_by_trace),
    "our pt": ("pt", []),
    "our pt, traced": ("pt", ["--trace"]),
    "our pt2": ("pt2", []),
    "our onnx": ("onnx", []),
    "package": ("pt2", write_package),
    "our package": ("pt2", ["--aot"]),
}


def write(source, folder):
    """The file of a row above: extension, and torch's own tool or the options of our export."""
    extension, how = SOURCES[source]
    path = str(folder / f"{source.replace(' ', '_').replace(',', '')}.{extension}")
    if callable(how):
        how(path)
    else:
        options = ["--to", extension, "--dynamic-batch", "--output", path, *how]
        assert __main__.main(["export", f"{__file__}:mixed", *INPUTS, *options]) == 0
    return path


def load(path, **options):
    return program.load_model(path, **options)


def call(runner, *args, flags=0, **kwargs):
    """Results by name and values, for tensors in and out."""
    if runner.framework == "numpy":
        args, kwargs = [value.numpy() for value in args], {name: value.numpy() for name, value in kwargs.items()}
    names, values = program.unpack(program.function(runner, FORWARD, flags)(*args, **kwargs))
    return names, [torch.as_tensor(value) for value in values]


def close(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other.detach(), rtol=0, atol=TOLERANCE)
