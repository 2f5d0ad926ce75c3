# SPDX-License-Identifier: MIT
"""Each format, with files made by torch's own tools and by our export, gives what eager torch gives.

The tolerance is 1e-6, absolute, on values of size 1 in single precision.
"""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from ftn_pytorch import __main__, _embed
from ftn_pytorch.conventions import FORWARD
from ftn_pytorch.runners import aoti

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import formats_models as models  # noqa: E402

TOLERANCE = 1e-6
INFERENCE_MODE = 2

SOURCES = {
    "scripted": ("pt", models.write_scripted),
    "traced": ("pt", models.write_traced),
    "exported": ("pt2", models.write_exported),
    "onnx": ("onnx", models.write_onnx),
    "onnx by trace": ("onnx", models.write_onnx_by_trace),
    "our pt": ("pt", None),
    "our pt, traced": ("pt", ["--trace"]),
    "our pt2": ("pt2", None),
    "our onnx": ("onnx", None),
    "package": ("pt2", models.write_package),
    "our package": ("pt2", ["--aot"]),
}
BACKENDS = {"pt": "torchscript", "onnx": "onnx"}
INPUTS = ["--input", "6x4", "--input", "6:int64", "--input", "6x3:bool"]


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    """file(source): the file of a row above, made once."""
    folder, made = tmp_path_factory.mktemp("formats"), {}

    def file(source):
        extension, how = SOURCES[source]
        if source not in made:
            made[source] = str(folder / f"{source.replace(' ', '_').replace(',', '')}.{extension}")
            if callable(how):
                how(made[source])
            else:
                name = f"{models.__file__}:mixed"
                options = ["--to", extension, "--dynamic-batch", "--output", made[source], *(how or [])]
                assert __main__.main(["export", name, *INPUTS, *options]) == 0
        return made[source]

    return file


def load(path, **options):
    return _embed.load(1, path, options, {})


def call(runner, *args, flags=0, **kwargs):
    """Results by name and values, for tensors in and out."""
    if runner.framework == "numpy":
        args, kwargs = [value.numpy() for value in args], {name: value.numpy() for name, value in kwargs.items()}
    names, values = _embed.unpack(_embed.bind(runner, FORWARD, flags)[0](*args, **kwargs))
    return names, [torch.as_tensor(value) for value in values]


