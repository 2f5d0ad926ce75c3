# SPDX-License-Identifier: MIT
"""What is found, and the command line."""

import importlib
import os
import sys

import pytest

import ftn_pytorch
from ftn_pytorch import __main__, _embed, config, process


def lines_of(text):
    return dict(line.partition(": ")[::2] for line in text.splitlines())


def hide(monkeypatch, *names):
    """Make packages look as if they were not installed."""
    version, find = importlib.metadata.version, importlib.import_module

    def hidden_version(name):
        if name in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    def hidden_module(name):
        if name in names:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return find(name)

    monkeypatch.setattr(importlib.metadata, "version", hidden_version)
    monkeypatch.setattr(importlib, "import_module", hidden_module)


def test_good_installation_is_described():
    numpy = pytest.importorskip("numpy")
    good, text = _embed.diagnose({})
    lines = lines_of(text)
    assert good
    assert sys.executable in lines["python"]
    assert sys.prefix in lines["prefix"]
    assert ftn_pytorch.__version__ in lines["ftn_pytorch"]
    assert numpy.__version__ in lines["numpy"]
    assert str(len(os.sched_getaffinity(0))) in lines["cores"]


def test_torch_is_described_with_threads_and_openmp_runtime():
    torch = pytest.importorskip("torch")
    lines = lines_of(_embed.diagnose({})[1])
    assert torch.__version__ in lines["torch"]
    assert "usable GPU" in lines["torch finds"]
    assert lines["torch threads"].startswith(str(torch.get_num_threads()))
    assert "omp" in lines["openmp"]


def test_what_the_library_knows_is_reported():
    info = {"executable": "/opt/python", "reason": "VIRTUAL_ENV", "library": "/opt/libpython.so"}
    facts = {"floating_point": "default", "torch_access": "through the shim", "openmp_threads": 4}
    _embed.on_start({**info, "adopted": "0"})
    lines = lines_of(_embed.diagnose(facts)[1])
    assert "/opt/python" in lines["python"]
    assert lines["chosen by"] == "VIRTUAL_ENV"
    assert lines["libpython"] == "/opt/libpython.so"
    assert lines["floating point"] == "default"
    assert lines["access to tensors"] == "through the shim"
    assert lines["openmp team size"] == "4"


def test_adopted_interpreter_is_reported():
    lines = lines_of(_embed.diagnose({"reason": "x", "adopted": "1"})[1])
    assert "the program" in lines["chosen by"]


def test_environment_that_bends_python_is_reported(monkeypatch):
    monkeypatch.setenv("PYTHONHOME", "/elsewhere")
    assert lines_of(_embed.diagnose({})[1])["PYTHONHOME"] == "/elsewhere"


def test_missing_torch_is_said_and_no_failure(monkeypatch):
    hide(monkeypatch, "torch")
    good, text = _embed.diagnose({})
    assert good
    assert lines_of(text)["torch"].startswith("not installed")


def test_nothing_for_arrays_is_a_failure(monkeypatch):
    hide(monkeypatch, "torch", "numpy")
    good, text = _embed.diagnose({})
    assert not good
    assert "neither numpy nor torch" in lines_of(text)["arrays"]


@pytest.mark.parametrize("failure", [ImportError("undefined symbol"), OSError("undefined symbol")])
def test_installed_package_that_cannot_be_imported_is_a_failure(monkeypatch, failure):
    def broken(name):
        raise failure

    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    monkeypatch.setattr(importlib, "import_module", broken)
    good, text = _embed.diagnose({})
    assert not good
    assert "9.9" in lines_of(text)["torch"]
    assert "undefined symbol" in lines_of(text)["torch"]


def test_library_of_another_version_is_a_failure(monkeypatch):
    monkeypatch.setattr(process, "library_version", lambda: "9.9.9")
    good, text = _embed.diagnose({})
    assert not good
    assert "library 9.9.9" in lines_of(text)["ftn_pytorch"]


# ---- command line


def test_command_line_prints_the_version(capsys):
    with pytest.raises(SystemExit) as ended:
        __main__.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"{ftn_pytorch.__version__}\n"


def test_command_line_diagnoses_and_tells_by_its_exit_code(capsys, monkeypatch):
    assert __main__.main(["diagnose"]) == 0
    assert "python: " in capsys.readouterr().out
    hide(monkeypatch, "torch", "numpy")
    assert __main__.main(["diagnose"]) == 1


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["--cmakedir", "diagnose"]])
def test_command_line_that_is_not_understood_is_explained(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        __main__.main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m ftn_pytorch" in capsys.readouterr().err


def install(prefix, folder="lib/cmake/ftn_pytorch"):
    (prefix / folder).mkdir(parents=True)
    (prefix / folder / "ftn_pytorch-config.cmake").touch()
    return prefix / folder


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "python"))
    for name in ("ftn_pytorch_ROOT", "CMAKE_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("folder", ["lib", "lib64", "lib/x86_64-linux-gnu"])
def test_cmake_package_is_found_beside_the_installed_python_package(monkeypatch, tmp_path, nothing_installed, folder):
    package = tmp_path / "share/ftn_pytorch/python/ftn_pytorch"
    monkeypatch.setattr(config, "__file__", str(package / "config.py"))
    expected = install(tmp_path, f"{folder}/cmake/ftn_pytorch")
    assert config.cmakedir() == expected


@pytest.mark.parametrize("variable", ["ftn_pytorch_ROOT", "CMAKE_PREFIX_PATH"])
def test_cmake_package_is_found_through_the_environment(monkeypatch, tmp_path, nothing_installed, variable, capsys):
    monkeypatch.setenv(variable, f"{tmp_path / 'none'}{os.pathsep}{tmp_path}")
    expected = install(tmp_path)
    assert __main__.main(["--cmakedir"]) == 0
    assert capsys.readouterr().out == f"{expected}\n"


def test_cmake_package_is_found_in_the_prefix_of_python(tmp_path, nothing_installed):
    assert config.cmakedir() is None
    expected = install(tmp_path / "python")
    assert config.cmakedir() == expected


def test_missing_cmake_package_is_told_with_where_it_was_looked_for(capsys, tmp_path, nothing_installed):
    assert __main__.main(["--cmakedir"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "cmake --install" in captured.err
    assert str(tmp_path / "python") in captured.err
