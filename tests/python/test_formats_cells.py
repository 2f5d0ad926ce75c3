# SPDX-License-Identifier: MIT
"""Each format, with files made by torch's own tools and by our export, gives what eager torch gives.

The tolerance is 1e-6, absolute, on values of size 1 in single precision.
"""

import os
import shutil

import pytest

import program
from ftn_pytorch.script.conventions import FORWARD

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import formats_models as models  # noqa: E402
from formats_models import call, close, load  # noqa: E402

INFERENCE_MODE = 2
BACKENDS = {"pt": "torchscript", "onnx": "onnx"}


@pytest.mark.parametrize("rows", [6, 11])
@pytest.mark.parametrize("source", models.SOURCES)
def test_results_are_those_of_eager(model_file, source, rows):
    runner = load(model_file(source))
    expected_backend = "aoti" if "package" in source else BACKENDS.get(models.SOURCES[source][0], "exported")
    assert runner.backend == expected_backend
    inputs = models.examples(rows)
    close(call(runner, *inputs)[1], models.mixed()(*inputs))


@pytest.mark.parametrize("source", [source for source in models.SOURCES if "package" not in source])
def test_inputs_may_be_named_in_any_order(model_file, source):
    x, index, mask = models.examples()
    close(call(load(model_file(source)), mask=mask, index=index, x=x)[1], models.mixed()(x, index, mask))


@pytest.mark.parametrize("source", ["scripted", "exported", "package", "onnx"])
def test_strided_inputs_are_read_right(model_file, source):
    x, index, mask = models.examples()
    inputs = x.t().contiguous().t(), index.repeat_interleave(2)[::2], mask.t().contiguous().t()
    assert not any(value.is_contiguous() for value in inputs)
    runner = load(model_file(source))
    for _ in range(3):
        close(call(runner, *inputs)[1], models.mixed()(x, index, mask))


@pytest.mark.parametrize("source", ["scripted", "exported", "package"])
def test_flag_for_inference_mode_is_honoured(model_file, source):
    runner = load(model_file(source))
    results = call(runner, *models.examples(), flags=INFERENCE_MODE)[1]
    assert all(result.is_inference() for result in results)
    close(results, models.mixed()(*models.examples()))


@pytest.mark.parametrize("source", ["exported", "package"])
def test_no_gradients_are_recorded(model_file, source):
    assert not any(value.requires_grad for value in call(load(model_file(source)), *models.examples())[1])


@pytest.mark.parametrize("source", ["scripted", "exported"])
def test_inputs_that_require_gradients_get_them(model_file, source):
    found, expected = [], []
    for gradient, compute in (
        (found, lambda *args: call(load(model_file(source)), *args)[1]),
        (expected, models.mixed()),
    ):
        x, index, mask = models.examples()
        sum(result.sum() for result in compute(x.requires_grad_(), index, mask)).backward()
        gradient.append(x.grad)
    close(found, expected)


def test_package_refuses_inputs_that_require_gradients(model_file, fails):
    x, index, mask = models.examples()
    runner = load(model_file("package"))
    for _ in range(2):
        with fails("ARGUMENT", "an input of forward of", "requires gradients", "scope%no_grad()"):
            call(runner, x.requires_grad_(), index=index, mask=mask)
        with torch.no_grad():
            close(call(runner, x, index=index, mask=mask)[1], models.mixed()(x, index, mask))


# ---- dictionaries, where the format has them


def test_exported_program_takes_and_gives_dictionaries(tmp_path):
    a, b = torch.rand(3, 2), torch.rand(3, 2)
    torch.export.save(torch.export.export(models.Named(), ({"a": a, "b": b},)), tmp_path / "named.pt2")
    runner = load(str(tmp_path / "named.pt2"))
    for _ in range(2):
        names, values = call(runner, b=b, a=a)
        assert names == ("sum", "difference")
        close(values, [a + b, a - b])


def test_package_takes_and_gives_dictionaries(model_file, fails):
    x, index, mask = models.examples()
    runner = load(model_file("package"))
    for _ in range(2):
        names, values = call(runner, x, mask=mask, index=index)
        assert names == ("picked", "masked")
        close(values, models.mixed()(x, index, mask))
    with fails("SIGNATURE", "no input 'x'", "an input without name; index; mask"):
        call(runner, x=x, mask=mask, index=index)


