# SPDX-License-Identifier: MIT
"""Which backend runs a saved model, and what is said where it is not the one that was hoped for."""

import os
import shutil
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("models") / "net.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 1)).save(path)
    return str(path)


@pytest.fixture
def recording(build_dir, cache, tmp_path) -> str:
    script, file = tmp_path / "double.py", str(tmp_path / "double.ftr")
    script.write_text("import torch\ndef ftn_pytorch_forward(x):\n    return 2 * x\n")
    command = [cache["Python_EXECUTABLE"], "-m", "ftn_pytorch", "export", str(script), "--to", "recording"]
    package = {"PYTHONPATH": str(ROOT / "python"), "ftn_pytorch_ROOT": str(build_dir)}
    subprocess.run(
        [*command, "--input", "4x2", "--output", file], env={**os.environ, **package}, check=True, timeout=600
    )
    return file


@pytest.fixture
def load(build_dir, cache, model):
    """load(backend): what the program prints. Its environment is that of the test, with the Python of the build."""
    if not next(build_dir.glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("this build has no direct path")

    def load(backend, *arguments, file=model, **environment) -> str:
        inherited = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
        done = subprocess.run(
            [build_dir / "tests" / "c" / "choose_backend", file, backend, *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={**inherited, "FTN_PYTORCH_PYTHON": cache["Python_EXECUTABLE"], **environment},
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return load


@pytest.fixture
def python_with(tmp_path, cache):
    """python_with(version[, system]): of an environment with another torch, as far as files tell, from a wheel for that
    kind of system."""

    def python_with(torch_version, system="manylinux_2_28_x86_64") -> str:
        base = Path(cache["Python_EXECUTABLE"]).resolve()
        return environment_with(tmp_path / "environment", base, torch_version, system)

    return python_with


@pytest.fixture
def other_python(python_with) -> str:
    return python_with("9.9.9")


def environment_with(tmp_path, base, torch_version, system) -> str:
    tmp_path.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(base)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    version = sysconfig.get_python_version()
    package = tmp_path / "lib" / f"python{version}" / "site-packages" / "torch"
    package.mkdir(parents=True)
    if not torch_version:
        return str(tmp_path / "bin" / "python")
    (package / "version.py").write_text(f"__version__ = '{torch_version}'\n")
    (package / "__init__.py").write_text("raise ImportError('this is no torch')\n")
    described = package.with_name(f"torch-{torch_version}.dist-info")
    described.mkdir()
    (described / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: cp311-cp311-{system}\n")
    return str(tmp_path / "bin" / "python")


@pytest.mark.parametrize("backend", ["auto", "direct"])
def test_same_torch_takes_the_direct_path(load, backend):
    assert load(backend) == "backend: direct\npython: 0\n"


@pytest.mark.parametrize("backend", ["auto", "direct"])
def test_python_that_cannot_be_started_is_no_obstacle(load, backend):
    assert load(backend, FTN_PYTORCH_PYTHON="/nonexistent") == "backend: direct\npython: 0\n"


def test_python_can_be_asked_for(load):
    assert load("python") == "backend: torchscript\npython: 1\n"


def test_another_torch_means_python_and_one_message(load, other_python):
    printed = load("auto", FTN_PYTORCH_PYTHON=other_python)
    assert printed.count("warning:") == 1
    assert "9.9.9" in printed and torch.__version__ in printed and "through Python instead" in printed
    assert "FTN_PYTORCH_ERR_IMPORT" in printed, "the Python side was asked"


def test_direct_beside_another_torch_warns(load, other_python):
    printed = load("direct", FTN_PYTORCH_PYTHON=other_python)
    assert "backend: direct" in printed
    assert "warning:" in printed and "scripts that import torch cannot run" in printed


def test_libtorch_that_is_loaded_already_wins(load, tmp_path):
    folder = tmp_path / "torch" / "lib"
    folder.mkdir(parents=True)
    (tmp_path / "torch" / "version.py").write_text("__version__ = '9.9.9'\n")
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    library = folder / "libtorch_cpu.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    printed = load("direct", library)
    assert printed.startswith("FTN_PYTORCH_ERR_VERSION") and "has loaded torch 9.9.9" in printed
    assert str(tmp_path) in printed


@pytest.mark.parametrize("version", ["0.0.1", ""])
def test_plugin_of_another_version_is_not_opened(build_dir, load, tmp_path, version):
    described = next(build_dir.glob("lib*/libftn_pytorch_direct.torch")).read_text().splitlines()
    (tmp_path / "libftn_pytorch_direct.torch").write_text("\n".join([*described[:2], version]))
    printed = load("direct", FTN_PYTORCH_EXTENSIONS=str(tmp_path))
    assert printed.startswith("FTN_PYTORCH_ERR_VERSION") and str(tmp_path) in printed
    assert f"was built for another version of this library than {described[2]}" in printed


@pytest.fixture
def shipped(build_dir, tmp_path):
    """A folder with plug-ins as a wheel brings them: that of this build for its minor version, and others by name."""
    library = next(build_dir.glob("lib*/libftn_pytorch_direct.so"))
    own = ".".join(torch.__version__.split(".")[:2])
    version = library.with_suffix(".torch").read_text().splitlines()[2]
    for folder, built_for, of in [
        ("2.9", "2.9.1", version),
        ("2.11", "2.11.0", version),
        (own, f"{own}.77", version),
        ("9.7", "9.7.0", "0.0.1"),
        ("9.8", "2.11.0", version),
    ]:
        place = tmp_path / f"torch-{folder}"
        place.mkdir()
        for each in library, library.with_name("libftn_pytorch_torchscript.so"):
            (place / each.name).symlink_to(each if folder == own else tmp_path / "nothing")
        (place / "libftn_pytorch_direct.torch").write_text(f"\n{built_for}\n{of}\n")
    return str(tmp_path)


def test_plugin_of_the_minor_version_of_torch_is_taken(load, shipped):
    assert load("direct", FTN_PYTORCH_EXTENSIONS=shipped) == "backend: direct\npython: 0\n"


HERE = "the direct path is here for releases of torch 2.9 to 9.8, and not for torch "


@pytest.mark.parametrize(
    "version, told",
    [
        ("9.9.9", HERE + "9.9.9"),
        ("2.10.0+cpu", HERE + "2.10.0+cpu"),
        ("2.11.0a0+git70d99e9", HERE + "2.11.0a0+git70d99e9"),
        ("", "the direct path finds no torch: python -m pip install torch"),
        ("9.8.0", "torch-9.8 has the direct path for torch 2.11.0, and not for torch 9.8.0"),
        ("9.7.3+cu130", "torch-9.7 was built for another version of this library than "),
        ("2.11.2+cu130", "torch/lib/libtorch.so: cannot open"),  # it fits, and its torch is opened first
    ],
)
def test_plugin_for_another_torch_is_not_opened(load, shipped, python_with, version, told):
    printed = load("direct", FTN_PYTORCH_EXTENSIONS=shipped, FTN_PYTORCH_PYTHON=python_with(version))
    assert printed.startswith("FTN_PYTORCH_ERR_") and told in printed


def test_torch_of_conda_has_the_number_of_a_release(load, shipped, python_with):
    """And was compiled with other libraries than the one from PyTorch."""
    python = python_with("2.11.2", "linux_x86_64")
    printed = load("direct", FTN_PYTORCH_EXTENSIONS=shipped, FTN_PYTORCH_PYTHON=python)
    assert printed.startswith("FTN_PYTORCH_ERR_IMPORT") and f"{HERE}2.11.2 in " in printed
    assert "which is not from a wheel of PyTorch: " in printed


def test_folder_without_a_plugin(load, tmp_path):
    printed = load("direct", FTN_PYTORCH_EXTENSIONS=str(tmp_path))
    assert printed.startswith("FTN_PYTORCH_ERR_IMPORT") and "where the direct path is not" in printed


def test_plugin_that_belongs_to_no_library(build_dir, load, tmp_path):
    shutil.copy(next(build_dir.glob("lib*/libftn_pytorch_direct.torch")), tmp_path)
    (tmp_path / "empty.c").write_text("int nothing;\n")
    library = tmp_path / "libftn_pytorch_direct.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "empty.c"], check=True)
    printed = load("direct", FTN_PYTORCH_EXTENSIONS=str(tmp_path))
    assert printed.startswith("FTN_PYTORCH_ERR_VERSION")
    assert f"{library} belongs to another library than this one" in printed


@pytest.fixture
def without_torchscript(build_dir, tmp_path):
    """The environment of a program with the plug-in alone, as it is where torch has no torch.jit."""
    for name in ("libftn_pytorch_direct.so", "libftn_pytorch_direct.torch"):
        shutil.copy(next(build_dir.glob(f"lib*/{name}")), tmp_path)
    return {"FTN_PYTORCH_EXTENSIONS": str(tmp_path)}


def test_plugin_without_torchscript(load, tmp_path, without_torchscript):
    missing = f"TorchScript files need {tmp_path}/libftn_pytorch_torchscript.so, which is missing"
    printed = load("direct", **without_torchscript)
    assert printed.startswith("FTN_PYTORCH_ERR_IMPORT") and missing in printed
    printed = load("auto", **without_torchscript)
    assert printed.count("warning:") == 1
    assert missing in printed and "through Python instead" in printed and "backend: torchscript" in printed


def test_plugin_without_torchscript_runs_everything_else(load, recording, without_torchscript):
    assert load("direct", file=recording, **without_torchscript) == "backend: direct\npython: 0\n"


def test_torchscript_that_belongs_to_no_library(load, tmp_path, without_torchscript):
    library = tmp_path / "libftn_pytorch_torchscript.so"
    library.write_bytes(b"no library")
    printed = load("direct", **without_torchscript)
    assert printed.startswith("FTN_PYTORCH_ERR_IMPORT: TorchScript could not be loaded: ") and str(library) in printed
    (tmp_path / "empty.c").write_text("int nothing;\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "empty.c"], check=True)
    printed = load("direct", **without_torchscript)
    assert printed.startswith("FTN_PYTORCH_ERR_VERSION")
    assert f"{library} belongs to another library than this one" in printed


def test_library_without_the_plugin(build_dir, load, tmp_path, monkeypatch):
    """A copy of the library that lies alone."""
    library = next(build_dir.glob("lib*/libftn_pytorch.so"))
    shutil.copy(library.resolve(), tmp_path / Path(os.readlink(library)).name)
    printed = load("direct", LD_LIBRARY_PATH=str(tmp_path), LD_PRELOAD=str(next(tmp_path.iterdir())))
    assert "the direct path is not built: build this library with -DFTN_PYTORCH_DIRECT=ON" in printed


def test_library_without_the_half_with_python(build_dir, load, tmp_path):
    """The same copy: saved models would run, and scripts are refused."""
    library = next(build_dir.glob("lib*/libftn_pytorch.so"))
    shutil.copy(library.resolve(), tmp_path / Path(os.readlink(library)).name)
    alone = {"LD_LIBRARY_PATH": str(tmp_path), "LD_PRELOAD": str(next(tmp_path.iterdir()))}
    printed = load("python", **alone)
    assert printed.startswith("FTN_PYTORCH_ERR_INTERPRETER")
    version = sysconfig.get_python_version()
    assert f"the part of this library that runs Python {version} is not installed" in printed
    assert str(tmp_path) in printed


def test_libpython_that_cannot_be_loaded(load, tmp_path):
    """Only what runs in Python needs it."""
    version = sysconfig.get_python_version()
    python = tmp_path / "bin" / f"python{version}"
    python.parent.mkdir()
    shutil.copy(os.path.realpath(sys.executable), python)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / python.name).symlink_to(sysconfig.get_path("stdlib"))
    (tmp_path / "lib" / f"libpython{version}.so.1.0").write_bytes(b"no library")
    broken = {"FTN_PYTORCH_PYTHON": str(python)}
    assert load("direct", **broken) == "backend: direct\npython: 0\n"
    printed = load("python", **broken)
    assert printed.startswith("FTN_PYTORCH_ERR_INTERPRETER") and "could not be loaded: " in printed
    assert str(tmp_path) in printed


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x80\x02no pickle"])
def test_file_that_is_no_model(load, tmp_path, content):
    path = tmp_path / "file.pt"
    path.write_bytes(content)
    assert load("direct", file=str(path)).startswith("FTN_PYTORCH_ERR_FORMAT")
    assert load("auto", file=str(path)).startswith("FTN_PYTORCH_ERR_FORMAT")


def test_backend_that_does_not_exist(load):
    assert "auto, python, direct" in load("fast")