def close(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other.detach(), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("rows", [6, 11])
@pytest.mark.parametrize("source", SOURCES)
def test_results_are_those_of_eager(file, source, rows):
    runner = load(file(source))
    expected_backend = "aoti" if "package" in source else BACKENDS.get(SOURCES[source][0], "exported")
    assert runner.backend == expected_backend
    inputs = models.examples(rows)
    close(call(runner, *inputs)[1], models.mixed()(*inputs))


@pytest.mark.parametrize("source", [source for source in SOURCES if "package" not in source])
def test_inputs_may_be_named_in_any_order(file, source):
    x, index, mask = models.examples()
    close(call(load(file(source)), mask=mask, index=index, x=x)[1], models.mixed()(x, index, mask))


@pytest.mark.parametrize("source", ["scripted", "exported", "package", "onnx"])
def test_strided_inputs_are_read_right(file, source):
    x, index, mask = models.examples()
    inputs = x.t().contiguous().t(), index.repeat_interleave(2)[::2], mask.t().contiguous().t()
    assert not any(value.is_contiguous() for value in inputs)
    runner = load(file(source))
    for _ in range(3):
        close(call(runner, *inputs)[1], models.mixed()(x, index, mask))


@pytest.mark.parametrize("source", ["scripted", "exported", "package"])
def test_flag_for_inference_mode_is_honoured(file, source):
    runner = load(file(source))
    forward = _embed.bind(runner, FORWARD, INFERENCE_MODE)[0]
    results = forward(*models.examples())
    assert all(result.is_inference() for result in results)
    close(results, models.mixed()(*models.examples()))


@pytest.mark.parametrize("source", ["exported", "package"])
def test_no_gradients_are_recorded(file, source):
    assert not any(value.requires_grad for value in call(load(file(source)), *models.examples())[1])


# ---- dictionaries, where the format has them


def test_exported_program_takes_and_gives_dictionaries(tmp_path):
    a, b = torch.rand(3, 2), torch.rand(3, 2)
    torch.export.save(torch.export.export(models.Named(), ({"a": a, "b": b},)), tmp_path / "named.pt2")
    runner = load(str(tmp_path / "named.pt2"))
    for _ in range(2):
        names, values = call(runner, b=b, a=a)
        assert names == ("sum", "difference")
        close(values, [a + b, a - b])


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
    _embed.first_call(runner, FORWARD, (), {"b": b, "a": a})
    names, values = call(runner, b=b, a=a)
    assert names == ("sum", "difference")
    close(values, [a + b, a - b])
    with fails("SIGNATURE", "takes a dictionary", "names"):
        call(runner, a, b)


def test_onnx_results_have_the_names_of_the_model(file):
    names, values = call(load(file("onnx by trace")), *models.examples())
    assert names == ("picked", "masked")


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
def test_options_that_make_no_sense_are_refused(file, source, fails):
    with fails("ARGUMENT", "takes no config", "lr"):
        _embed.load(1, file(source), {}, {"lr": 0.1})
    if source != "exported":
        with fails("ARGUMENT", "torch.compile cannot work on"):
            load(file(source), compile=True)
    runner = load(file(source))
    assert not _embed.has(runner, "ftn_pytorch_train")
    with fails("HOOK", "no function ftn_pytorch_train", FORWARD):
        _embed.bind(runner, "ftn_pytorch_train", 0)
    for action in (_embed.save, _embed.restore):
        with fails("HOOK", "which"):
            action(runner, "anywhere")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
@pytest.mark.parametrize("source", ["exported", "package", "onnx"])
def test_device_that_is_not_there_is_told(file, source, fails):
    with fails("DEVICE", "cuda"):
        load(file(source), device="cuda")


@pytest.mark.parametrize("source", ["exported", "package", "onnx"])
def test_reload_reads_the_file_again(file, source, tmp_path, fails):
    path = str(tmp_path / os.path.basename(file(source)))
    shutil.copy(file(source), path)
    runner = load(path)
    _embed.reload(runner)
    close(call(runner, *models.examples())[1], models.mixed()(*models.examples()))
    shutil.copy(file("scripted"), path)
    with fails("FORMAT", "of the kind 'torchscript' now"):
        _embed.reload(runner)
    close(call(runner, *models.examples())[1], models.mixed()(*models.examples()))


# ---- inputs that do not fit


@pytest.mark.parametrize("source", ["exported", "package", "onnx"])
def test_inputs_that_do_not_fit_are_told(file, source, fails):
    x, index, mask = models.examples()
    runner = load(file(source))
    for known in (False, True):
        with fails("SIGNATURE", "called with 2 inputs", "it has 3 inputs"):
            call(runner, x, index)
        with fails("SIGNATURE", "it has 3 inputs"):
            call(runner, x, index, mask, mask)
        with fails("SIGNATURE", "no input 'y'"):
            call(runner, x, index, y=mask)
        with fails("DTYPE", "forward of"):
            call(runner, x.double(), index, mask)
        with fails("DTYPE", "forward of"):
            call(runner, x, index.int(), mask)
        with fails("SHAPE", "forward of", "4"):
            call(runner, x[:, :3], index, mask)
        with fails("SHAPE", "forward of"):
            call(runner, torch.cat([x, x]), index, mask)
        if not known:
            call(runner, x, index, mask)


def test_input_given_twice_is_told(file, fails):
    x, index, mask = models.examples()
    with fails("SIGNATURE", "'x' twice"):
        call(load(file("exported")), x, index, x=x)


# ---- files that do not fit this torch or this machine


def rewritten(source, target, change):
    """A copy of an archive in which change(name, content) makes new content."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, change(entry.filename, old.read(entry)))
    return str(target)


def replaced(ending, old, new):
    def change(name, content):
        if not name.endswith(ending):
            return content
        assert old in content
        return content.replace(old, new)

    return change


@pytest.mark.parametrize("source", ["exported", "package"])
def test_unknown_version_of_the_archive_is_told(file, source, tmp_path, fails):
    path = rewritten(file(source), tmp_path / "net.pt2", replaced("archive_version", b"0", b"99"))
    if source == "exported":
        with fails("FORMAT", "version 99", "written by torch 2", "Export it again"):
            load(path)
    else:
        with fails("FORMAT", "archive version 99", "export the model again"):
            load(path)


def test_program_of_another_schema_is_told(file, tmp_path, fails):
    program = zipfile.ZipFile(file("exported"))
    name = next(name for name in program.namelist() if name.endswith("models/model.json"))
    major = program.read(name).partition(b'"major": ')[2][:1]
    change = replaced("model.json", b'"major": ' + major, b'"major": 77')
    with fails("FORMAT", "77", torch.__version__):
        load(rewritten(file("exported"), tmp_path / "net.pt2", change))


def test_package_of_another_torch_is_refused(file, tmp_path, fails):
    change = replaced("wrapper_metadata.json", torch.__version__.encode(), b"1.99.0")
    with fails("FORMAT", "compiled by torch 1.99.0", "export the model again"):
        load(rewritten(file("our package"), tmp_path / "net.pt2", change))


@pytest.mark.parametrize(
    ("key", "value", "piece"),
    [("AOTI_MACHINE", b"riscv64", "for riscv64 processors"), ("AOTI_DEVICE_KEY", b"cuda", "cuda")],
)
def test_package_of_another_machine_is_refused(file, tmp_path, fails, key, value, piece):
    def change(name, content):
        if not name.endswith("wrapper_metadata.json"):
            return content
        start = content.index(key.encode()) + len(key) + 4
        return content[:start] + value + content[content.index(b'"', start) :]

    if key == "AOTI_DEVICE_KEY" and torch.cuda.is_available():
        pytest.skip("a CUDA device is there")
    with fails("DEVICE", piece):
        load(rewritten(file("package"), tmp_path / "net.pt2", change))


def test_package_for_instructions_that_this_processor_lacks_is_refused(file, monkeypatch, fails):
    monkeypatch.setattr(aoti, "_metadata", lambda archive, name: {"AOTI_CPU_ISA": "AVX512 AMX_TILE"})
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_f": True, "amx_tile": False}, raising=False)
    with fails("DEVICE", "AMX_TILE", "Export the model again"):
        load(file("package"))


def test_package_that_crashes_its_loader_is_refused(file, monkeypatch, fails):
    monkeypatch.setattr(aoti, "_TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(aoti, "_tried", set())
    with fails("FORMAT", "crashes (signal 11)", "export the model again"):
        load(file("package"))
    monkeypatch.setenv(aoti.TRIAL_VARIABLE, "0")
    close(call(load(file("package")), *models.examples())[1], models.mixed()(*models.examples()))


def test_package_whose_trial_fails_or_hangs_is_refused(file, monkeypatch, fails):
    monkeypatch.setattr(aoti, "_tried", set())
    monkeypatch.setattr(aoti, "_TRIAL", "raise RuntimeError('undefined symbol')")
    with fails("FORMAT", "undefined symbol"):
        load(file("package"))
    monkeypatch.setattr(aoti, "_TRIAL", "import time; time.sleep(60)")
    monkeypatch.setattr(aoti, "_TRIAL_SECONDS", 0.1)
    with fails("FORMAT", "trial", "timed out"):
        load(file("package"))


def test_trial_is_left_out_where_the_package_names_its_torch(file, monkeypatch):
    monkeypatch.setattr(aoti, "_tried", set())
    monkeypatch.setattr(aoti, "_TRIAL", "raise SystemExit(1)")
    load(file("our package"))


def test_damaged_shared_library_in_a_package_is_told(file, tmp_path, fails):
    change = lambda name, content: content[:2000] if name.endswith(".so") else content  # noqa: E731
    with fails("FORMAT", "cannot be loaded"):
        load(rewritten(file("package"), tmp_path / "net.pt2", change))


@pytest.mark.parametrize("source", ["scripted", "exported", "package", "onnx"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_file_is_told(file, source, share, tmp_path, fails):
    path = tmp_path / os.path.basename(file(source))
    with open(file(source), "rb") as whole:
        content = whole.read()
    path.write_bytes(content[: int(len(content) * share)])
    with fails("FORMAT", str(path)):
        load(str(path))


@pytest.mark.parametrize("source", ["exported", "scripted", "onnx"])
def test_file_with_damaged_bytes_never_crashes(file, source, tmp_path):
    """Bytes in the middle are turned over; what is still readable may load, all else has a status."""
    path = tmp_path / os.path.basename(file(source))
    with open(file(source), "rb") as whole:
        content = whole.read()
    code = (
        "import sys\nfrom ftn_pytorch import _embed, errors\n"
        "for path in sys.argv[1:]:\n"
        "    try: _embed.load(1, path, {}, {}); print('OK')\n"
        "    except BaseException as failure: print(_embed.describe_error(failure, '')[0])\n"
    )
    paths = []
    for number, place in enumerate(range(200, len(content), max(1, len(content) // 12))):
        changed = bytearray(content)
        for offset in range(place, min(place + 4, len(content))):
            changed[offset] ^= 0xFF
        paths.append(str(tmp_path / f"{number}_{path.name}"))
        with open(paths[-1], "wb") as target:
            target.write(changed)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__main__.__file__)))
    done = subprocess.run(
        [sys.executable, "-c", code, *paths],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"OK", "FORMAT"}, done.stdout
    assert len(done.stdout.split()) == len(paths)


# ---- code in files


def test_exported_program_with_code_in_a_pickle_is_refused(file, tmp_path, fails):
    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "run"),)

    torch.save((Attack(),), tmp_path / "attack.pt")
    attack = (tmp_path / "attack.pt").read_bytes()
    change = lambda name, content: attack if "sample_inputs/" in name else content  # noqa: E731
    path = rewritten(file("exported"), tmp_path / "net.pt2", change)
    with fails("FORMAT", "sample_inputs/model.pt", "weights_only=.false.", "mkdir"):
        load(path)
    assert not (tmp_path / "run").exists()


def test_pickled_module_runs_where_that_is_asked_for(tmp_path, fails, write):
    write("nets.py", "import torch\nclass Net(torch.nn.Linear): pass\n")
    path = str(tmp_path / "net.pt")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import torch, nets; torch.manual_seed(1)\n"
    code += f"torch.save(nets.Net(4, 2), {path!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    with fails("FORMAT", "nets.Net", "weights_only=.false."):
        load(path)
    runner = load(path, weights_only=False)
    assert (runner.backend, runner.framework) == ("pickle", "torch")
    torch.manual_seed(1)
    expected = torch.nn.Linear(4, 2)(models.examples()[0])
    close(call(runner, models.examples()[0])[1], [expected])
    assert _embed.bind(runner, FORWARD, INFERENCE_MODE)[0](models.examples()[0]).is_inference()
    close(call(load(path, weights_only=False, compile=True, compile_backend="eager"), models.examples()[0])[1], [expected])


def test_what_is_pickled_may_be_no_module(tmp_path, fails):
    torch.save({"weight": torch.ones(2)}, tmp_path / "weights.pt")
    with fails("FORMAT", "holds parameters"):
        load(str(tmp_path / "weights.pt"))
    with fails("FORMAT", "a dict with 'weight'", "no torch.nn.Module"):
        load(str(tmp_path / "weights.pt"), weights_only=False)


def test_pickled_class_that_cannot_be_imported_is_told(tmp_path, fails):
    code = f"import torch\nclass Net(torch.nn.Module): pass\ntorch.save(Net(), {str(tmp_path / 'net.pt')!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    with fails("IMPORT", "'Net'", "__main__"):
        load(str(tmp_path / "net.pt"), weights_only=False)
