# SPDX-License-Identifier: MIT
"""``export --to compiled``: what a package computes and what stays recorded in it, and what is refused."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from ftn_pytorch import load_recording
from ftn_pytorch.__main__ import main
from ftn_pytorch.checkpoint import file as checkpoint_file
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.saved import compiled

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("extension")

SCRIPT = """
import torch
torch.manual_seed(1)
net = torch.nn.Linear(3, 2)
total = torch.zeros(4, 3)
def ftn_pytorch_forward(x):
    with torch.no_grad():
        total.add_(x)
        return net(total + x)
def ftn_pytorch_train(x, target):
    return False, torch.nn.functional.mse_loss(net(torch.dropout(x, 0.5, True)), target).detach()
"""
SIZES = ["--input", "4x3", "--target", "4x2", "--batch", "4"]


def exported(script, output, *more):
    return main(["export", str(script), "--to", "compiled", *(more or SIZES), "--output", str(output)])


@pytest.fixture(scope="module")
def package(extension_for_fixtures, tmp_path_factory):
    """The file, and what the command has said."""
    folder = tmp_path_factory.mktemp("package")
    script = folder / "compiled_closure.py"
    script.write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
        assert exported(script, folder / "closure.pt2") == 0
    return folder / "closure.pt2"


def rewritten(package, output, change):
    """The package with other records, under a digest that is right."""
    with zipfile.ZipFile(package) as archive:
        records = {name: change(name, archive.read(name)) for name in archive.namelist()}

    def fill(stream):
        with zipfile.ZipFile(stream, "w") as archive:
            for name, content in records.items():
                archive.writestr(name, content)

    checkpoint_file.write(str(output), checkpoint_file.description(package), fill, checkpoint_file.RECORDING)
    return str(output)


def test_code_computes_and_what_draws_stays_recorded(package):
    functions = torch.load(package, weights_only=True)["recording"]["functions"]
    assert {name: ["code" in tape for tape in tapes] for name, tapes in functions.items()} == {
        "ftn_pytorch_forward": [True],
        "ftn_pytorch_train": [False],
    }
    recording = package.with_suffix(".ftr")
    shutil.copy(package, recording)
    code, operators = load_recording(str(package)), load_recording(str(recording))
    for call in range(3):
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(call))
        assert torch.allclose(code.forward(x), operators.forward(x))
        assert torch.allclose(code.arrays["total"], operators.arrays["total"])
        losses = []
        for each in (code, operators):
            torch.manual_seed(call)
            losses.append(each.train(x, torch.ones(4, 2))[1])
        assert torch.equal(*losses)


def test_an_argument_in_memory_that_the_call_changes(package):
    saved = load_recording(str(package))
    weight, bias = (saved.parameters()[f"net.{name}"] for name in ("weight", "bias"))
    saved.arrays["total"].fill_(0.5)
    found = saved.forward(saved.arrays["total"])  # both operands of the sum are what was written
    assert torch.allclose(found, torch.full((4, 3), 2.0) @ weight.t() + bias)


def test_code_of_another_torch_is_refused(package, tmp_path):
    def change(name, content):
        return content.replace(torch.__version__.encode(), b"1.0.0") if name.endswith(".json") else content

    other = rewritten(package, tmp_path / "other.pt2", change)
    with pytest.raises(FtnPytorchError, match="was compiled by torch 1.0.0, and this is .*compile it again") as raised:
        load_recording(other)
    assert raised.value.status == "FORMAT"


def test_code_that_is_missing_is_refused(package, tmp_path):
    damaged = rewritten(
        package, tmp_path / "damaged.pt2", lambda name, content: b"" if name.endswith(".so") else content
    )
    with pytest.raises(FtnPytorchError, match="cannot be loaded by torch"):
        load_recording(damaged)


def test_code_that_computes_something_else_is_refused(package, tmp_path):
    value = torch.load(package, weights_only=True)
    (tape,) = value["recording"]["functions"]["ftn_pytorch_forward"]
    tape["code"] = (*tape["code"][:3], [])
    with zipfile.ZipFile(package) as archive:
        names = [name for name in archive.namelist() if "/aotinductor/" in name]
        records = {name.partition("/")[2]: archive.read(name) for name in names}

    def fill(stream):
        compiled.write_with(stream, lambda raw: torch.save(value, raw), records)

    other = str(tmp_path / "other.pt2")
    checkpoint_file.write(other, checkpoint_file.description(package), fill, checkpoint_file.RECORDING)
    with pytest.raises(FtnPytorchError, match="its code has 1 results, and not 0"):
        load_recording(other).forward(torch.ones(4, 3))


def test_what_is_unpacked_is_removed_at_once(package, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", f"{tmp_path}/")
    saved = load_recording(str(package))
    assert list(tmp_path.iterdir()) == []
    saved.arrays["total"].zero_()
    assert torch.equal(saved.forward(torch.ones(4, 3)), load_recording(str(package)).forward(torch.ones(4, 3)))


def test_a_folder_for_temporary_files_that_is_missing(package, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(FtnPytorchError, match="unpacked into .*none to be loaded: No such file") as raised:
        load_recording(str(package))
    assert raised.value.status == "FILE"


@pytest.mark.parametrize(("options", "why"), [("noexec", "noexec"), ("size=64k", "there is no room")])
def test_a_folder_for_temporary_files_that_takes_no_code(package, tmp_path, options, why):
    """Mounted in a namespace of its own."""
    alone = ["unshare", "--map-root-user", "--mount"]
    mount = f"mount -t tmpfs -o {options} tmpfs {tmp_path}"
    if shutil.which("unshare") is None or subprocess.run([*alone, "sh", "-c", mount], check=False).returncode != 0:
        pytest.skip("folders cannot be mounted here")
    load = f"import ftn_pytorch; ftn_pytorch.load_recording({str(package)!r})"
    command = [*alone, "sh", "-c", f'{mount} && exec "$0" -c "$1"', sys.executable, load]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"unpacked into {tmp_path} to be loaded: " in done.stderr
    assert why in done.stderr and "set TMPDIR to another folder" in done.stderr


def test_without_a_compiler(tmp_path):
    """In a process of its own, as torch looks for the compiler once."""
    (tmp_path / "compiled_closure.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "ftn_pytorch", "export", "compiled_closure.py", "--to", "compiled", *SIZES]
    paths = os.pathsep.join(sys.path)
    environment = {**os.environ, "CXX": str(tmp_path / "none"), "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and not (tmp_path / "compiled_closure.pt2").exists()
    assert "FTN_PYTORCH_ERR_IMPORT: --to compiled needs a C++ compiler" in done.stderr
    assert f"'{tmp_path / 'none'}' cannot be started" in done.stderr and "export --to recording" in done.stderr


def test_what_cannot_be_compiled(tmp_path, capsys):
    script = tmp_path / "compiled_closure.py"
    script.write_text(SCRIPT.replace("net(total + x)", "torch.dropout(total + x, 0.5, True)"))
    assert exported(script, tmp_path / "closure.pt2") == 2
    told = capsys.readouterr().err
    assert "ftn_pytorch_forward stays recorded and is not compiled: the operator aten::bernoulli_ draws random" in told
    assert "no function can be compiled" in told and not (tmp_path / "closure.pt2").exists()


def test_a_folder_for_code_that_cannot_be_made(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "compiled_closure.py").write_text(SCRIPT)
    assert exported(tmp_path / "compiled_closure.py", tmp_path / "closure.pt2") == 2
    told = capsys.readouterr().err
    assert "FTN_PYTORCH_ERR_FILE: compiled code stays in" in told and "cannot be made: Not a directory" in told
    assert not (tmp_path / "closure.pt2").exists()


def test_the_name_of_the_file(tmp_path, capsys):
    (tmp_path / "compiled_closure.py").write_text(SCRIPT)
    assert exported(tmp_path / "compiled_closure.py", tmp_path / "closure.ftr") == 2
    assert "a file with code has a name that ends in .pt2" in capsys.readouterr().err
