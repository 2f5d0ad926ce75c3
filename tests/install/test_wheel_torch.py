# SPDX-License-Identifier: MIT
"""What a wheel brings for each torch, and what `build-direct` compiles beside it."""

import os
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
import torch
from projects import ROOT, attempt, build, run
from wheels import HERE_VERSION, WHEELS, Environment, make, wheel_of, with_torch_of_tests

pytestmark = pytest.mark.skipif(not WHEELS, reason="make wheel runs it")

OF_TORCH = {"libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libc10.so"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel_of(HERE_VERSION)) as wheel:
        wheel.extractall(folder)
    return folder / "ftn_pytorch"


def minors(package: Path) -> list[str]:
    """Of the torches that the wheel has libraries for."""
    return sorted(folder.name.removeprefix("torch-") for folder in package.glob("lib/torch-*"))


def test_the_wheel_needs_nothing_but_the_system_and_torch(unpacked: Path) -> None:
    libraries = [*unpacked.rglob("*.so"), unpacked / "libexec" / "ftn_pytorch" / "ftn_pytorch_node"]
    assert len(libraries) == 3 + 3 * len(minors(unpacked))
    system = {
        "libstdc++.so.6",
        "libgcc_s.so.1",
        "libc.so.6",
        "libm.so.6",
        "libdl.so.2",
        "libpthread.so.0",
        "librt.so.1",
    }
    for library in libraries:
        dynamic = run("readelf", "-d", library, cwd=unpacked)
        needed = set(re.findall(r"NEEDED.*\[(.+)\]", dynamic)) - {"libftn_pytorch.so", "libftn_pytorch_direct.so"}
        allowed = system | OF_TORCH if library.parent.name.startswith("torch-") else system
        assert {name for name in needed if not name.startswith("ld-linux")} <= allowed, library
        assert all(path.startswith("$ORIGIN") for path in re.findall(r"R(?:UN)?PATH.*\[(.+)\]", dynamic)), library


def test_binaries_hold_no_path_of_the_machine_that_built_them(unpacked: Path) -> None:
    torches = os.environ["FTN_PYTORCH_TORCHES"]
    paths = {str(ROOT), torches, os.path.realpath(torches), sys.prefix, sys.base_prefix, str(Path.home())}
    paths.add(f"{tempfile.gettempdir()}/pip-")
    for file in [path for path in unpacked.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]:
        assert not [path for path in paths if path.encode() in file.read_bytes()], file
        assert ".symtab" not in run("readelf", "-S", file, cwd=unpacked), file  # stripped
    for description in unpacked.rglob("libftn_pytorch_direct.torch"):
        assert description.read_text().startswith(f"\n{description.parent.name.removeprefix('torch-')}.")


def test_one_plugin_is_for_torch_with_and_without_cuda(unpacked: Path) -> None:
    """What it calls of torch for CUDA may be missing when it is opened."""
    for minor in minors(unpacked):
        listed = run("nm", "-D", unpacked / "lib" / f"torch-{minor}" / "libftn_pytorch_direct.so", cwd=unpacked)
        of_cuda = {line.split()[-2] for line in listed.splitlines() if "4cuda" in line}
        headers = Path(os.environ["FTN_PYTORCH_TORCHES"], f"torch-{minor}", "torch/include/ATen/cuda/CUDAConfig.h")
        assert of_cuda <= {"w", "v"} and bool(of_cuda) is headers.exists(), minor


def test_auditwheel_repairs_it_without_torch(tmp_path: Path) -> None:
    excluded = ("--exclude", "libtorch*.so", "--exclude", "libc10*.so")
    run(sys.executable, "-m", "auditwheel", "repair", *excluded, "-w", tmp_path, wheel_of(HERE_VERSION), cwd=tmp_path)
    (made,) = tmp_path.glob("*.whl")
    assert "manylinux_2_" in made.name


def test_the_direct_path_of_the_wheel(environment: Environment, model: Path, tmp_path: Path) -> None:
    """Of the minor version of torch that is there, and nothing has been compiled."""
    program = build("find_package", tmp_path, "-DPROGRAM=saved.f90", **environment.active)
    minor = ".".join(torch.__version__.split(".")[:2])
    for python in ({}, {"FTN_PYTORCH_PYTHON": "/there/is/none"}):
        assert run(program, model, cwd=tmp_path, **python) == "through direct\n"
    doctor = run(environment.folder / "bin" / "ftn_pytorch", "doctor", cwd=tmp_path)
    assert f"ok    direct path: in {environment.library}/torch-{minor}, compiled with torch {minor}." in doctor
    assert "ok    recording: can be used" in doctor