@pytest.mark.parametrize("kind", ["pt", "pt2"])
def test_dictionary_out(tmp_path, kind):
    a, b = torch.rand(3, 2), torch.rand(3, 2)
    path = str(tmp_path / f"results.{kind}")
    if kind == "pt":
        models._jit_save(torch.jit.script, models.Results(), path)
    else:
        torch.export.save(torch.export.export(models.Results(), (a, b)), path)
    names, values = call(load(path), a, b)
    assert names == ("sum", "difference")
    close(values, [a + b, a - b])


def test_scripted_model_takes_a_dictionary(tmp_path, fails):
    a, b = torch.rand(3, 2), torch.rand(3, 2)
    models._jit_save(torch.jit.script, models.Named(), str(tmp_path / "named.pt"))
    runner = load(str(tmp_path / "named.pt"))
    program.first_call(runner, FORWARD, (), {"b": b, "a": a})
    names, values = call(runner, b=b, a=a)
    assert names == ("sum", "difference")
    close(values, [a + b, a - b])
    with fails("SIGNATURE", "takes a dictionary", "names"):
        call(runner, a, b)


def test_onnx_results_have_the_names_of_the_model(model_file):
    names, values = call(load(model_file("onnx by trace")), *models.examples())
    assert names == ("picked", "masked")


def test_state_of_an_exported_program_changes_once_in_each_call(tmp_path, fails):
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            return x * self.count + torch.rand(())

    path = str(tmp_path / "counts.pt2")
    axes = ({0: torch.export.Dim("rows", max=100)},)
    torch.export.save(torch.export.export(Counts(), (torch.ones(3, 2),), dynamic_shapes=axes), path)
    runner = load(path)
    torch.manual_seed(1)
    expected = [number + torch.rand(()) for number in range(1, 6)]
    torch.manual_seed(1)
    for rows, wanted in zip((3, 3, 4, 5, 4), expected, strict=True):
        assert torch.equal(call(runner, torch.ones(rows, 2))[1][0], wanted.expand(rows, 2))
    with fails("SHAPE", "torch refuses these inputs"):
        call(runner, torch.ones(101, 2))
    assert runner._model.count == 5


def test_keyword_only_inputs_and_lists_of_an_exported_program(tmp_path, fails):
    class Odd(torch.nn.Module):
        def forward(self, pair, *, scale):
            return (pair[0] + pair[1]) * scale

    a, b, scale = torch.rand(2), torch.rand(2), torch.rand(2)
    torch.export.save(torch.export.export(Odd(), ([a, b],), {"scale": scale}), tmp_path / "odd.pt2")
    runner = load(str(tmp_path / "odd.pt2"))
    close(call(runner, a, b, scale)[1], [(a + b) * scale])
    close(call(runner, a, b, scale=scale)[1], [(a + b) * scale])
    with fails("SIGNATURE", "no input 'depth'"):
        call(runner, a, b, depth=scale)


# ---- options


@pytest.mark.parametrize("source", ["exported", "package", "onnx"])
def test_options_that_make_no_sense_are_refused(model_file, source, fails):
    with fails("ARGUMENT", "takes no config", "lr"):
        program.load_model(model_file(source), {"lr": 0.1})
    if source != "exported":
        with fails("ARGUMENT", "torch.compile cannot work on"):
            load(model_file(source), compile="default", compile_backend="inductor")
    runner = load(model_file(source))
    assert not program.has(runner, "ftn_pytorch_train")
    with fails("HOOK", "no function ftn_pytorch_train", FORWARD):
        program.function(runner, "ftn_pytorch_train")
    for action in (program.save, program.restore, program.checkpoint):
        with fails("HOOK", "which"):
            action(runner, "anywhere")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
@pytest.mark.parametrize("source", ["exported", "package", "onnx"])
def test_device_that_is_not_there_is_told(model_file, source, fails):
    with fails("DEVICE", "cuda"):
        load(model_file(source), device="cuda")


@pytest.mark.parametrize("source", ["exported", "package", "onnx"])
def test_reload_reads_the_file_again(model_file, source, tmp_path, fails):
    path = str(tmp_path / os.path.basename(model_file(source)))
    shutil.copy(model_file(source), path)
    runner = load(path)
    program.reload(runner)
    close(call(runner, *models.examples())[1], models.mixed()(*models.examples()))
    shutil.copy(model_file("scripted"), path)
    with fails("FORMAT", "of the kind 'torchscript' now"):
        program.reload(runner)
    close(call(runner, *models.examples())[1], models.mixed()(*models.examples()))
