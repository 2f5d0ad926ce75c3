# SPDX-License-Identifier: MIT
"""What ``build-direct`` says where it cannot compile, or fails to; tests/install/test_wheel_torch.py compiles."""

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest
from build_tree import build_folder

from ftn_pytorch import __version__
from ftn_pytorch.__main__ import main
from ftn_pytorch.system import installation


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources as a wheel brings them, of a project that cannot be configured; the folder of the library."""
    source, library = tmp_path / "source", tmp_path / "lib"
    source.mkdir()
    library.mkdir()
    (source / "CMakeLists.txt").write_text('message(FATAL_ERROR "torch has no headers")\n')
    monkeypatch.setattr(installation, "source", lambda: source)
    monkeypatch.setattr(installation, "library", lambda: str(library / "libftn_pytorch.so"))
    monkeypatch.delenv(installation.EXTENSIONS, raising=False)
    return library


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["build-direct", *options]) == 2
    return capsys.readouterr().err


def test_a_build_of_the_library_has_made_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "only a wheel (pip install ftn-pytorch) brings the sources" in refused(capsys)


def test_torch_is_needed(wheel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert f"{sys.executable} has no torch: {sys.executable} -m pip install torch" in refused(capsys)


def test_a_place_that_is_no_folder(wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    told = refused(capsys, "--into", str(tmp_path / "file"))
    assert "nothing can be written to" in told and "name a folder with --into" in told and "EXTENSIONS" in told


def test_a_compiler_that_is_not_there(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    assert "there is no C++ compiler no-such-compiler -m64: install g++ 10 or newer" in refused(capsys)


@pytest.mark.skipif(not shutil.which("ninja"), reason="it is built by ninja")
def test_the_end_of_what_cmake_says_is_shown(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys)
    assert "torch has no headers" in told and "failed:" in told
    assert not list(wheel.iterdir())


@pytest.mark.skipif(not shutil.which("ninja"), reason="it is built by ninja")
def test_what_was_made_is_told(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = build_folder() / "lib"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(made))  # what a build for a wheel finds by itself
    names = [f"libftn_pytorch_direct.{end}" for end in ("so", "torch")]
    files = [made / name for name in names]
    files += [*made.glob("_ftn_pytorch_recording*.so"), *made.glob("libftn_pytorch_torchscript.so")]
    if len(files) < 3 or not all(file.exists() for file in files):
        pytest.skip("this build has no direct path")
    copied = " ".join(f'"{file.resolve()}"' for file in files)
    (wheel.parent / "source" / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.18)\nproject(made NONE)\nfile(COPY {copied} DESTINATION lib)\n"
    )
    assert main(["build-direct", "--into", str(wheel)]) == 0
    assert sorted(each.name for each in wheel.iterdir()) == sorted(file.name for file in files)
    version = (made / names[1]).read_text().splitlines()[1]
    assert f"built for torch {version} in " in capsys.readouterr().out


def test_folders_of_extensions(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = str(tmp_path / "core" / "libftn_pytorch.so")
    assert installation.extension_folders(core) == [str(tmp_path / "core"), str(wheel)]
    assert installation.extension_folders("") == [str(wheel)]
    monkeypatch.setenv(installation.EXTENSIONS, "/elsewhere")
    assert installation.extension_folders(core) == ["/elsewhere"]


def test_the_package_may_lie_near_the_root(monkeypatch, tmp_path):
    """`pip install --target /opt/lib`, in a container."""
    for variable in ("ftn_pytorch_ROOT", "CMAKE_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(installation, "__file__", "/nowhere/ftn_pytorch/system/installation.py")
    assert installation.library() == ""


ROWS = Path(__file__).parents[1] / "cpp" / "base" / "torch_versions.inc"


@pytest.mark.parametrize(
    "built_for, here, minor, fits", re.findall(r'^\{"(.*)", "(.*)", "(.*)", (\w+)\},$', ROWS.read_text(), re.MULTILINE)
)
def test_releases_of_one_minor_version_fit_each_other(built_for: str, here: str, minor: str, fits: str) -> None:
    assert installation.minor_of_release(here) == minor
    assert installation.fits_torch(built_for, here) is (fits == "true")


ROWS_OF_WHEELS = Path(__file__).parents[1] / "cpp" / "torch" / "torch_wheels.inc"


@pytest.mark.parametrize(
    "version, name, line, minor",
    re.findall(r'^\{"(.*)", "(.*)", "(.*)", "(.*)"\},$', ROWS_OF_WHEELS.read_text(), re.MULTILINE),
)
def test_minor_version_of_a_wheel_of_pytorch(version: str, name: str, line: str, minor: str, tmp_path: Path) -> None:
    if line:
        described = tmp_path / f"torch-{name}.dist-info"
        described.mkdir()
        (described / "WHEEL").write_text(f"Wheel-Version: 1.0\n{line}")
    torch = installation.torch_at(str(tmp_path / "torch"), version)
    assert torch == (version, minor)
    is_number_alone = not minor and installation.minor_of_release(version) != ""
    assert ("not from a wheel of PyTorch" in torch.text) is is_number_alone
    assert installation.is_for(("", "2.13.9"), torch) is (minor == "2.13")
    assert installation.is_for(("/opt/torch", version), torch)


def test_a_package_that_is_a_link_into_a_store(tmp_path: Path) -> None:
    for folder in ("store/torch", "packages"):
        (tmp_path / folder).mkdir(parents=True)
    linked = tmp_path / "packages" / "torch"
    linked.symlink_to(tmp_path / "store" / "torch")
    for place in ("packages", "store"):
        described = tmp_path / place / "torch-2.13.0.dist-info"
        described.mkdir()
        (described / "WHEEL").write_text("Tag: cp311-cp311-manylinux_2_28_x86_64\n")
        assert installation.torch_at(str(linked), "2.13.0").minor == "2.13"
        (described / "WHEEL").unlink()
    assert installation.torch_at(str(linked), "2.13.0").minor == ""


def test_order_of_extensions(wheel: Path) -> None:
    """What was built for exactly this torch, what a wheel brings for its minor version, and the rest."""
    shipped = {minor: wheel / f"torch-{minor}" for minor in ("2.9", "2.13", "2.11")}
    for folder in shipped.values():
        folder.mkdir()
    described = wheel / "libftn_pytorch_direct.torch"
    own, of_minor = str(wheel), str(shipped["2.13"])
    for built_for, here, found in [
        ("2.13.0+cpu", "2.13.0+cpu", [own, of_minor]),
        ("2.13.0+cpu", "2.13.1+cpu", [of_minor, own]),
        ("2.12.0", "2.13.0", [of_minor, own]),
        ("2.12.0", "2.13.0a0+git1", [own]),
        ("2.12.0", "2.15.0", [own]),
    ]:
        described.write_text(f"/opt/torch\n{built_for}\n{__version__}\n")
        torch = installation.Torch(here, installation.minor_of_release(here))
        assert installation.extensions_for(torch, "") == found, here
    described.write_text("/opt/torch\n2.13.0+cpu\n0.0.1\n")  # of before an update of this package
    assert installation.extensions_for(installation.Torch("2.13.0+cpu", "2.13"), "") == [of_minor, own]
    assert installation.extensions_for(installation.Torch("2.13.0+cpu", ""), "") == [own]
    assert installation.shipped_minors("") == ["2.9", "2.11", "2.13"]


def test_the_torch_of_a_plugin(tmp_path: Path) -> None:
    assert installation.torch_of_plugin(str(tmp_path)) is None
    (tmp_path / "libftn_pytorch_direct.torch").write_text("/opt/torch\n2.13.0+cpu\n0.3.0\n")
    assert installation.torch_of_plugin(str(tmp_path)) == ("/opt/torch", "2.13.0+cpu")
    (tmp_path / "libftn_pytorch_direct.torch").write_text("cut off")
    assert installation.torch_of_plugin(str(tmp_path)) is None


def test_pythons_of_a_library(tmp_path: Path) -> None:
    for name in ("libftn_pytorch_python3.9.so", "libftn_pytorch_python3.12.so", "libftn_pytorch.so"):
        (tmp_path / name).touch()
    assert installation.pythons(str(tmp_path / "libftn_pytorch.so")) == ["3.12", "3.9"]