HERE = torch.__version__.partition("+")[0]


# the last ones as conda has it, and a distribution
@pytest.mark.parametrize(
    "version, wheel, is_number_alone",
    [("2.99.0", "manylinux_2_28", False), ("2.13.0a0+git1", "linux", False), (HERE, "linux", True), (HERE, "", True)],
)
def test_torch_that_the_wheel_does_not_know(
    environment: Environment, model: Path, tmp_path: Path, version: str, wheel: str, is_number_alone: bool
) -> None:
    other = make(tmp_path / "other", sys.executable, wheel_of(HERE_VERSION))
    package = other.packages / "torch"
    package.mkdir()
    (package / "version.py").write_text(f"__version__ = '{version}'\n")
    if wheel:
        described = package.with_name(f"torch-{version}.dist-info")
        described.mkdir()
        (described / "WHEEL").write_text(f"Tag: cp311-cp311-{wheel}_x86_64\n")
    program = build("find_package", tmp_path, "-DPROGRAM=saved.f90", **environment.active)
    done = attempt(program, model, "direct", cwd=tmp_path, FTN_PYTORCH_PYTHON=str(other.python))
    found = minors(environment.packages / "ftn_pytorch")
    assert done.returncode != 0 and f"{found[-1]}, and not for torch {version}" in done.stderr
    assert ("which is not from a wheel of PyTorch" in done.stderr) is is_number_alone
    assert "python -m ftn_pytorch build-direct" in done.stderr


def test_without_the_direct_path_saved_models_run_through_python(model: Path, tmp_path: Path) -> None:
    """In a wheel that was made for no torch."""
    bare = with_torch_of_tests(make(tmp_path / "bare", sys.executable, wheel_of(HERE_VERSION)))
    for folder in bare.library.glob("torch-*"):
        shutil.rmtree(folder)
    program = build("find_package", tmp_path, "-DPROGRAM=saved.f90", **bare.active)
    done = attempt(program, model, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "through torchscript\n"), done.stderr
    assert done.stderr.count("python -m ftn_pytorch build-direct") == 1
    done = attempt(program, model, "direct", cwd=tmp_path)
    assert done.returncode != 0 and "python -m ftn_pytorch build-direct" in done.stderr


@pytest.fixture(scope="module")
def extensions(environment: Environment, place: Path) -> Path:
    """What is compiled for the torch at hand, in a folder that a variable must name."""
    folder = place / "extensions"
    text = run(environment.folder / "bin" / "ftn_pytorch", "build-direct", "--into", folder, cwd=place)
    assert text.endswith(f"export FTN_PYTORCH_EXTENSIONS={folder}\n") and torch.__version__ in text
    return folder


def test_direct_path_and_recorded_steps(
    environment: Environment, extensions: Path, model: Path, tmp_path: Path
) -> None:
    program = build("find_package", tmp_path, "-DPROGRAM=saved.f90", **environment.active)
    command = environment.folder / "bin" / "ftn_pytorch"
    folder = shutil.copytree(extensions, tmp_path / "extensions")
    named = {"FTN_PYTORCH_EXTENSIONS": str(folder)}
    for python in ({}, {"FTN_PYTORCH_PYTHON": "/there/is/none"}):
        assert run(program, model, cwd=tmp_path, **named, **python) == "through direct\n"
    doctor = run(command, "doctor", cwd=tmp_path, **named)
    assert f"ok    direct path: in {folder}, built for the torch of this Python" in doctor
    assert "ok    recording: can be used" in doctor
    # of another torch
    described = folder / "libftn_pytorch_direct.torch"
    kept = described.read_text()
    described.write_text(kept.replace(torch.__version__, "1.0"))
    done = attempt(program, model, cwd=tmp_path, **named)
    assert done.stdout == "through torchscript\n"
    assert "was built for torch 1.0" in done.stderr and "ftn_pytorch build-direct" in done.stderr
    described.write_text(kept)
    copied = [shutil.copy(file, environment.library) for file in folder.iterdir()]
    try:
        assert run(program, model, cwd=tmp_path) == "through direct\n"
    finally:
        for file in copied:
            os.remove(file)


def test_the_tutorial(environment: Environment, tmp_path: Path) -> None:
    """As its page says, with the environment active, no C++ compiler, and nothing of the repository."""
    sys.path.insert(0, str(ROOT / "tests" / "docs"))
    from pages import blocks_of
    from walkthrough import Walk

    walk = Walk(tmp_path, environment.active | {"HOME": str(tmp_path), "CXX": "/there/is/none"})
    compared = walk.follow(blocks_of(ROOT / "docs" / "tutorial.md"))
    assert len(compared) == 5
