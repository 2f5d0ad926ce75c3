# SPDX-License-Identifier: MIT
"""src/ftr, the reader of .ftr files that others can take: alone, with libtorch, and with each torch that is here."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import ftr_cases  # noqa: E402
from ftn_pytorch import load_recording, recorded, save_recording  # noqa: E402
from ftr_cases import leaves  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("extension")]

ROOT = Path(__file__).resolve().parents[2]
TORCHES = Path(os.environ.get("FTN_PYTORCH_TORCHES", "nowhere"))
"""Folders torch-2.N, which cmake/wheel/torches.py fetches."""
WRITERS = [each for each in os.environ.get("FTN_PYTORCH_WRITERS", "").split(os.pathsep) if each]
"""Pythons with the package and a torch of their own, which write the files that this torch reads."""
CONFIG = """
set(TORCH_LIBRARIES torch)
add_library(torch INTERFACE IMPORTED)
set_target_properties(torch PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "{folder}/include;{folder}/include/torch/csrc/api/include"
  INTERFACE_LINK_LIBRARIES "{folder}/lib/libtorch_cpu.so;{folder}/lib/libc10.so"
  INTERFACE_LINK_OPTIONS "LINKER:--unresolved-symbols=ignore-in-shared-libs")
"""
WHY = ["file", "corrupt", "format", "function", "signature", "dtype", "shape", "argument", "state"]


class Reader:
    """The program of tests/install/ftr_reader with a copy of the folder."""

    def __init__(self, folder, config, libraries=()):
        shutil.copytree(ROOT / "src" / "ftr", folder / "taken" / "ftr")
        options = (f"-DFTR={folder / 'taken' / 'ftr'}", f"-DTorch_DIR={config}", "-DCMAKE_BUILD_TYPE=Release")
        source = ROOT / "tests" / "install" / "ftr_reader"
        self.run("cmake", "-S", source, "-B", folder / "build", "-G", "Ninja", *options)
        self.run("cmake", "--build", folder / "build", "-j", "2")
        self.program = folder / "build" / "program"
        self.environment = {"LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}

    @staticmethod
    def run(*command, **options):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
        assert done.returncode == 0, done.stdout + done.stderr

    def __call__(self, file, calls):
        """Exit code, lines and errors."""
        where = Path(file).with_suffix(".calls")
        torch.save([(name, list(args)) for name, args in calls], where)
        command = [str(self.program), str(file), str(where)]
        done = subprocess.run(command, env=os.environ | self.environment, capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines(), done.stderr


def torches():
    here = [pytest.param(None, id=f"torch {torch.__version__}")]
    return here + [pytest.param(each, id=each.name) for each in sorted(TORCHES.glob("torch-2.*"))]


@pytest.fixture(scope="module", params=torches())
def reader(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    if request.param is None:
        return Reader(folder, Path(torch.utils.cmake_prefix_path) / "Torch")
    (folder / "TorchConfig.cmake").write_text(CONFIG.format(folder=request.param / "torch"))
    return Reader(folder, folder, [request.param / "torch" / "lib", *request.param.glob("nvidia/*/lib")])


def shown(value):
    if not isinstance(value, torch.Tensor):
        return str(value)
    return f"{str(value.dtype).removeprefix('torch.')}={value.numpy().tobytes().hex()}"


def expected(file, calls):
    """What the library computes, as the program prints it."""
    ours = load_recording(str(file))
    results = [leaves(ours.call(name, *(each.clone() for each in args))) for name, args in calls]
    return ["".join(f" {shown(each)}" for each in result) for result in results], {
        name: shown(array) for name, array in ours.arrays.items()
    }


def compared(reader, path, calls):
    """Bit for bit."""
    code, lines, errors = reader(path, calls)
    assert code == 0, errors
    results, arrays = expected(path, calls)
    assert lines[: len(results)] == results
    assert dict(line.split("\t ") for line in lines[len(results) :]) == arrays


@pytest.mark.parametrize("make", ftr_cases.CASES, ids=lambda make: make.__name__)
def test_the_reader_alone_predicts_and_trains_as_the_library(tmp_path, make, reader):
    compared(reader, *ftr_cases.saved(make, tmp_path))


@pytest.fixture(scope="module", params=WRITERS)
def files_of_another_torch(request, tmp_path_factory):
    """A folder for each case."""
    folder = tmp_path_factory.mktemp("written")
    own = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    Reader.run(request.param, Path(ftr_cases.__file__), folder, env=own)
    return folder


@pytest.mark.parametrize("make", ftr_cases.CASES, ids=lambda make: make.__name__)
def test_files_of_another_torch(files_of_another_torch, make, reader):
    """Bit for bit as the library runs them with the torch of the tests, or the operator is named that has changed."""
    folder = files_of_another_torch / make.__name__
    path, calls = folder / "case.ftr", torch.load(folder / "calls")
    code, _, errors = reader(path, calls)
    if code == 10 + WHY.index("format"):
        assert "operator aten::" in errors
    else:
        compared(reader, path, calls)


def test_a_file_of_0_2_0(tmp_path, reader):
    path = shutil.copy(Path(__file__).parent / "recordings_of_before" / "0.2.0.ftr", tmp_path)
    x = torch.arange(12.0).reshape(4, 3) / 10
    calls = [("ftn_pytorch_train", (x, x.sum(1, keepdim=True)))] * 3 + [("ftn_pytorch_forward", (x,))]
    compared(reader, path, calls)


def refused(reader, file, calls=()):
    code, _, errors = reader(file, calls)
    assert code >= 10, errors
    return WHY[code - 10], errors


def test_what_the_reader_refuses(tmp_path, reader):
    @recorded
    def double(x):
        return x * 2

    for _ in range(9):
        double(torch.randn(4, 3))
    path = Path(save_recording(str(tmp_path / "double.ftr"), {"double": double}, names={}))
    x = torch.randn(4, 3)
    assert refused(reader, tmp_path / "none.ftr")[0] == "file"
    assert refused(reader, path, [("halve", [x])]) == ("function", f"{path} has no function halve; it has double\n")
    assert refused(reader, path, [("double", [x, x])])[0] == "signature"
    assert refused(reader, path, [("double", [x.double()])])[0] == "dtype"
    why, text = refused(reader, path, [("double", [x.T.contiguous()])])
    assert why == "shape" and re.fullmatch(
        r"double is given float32 \(3, 4\); its recordings take: x float32 .*\n", text
    )
    content = path.read_bytes()
    path.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    assert refused(reader, path) == ("corrupt", f"{path} is damaged: its content does not agree with its checksum\n")
    torch.save({"a": x}, path)
    assert refused(reader, path)[0] == "format"
