# SPDX-License-Identifier: MIT
"""Saved models that are refused: inputs that do not fit, another torch, another machine, damage, code in pickles."""

import os
import pickle
import zipfile

import pytest
import warm

import program
from ftn_pytorch.runners.models import aoti
from ftn_pytorch.script.conventions import FORWARD
from ftn_pytorch.system import private_names

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import formats_models as models  # noqa: E402
from formats_models import call, close, load  # noqa: E402

INFERENCE_MODE = 2
# Code of packages wrote reasons to standard error alone.
KEEPS_REASONS = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13)


# ---- inputs that do not fit


@pytest.mark.parametrize("source", ["exported", "package", "onnx"])
def test_inputs_that_do_not_fit_are_told(model_file, source, fails):
    x, index, mask = models.examples()
    runner = load(model_file(source))
    dtype, shape = ("PYTHON", "PYTHON") if source == "package" and KEEPS_REASONS else ("DTYPE", "SHAPE")
    told = ["array of float64, the model expects float32", 'load(..., dtype="float32")']
    if source == "package":
        told = ["unmatched dtype", "0 is float64 (6, 4); 1 (index) is int64", told[1]] if dtype == "DTYPE" else []
    for known in (False, True):
        with fails("SIGNATURE", "called with 2 inputs", "it has 3 inputs"):
            call(runner, x, index)
        with fails("SIGNATURE", "it has 3 inputs"):
            call(runner, x, index, mask, mask)
        with fails("SIGNATURE", "no input 'y'"):
            call(runner, x, index, y=mask)
        with fails(dtype, "forward of", *told):
            call(runner, x.double(), index, mask)
        with fails(dtype, "forward of"):
            call(runner, x, index.int(), mask)
        with fails(shape, "forward of", "4"):
            call(runner, x[:, :3], index, mask)
        with fails(shape, "forward of"):
            call(runner, torch.cat([x, x]), index, mask)
        if not known:
            call(runner, x, index, mask)


def test_number_that_was_compiled_into_a_package_is_refused(model_file, fails):
    x, index, _ = models.examples()
    with fails("SIGNATURE", "input 3 of forward", "is a number, which was compiled into the package"):
        call(load(model_file("our package")), x, index, 2.5)


def test_input_given_twice_is_told(model_file, fails):
    x, index, mask = models.examples()
    with fails("SIGNATURE", "'x' twice"):
        call(load(model_file("exported")), x, index, x=x)


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
def test_unknown_version_of_the_archive_is_told(model_file, source, tmp_path, fails):
    path = rewritten(model_file(source), tmp_path / "net.pt2", replaced("archive_version", b"0", b"99"))
    if source == "exported":
        with fails("FORMAT", "version 99", "written by torch 2", "Export it again"):
            load(path)
    else:
        with fails("FORMAT", "archive version 99", "export the model again"):
            load(path)


def test_torchscript_of_a_later_torch_is_told(model_file, tmp_path, fails):
    with fails("FORMAT", "torch.jit.load", "with version", "999"):
        load(rewritten(model_file("scripted"), tmp_path / "net.pt", replaced("scripted/version", b"\n", b"999\n")))


def test_program_of_another_schema_is_told(model_file, tmp_path, fails):
    exported = zipfile.ZipFile(model_file("exported"))
    name = next(name for name in exported.namelist() if name.endswith("models/model.json"))
    major = exported.read(name).partition(b'"major": ')[2][:1]
    change = replaced("model.json", b'"major": ' + major, b'"major": 77')
    with fails("FORMAT", "77", torch.__version__):
        load(rewritten(model_file("exported"), tmp_path / "net.pt2", change))


def test_package_of_another_torch_is_refused(model_file, tmp_path, fails):
    change = replaced("wrapper_metadata.json", torch.__version__.encode(), b"1.99.0")
    with fails("FORMAT", "compiled by torch 1.99.0", "export the model again"):
        load(rewritten(model_file("our package"), tmp_path / "net.pt2", change))


