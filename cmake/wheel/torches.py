# SPDX-License-Identifier: MIT
"""Fetch what is needed to compile for several torch: python cmake/wheel/torches.py FOLDER [VERSION...]

FOLDER/torch-2.N/torch gets the C++ headers of each torch, and the libraries that are linked with, half a gigabyte;
what is there already is kept. One with CUDA is taken where the index has one, with the headers of CUDA beside
it: its plug-in has CUDA graphs, and runs without CUDA, too. One torch serves all versions of Python.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSIONS = Path(__file__).with_name("torches.txt")
TORCH = (
    "torch/include/*",
    "torch/version.py",
    "torch/share/cmake/Torch/TorchConfig.cmake",
    *(f"torch/lib/lib{name}.so" for name in ("c10", "torch", "torch_cpu", "torch_python")),
)
CUDA = ("nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cupti")
"""Packages with headers of CUDA 13, and with two libraries without which libtorch_cpu cannot be loaded: tests run the
reader of saved recordings with each torch, on the host."""
OF_CUDA = ("nvidia/*/include/*", "nvidia/*/lib/libcudart.so.*", "nvidia/*/lib/libcupti.so.*")


def fetch(requirement: str, names: tuple[str, ...], folder: Path) -> None:
    """Unpack some files of the wheel of a package."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:")
        subprocess.run([*pip, "-d", temporary, requirement], check=True)
        (file,) = Path(temporary).glob("*.whl")
        with zipfile.ZipFile(file) as wheel:
            wanted = [name for name in wheel.namelist() if any(fnmatch.fnmatch(name, each) for each in names)]
            wheel.extractall(folder, wanted)


def main(folder: Path, versions: list[str]) -> None:
    """Each torch that is not there."""
    for version in versions:
        place = folder / f"torch-{'.'.join(version.split('.')[:2])}"
        done = place / "torch" / "lib" / "libtorch_cpu.so"
        if not done.exists():
            place.mkdir(parents=True, exist_ok=True)
            print(f"torch {version}: {place}", flush=True)
            fetch(f"torch==={version}", TORCH, place)  # and not 2.13.0+cpu of another index
            cuda = re.search(r"^cuda.*'(\d+\.\d+)'$", (place / "torch" / "version.py").read_text(), re.MULTILINE)
            if cuda:
                for package in CUDA:
                    fetch(f"{package}=={cuda[1]}.*", OF_CUDA, place)


if __name__ == "__main__":
    given = sys.argv[2:]
    main(Path(sys.argv[1]), given or [line for line in VERSIONS.read_text().split("\n") if line[:1].isdigit()])