@pytest.mark.parametrize(
    ("key", "value", "piece"),
    [("AOTI_MACHINE", b"riscv64", "for riscv64 processors"), ("AOTI_DEVICE_KEY", b"cuda", "cuda")],
)
def test_package_of_another_machine_is_refused(model_file, tmp_path, fails, key, value, piece):
    def change(name, content):
        if not name.endswith("wrapper_metadata.json"):
            return content
        start = content.index(key.encode()) + len(key) + 4
        return content[:start] + value + content[content.index(b'"', start) :]

    if key == "AOTI_DEVICE_KEY" and torch.cuda.is_available():
        pytest.skip("a CUDA device is there")
    with fails("DEVICE", piece):
        load(rewritten(model_file("package"), tmp_path / "net.pt2", change))


def test_package_for_instructions_that_this_processor_lacks_is_refused(model_file, monkeypatch, fails):
    monkeypatch.setattr(aoti, "_metadata", lambda archive, name: {"AOTI_CPU_ISA": "AVX512 AMX_TILE"})
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_f": True, "amx_tile": False}, raising=False)
    with fails("DEVICE", "AMX_TILE", "Export the model again"):
        load(model_file("package"))


def test_package_may_call_its_only_model_as_it_likes(model_file, tmp_path, fails):
    with zipfile.ZipFile(model_file("our package")) as package:
        entries = {entry: package.read(entry) for entry in package.namelist()}

    def with_models(*names):
        with zipfile.ZipFile(tmp_path / "net.pt2", "w") as target:
            for entry, content in entries.items():
                for renamed in {entry.replace("/model/", f"/{name}/") for name in names}:
                    target.writestr(renamed, content)
        return str(tmp_path / "net.pt2")

    inputs = models.examples()
    close(call(load(with_models("net")), *inputs)[1], models.mixed()(*inputs))
    with fails("FORMAT", "several models (net, other)", "package one"):
        load(with_models("other", "net"))


def test_package_that_crashes_its_loader_is_refused(model_file, monkeypatch, fails):
    monkeypatch.setattr(private_names, "AOTI_TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(aoti, "_tried", set())
    with fails("FORMAT", "crashes (signal 11)", "export the model again"):
        load(model_file("package"))
    monkeypatch.setenv(aoti.TRIAL_VARIABLE, "0")
    close(call(load(model_file("package")), *models.examples())[1], models.mixed()(*models.examples()))


def test_package_whose_trial_fails_or_hangs_is_refused(model_file, monkeypatch, fails):
    monkeypatch.setattr(aoti, "_tried", set())
    monkeypatch.setattr(private_names, "AOTI_TRIAL", "raise RuntimeError('undefined symbol')")
    with fails("FORMAT", "undefined symbol"):
        load(model_file("package"))
    monkeypatch.setattr(private_names, "AOTI_TRIAL", "import time; time.sleep(60)")
    monkeypatch.setattr(aoti, "_TRIAL_SECONDS", 0.1)
    with fails("FORMAT", "trial", "timed out"):
        load(model_file("package"))


def test_trial_is_left_out_where_the_package_names_its_torch(model_file, monkeypatch):
    monkeypatch.setattr(aoti, "_tried", set())
    monkeypatch.setattr(private_names, "AOTI_TRIAL", "raise SystemExit(1)")
    load(model_file("our package"))


def test_damaged_shared_library_in_a_package_is_told(model_file, tmp_path, fails):
    change = lambda name, content: content[:2000] if name.endswith(".so") else content  # noqa: E731
    with fails("FORMAT", "cannot be loaded"):
        load(rewritten(model_file("package"), tmp_path / "net.pt2", change))


@pytest.mark.parametrize("source", ["scripted", "exported", "package", "onnx"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_file_is_told(model_file, source, share, tmp_path, fails):
    path = tmp_path / os.path.basename(model_file(source))
    with open(model_file(source), "rb") as whole:
        content = whole.read()
    path.write_bytes(content[: int(len(content) * share)])
    with fails("FORMAT", str(path)):
        load(str(path))


@pytest.mark.parametrize("source", ["exported", "scripted", "onnx"])
def test_file_with_damaged_bytes_never_crashes(model_file, source, tmp_path):
    """Bytes in the middle are turned over; what is still readable may load, all else has a status."""
    path = tmp_path / os.path.basename(model_file(source))
    with open(model_file(source), "rb") as whole:
        content = whole.read()
    code = (
        "import program, sys\n"
        "for path in sys.argv[1:]:\n"
        "    try: program.load_model(path); print('OK')\n"
        "    except BaseException as failure: print(program.describe_error(failure, '')[0])\n"
    )
    paths = []
    for number, place in enumerate(range(200, len(content), max(1, len(content) // 12))):
        changed = bytearray(content)
        for offset in range(place, min(place + 4, len(content))):
            changed[offset] ^= 0xFF
        paths.append(str(tmp_path / f"{number}_{path.name}"))
        with open(paths[-1], "wb") as target:
            target.write(changed)
    done = warm.run(["-c", code, *paths], env={**os.environ, "PYTHONPATH": program.PYTHONPATH})
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"OK", "FORMAT"}, done.stdout
    assert len(done.stdout.split()) == len(paths)


# ---- code in files


class Attack:
    """Leaves a folder behind when it is read."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_torchscript_with_code_in_its_pickle_is_refused(model_file, tmp_path, fails):
    attack = pickle.dumps(Attack(tmp_path / "run"), 2)
    change = lambda name, content: attack if name.endswith("/data.pkl") else content  # noqa: E731
    with fails("FORMAT", "torch.jit.load"):
        load(rewritten(model_file("scripted"), tmp_path / "net.pt", change))
    assert not (tmp_path / "run").exists()


def test_exported_program_with_code_in_a_pickle_is_refused(model_file, tmp_path, fails):
    torch.save((Attack(tmp_path / "run"),), tmp_path / "attack.pt")
    attack = (tmp_path / "attack.pt").read_bytes()
    change = lambda name, content: attack if "sample_inputs/" in name else content  # noqa: E731
    path = rewritten(model_file("exported"), tmp_path / "net.pt2", change)
    with fails("FORMAT", "sample_inputs/model.pt", "weights_only=.false.", "mkdir"):
        load(path)
    assert not (tmp_path / "run").exists()


def test_pickled_module_runs_where_that_is_asked_for(tmp_path, fails, write):
    write("nets.py", "import torch\nclass Net(torch.nn.Linear): pass\n")
    path = str(tmp_path / "net.pt")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import torch, nets; torch.manual_seed(1)\n"
    code += f"torch.save(nets.Net(4, 2), {path!r})"
    warm.run(["-c", code]).check_returncode()
    with fails("FORMAT", "nets.Net", "weights_only=.false."):
        load(path)
    runner = load(path, weights_only=False)
    assert (runner.backend, runner.framework) == ("pickle", "torch")
    torch.manual_seed(1)
    expected = torch.nn.Linear(4, 2)(models.examples()[0])
    close(call(runner, models.examples()[0])[1], [expected])
    assert program.function(runner, FORWARD, INFERENCE_MODE)(models.examples()[0]).is_inference()
    compiled = load(path, weights_only=False, compile="default", compile_backend="eager")
    close(call(compiled, models.examples()[0])[1], [expected])


def test_what_is_pickled_may_be_no_module(tmp_path, fails):
    torch.save({"weight": torch.ones(2)}, tmp_path / "weights.pt")
    with fails("FORMAT", "holds parameters"):
        load(str(tmp_path / "weights.pt"))
    with fails("FORMAT", "a dict with 'weight'", "no torch.nn.Module"):
        load(str(tmp_path / "weights.pt"), weights_only=False)


def test_pickled_class_that_cannot_be_imported_is_told(tmp_path, fails):
    code = f"import torch\nclass Net(torch.nn.Module): pass\ntorch.save(Net(), {str(tmp_path / 'net.pt')!r})"
    warm.run(["-c", code]).check_returncode()
    with fails("IMPORT", "'Net'", "__main__"):
        load(str(tmp_path / "net.pt"), weights_only=False)
