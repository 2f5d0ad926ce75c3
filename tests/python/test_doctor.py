# SPDX-License-Identifier: MIT
"""What is found, and the command line."""

import importlib
import importlib.util
import json
import os
import py_compile
import subprocess
import sys
import types

import pytest

import ftn_pytorch
import program
from ftn_pytorch import __main__
from ftn_pytorch.diagnosis import doctor
from ftn_pytorch.system import installation, process


def lines_of(text):
    """Findings by name; each line begins with its verdict."""
    return dict(line[6:].partition(": ")[::2] for line in text.splitlines())


def verdicts_of(text):
    return {line[6:].partition(": ")[0]: line[:6].strip() for line in text.splitlines()}


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
    status, sentence, text = program.diagnose({})
    lines = lines_of(text)
    assert (status, sentence) == ("", "")
    assert sys.executable in lines["python"]
    assert sys.prefix in lines["prefix"]
    assert ftn_pytorch.__version__ in lines["ftn_pytorch"]
    assert numpy.__version__ in lines["numpy"]
    assert str(len(os.sched_getaffinity(0))) in lines["cores"]


@pytest.mark.parametrize("mode", py_compile.PycInvalidationMode)
def test_a_file_that_was_changed_after_it_was_installed_is_told(tmp_path, mode):
    for name in ("same", "changed", "plain"):
        (tmp_path / f"{name}.py").write_text("VALUE = 1\n")
    for name in ("same", "changed"):
        py_compile.compile(str(tmp_path / f"{name}.py"), invalidation_mode=mode, doraise=True)
    (tmp_path / "changed.py").write_text("VALUE = 2\n")
    (tmp_path / "broken.py").write_text("")
    (tmp_path / "__pycache__" / os.path.basename(importlib.util.cache_from_source("broken.py"))).write_bytes(b"cut")
    found = list(doctor._bytecode(tmp_path))
    is_ignored = mode is py_compile.PycInvalidationMode.UNCHECKED_HASH
    assert [(each.verdict, each.found.split()[0]) for each in found] == [
        (doctor.NOTE, str(tmp_path / "changed.py"))
    ] * is_ignored
    for each in found:
        os.unlink(each.found.split()[-2])
    assert list(doctor._bytecode(tmp_path)) == []


def test_torch_is_described_with_threads_and_openmp_runtime():
    torch = pytest.importorskip("torch")
    lines = lines_of(program.diagnose({})[2])
    assert torch.__version__ in lines["torch"]
    assert "imported before" in lines["torch"]
    assert "usable GPU" in lines["gpu"]
    assert lines["torch threads"].startswith(str(torch.get_num_threads()))
    assert "omp" in lines["openmp"]


def test_what_the_library_knows_is_reported():
    info = {"executable": "/opt/python", "reason": "VIRTUAL_ENV", "library": "/opt/libpython.so"}
    facts = {"floating_point": "default", "openmp_threads": 4, "direct_torch": "torch 9.9", "direct_obstacle": ""}
    program.on_start({**info, "adopted": "0"})
    lines = lines_of(program.diagnose(facts)[2])
    assert "/opt/python" in lines["python"]
    assert lines["chosen by"] == "VIRTUAL_ENV"
    assert lines["libpython"] == "/opt/libpython.so"
    assert lines["floating point"].startswith("default")
    assert lines["openmp team size"] == "4"
    assert "torch 9.9" in lines["direct path"]


def test_slow_import_is_noted_with_a_cure(monkeypatch, tmp_path):
    (tmp_path / "slow_to_import.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "_SLOW_IMPORT_S", -1.0)
    _, found = doctor._package("slow_to_import", "", "")
    assert found.verdict == doctor.NOTE and "import took 0.0 s" in found.found and "a disk of the node" in found.cure


def test_adopted_interpreter_is_reported():
    lines = lines_of(program.diagnose({"reason": "x", "adopted": "1"})[2])
    assert "the program" in lines["chosen by"]


def test_environment_that_bends_python_is_reported(monkeypatch):
    monkeypatch.setenv("PYTHONHOME", "/elsewhere")
    assert lines_of(program.diagnose({})[2])["PYTHONHOME"].startswith("/elsewhere -> unset PYTHONHOME")


def test_missing_torch_is_said_and_no_failure(monkeypatch):
    hide(monkeypatch, "torch")
    status, _, text = program.diagnose({})
    assert status == ""
    assert verdicts_of(text)["torch"] == "note"
    assert lines_of(text)["torch"].startswith("not installed")
    assert "saved recordings cannot be loaded" in lines_of(text)["torch"]
    assert "pip install torch" in lines_of(text)["torch"]


def test_nothing_for_arrays_is_a_failure(monkeypatch):
    hide(monkeypatch, "torch", "numpy")
    status, sentence, text = program.diagnose({})
    assert status == "IMPORT"
    assert verdicts_of(text)["arrays"] == "wrong"
    assert sentence in text and "neither numpy nor torch" in sentence


@pytest.mark.parametrize("failure", [ImportError("undefined symbol"), OSError("undefined symbol")])
def test_installed_package_that_cannot_be_imported_is_a_failure(monkeypatch, failure):
    def broken(name):
        raise failure

    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    monkeypatch.setattr(importlib, "import_module", broken)
    status, _, text = program.diagnose({})
    assert status == "IMPORT"
    assert "9.9" in lines_of(text)["torch"]
    assert "undefined symbol" in lines_of(text)["torch"]


def test_library_of_another_version_is_a_failure(monkeypatch):
    monkeypatch.setattr(process, "library_version", lambda: "9.9.9")
    status, _, text = program.diagnose({})
    assert status == "VERSION"
    assert "library 9.9.9" in lines_of(text)["ftn_pytorch"]


def finding_of(name, found):
    return next(finding for finding in found if finding.name == name)


def test_two_openmp_runtimes_are_both_named(monkeypatch, tmp_path):
    maps = "".join(f"7f0 r-xp 0 0:0 1  /opt/{name}\n" for name in ("libgomp.so.1", "libomp.so.5", "libc.so.6"))
    real_open = open
    monkeypatch.setattr(
        "builtins.open",
        lambda file, *a, **k: real_open(write_maps, *a, **k) if file == "/proc/self/maps" else real_open(file, *a, **k),
    )
    write_maps = tmp_path / "maps"
    write_maps.write_text(maps)
    found = finding_of("openmp", list(doctor._openmp()))
    assert found.verdict == "note"
    assert "/opt/libgomp.so.1, /opt/libomp.so.5" in found.found and "OMP_WAIT_POLICY" in found.cure


def torch_with(count, cuda):
    return types.SimpleNamespace(
        __version__="9.9",
        version=types.SimpleNamespace(cuda=cuda, hip=None),
        cuda=types.SimpleNamespace(device_count=lambda: count),
        get_num_threads=lambda: 1024,
    )


@pytest.mark.parametrize(
    "count, cuda, driver, verdict, cure",
    [
        (0, None, False, "ok", ""),
        (0, None, True, "note", "built for CUDA"),
        (0, "12.4", True, "note", "nvidia-smi"),
        (0, "12.4", False, "note", "no driver"),
        (2, "12.4", True, "ok", ""),
    ],
)
def test_gpu_is_judged(monkeypatch, count, cuda, driver, verdict, cure):
    monkeypatch.setattr(os.path, "exists", lambda path: driver)
    found = doctor._gpu(torch_with(count, cuda))
    assert found.verdict == verdict and cure in found.cure


def test_more_threads_than_cores_are_noted():
    found = doctor._threads(torch_with(0, None))
    assert found.verdict == "note" and "ftn_pytorch_set_threads" in found.cure


@pytest.mark.parametrize("variable", ["FTN_PYTORCH_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"])
def test_another_python_of_the_environment_is_noted(monkeypatch, variable):
    for name in ("FTN_PYTORCH_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, sys.prefix + ("/bin/python" if variable == "FTN_PYTORCH_PYTHON" else ""))
    assert finding_of("chosen by", doctor.findings({})).verdict == "ok"
    monkeypatch.setenv(variable, "/other/bin/python")
    found = finding_of("chosen by", doctor.findings({}))
    assert found.verdict == "note" and "run the doctor with /other/bin/python" in found.cure


def test_variables_that_nothing_reads_are_noted(monkeypatch):
    monkeypatch.setenv("FTN_PYTORCH_PROFLE", "1")
    monkeypatch.setenv("FTN_PYTORCH_ROOT", "/opt")
    monkeypatch.setenv("FTN_PYTORCH_RECORD_CALLS", "3")
    found = {finding.name: finding for finding in doctor.findings({}) if finding.name.startswith("FTN_PYTORCH_")}
    assert set(found) == {"FTN_PYTORCH_PROFLE", "FTN_PYTORCH_ROOT"}
    assert {finding.verdict for finding in found.values()} == {"note"}
    assert found["FTN_PYTORCH_PROFLE"].cure == "FTN_PYTORCH_PROFILE may be meant"
    assert found["FTN_PYTORCH_ROOT"].cure == "unset it"


# ---- command line


def test_command_line_prints_the_version(capsys):
    with pytest.raises(SystemExit) as ended:
        __main__.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"{ftn_pytorch.__version__}\n"


@pytest.mark.parametrize("command", ["doctor", "diagnose"])
def test_command_line_diagnoses_and_tells_by_its_exit_code(capsys, monkeypatch, command):
    assert __main__.main([command]) == 0
    assert "python: " in capsys.readouterr().out
    hide(monkeypatch, "torch", "numpy")
    assert __main__.main([command]) == 1


def test_command_line_diagnoses_for_programs(capsys):
    assert __main__.main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["fine"] and {"name", "verdict", "found", "cure", "status"} == set(report["findings"][0])


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["--cmakedir", "doctor"]])
def test_command_line_that_is_not_understood_is_explained(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        __main__.main(arguments)
    assert ended.value.code == 2
    assert "usage: ftn_pytorch" in capsys.readouterr().err


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
    monkeypatch.setattr(installation, "__file__", str(package / "system" / "installation.py"))
    expected = install(tmp_path, f"{folder}/cmake/ftn_pytorch")
    assert installation.cmakedir() == expected
    assert installation.prefix() == tmp_path
    assert installation.pkgconfigdir() == tmp_path / folder / "pkgconfig"


def test_a_python_without_libpython_is_wrong(monkeypatch, tmp_path):
    core = tmp_path / "libftn_pytorch.so"
    for name in (core.name, f"libftn_pytorch_python3.{sys.version_info.minor}.so"):
        (tmp_path / name).touch()
    assert finding_of("abi", doctor.findings({"core": str(core)})).verdict == "ok"
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    found = finding_of("abi", doctor.findings({"core": str(core)}))
    assert (found.verdict, found.status) == ("wrong", "INTERPRETER") and "no shared libpython" in found.found


def test_a_wheel_is_found_in_its_package(monkeypatch, tmp_path, nothing_installed):
    monkeypatch.setattr(installation, "__file__", str(tmp_path / "ftn_pytorch" / "system" / "installation.py"))
    assert not installation.is_wheel() and installation.source() is None
    expected = install(tmp_path / "ftn_pytorch")
    core = tmp_path / "ftn_pytorch" / "lib" / "libftn_pytorch.so"
    core.touch()
    assert installation.is_wheel() and installation.library() == str(core)
    assert installation.cmakedir() == expected and installation.prefix() == tmp_path / "ftn_pytorch"
    assert "-m ftn_pytorch build-direct" in installation.direct_cure()
    source = tmp_path / "ftn_pytorch" / "share" / "ftn_pytorch" / "source"
    source.mkdir(parents=True)
    (source / "CMakeLists.txt").touch()
    assert installation.source() == source


@pytest.mark.parametrize("variable", ["ftn_pytorch_ROOT", "CMAKE_PREFIX_PATH"])
def test_cmake_package_is_found_through_the_environment(monkeypatch, tmp_path, nothing_installed, variable, capsys):
    monkeypatch.setenv(variable, f"{tmp_path / 'none'}{os.pathsep}{tmp_path}")
    expected = install(tmp_path)
    assert __main__.main(["--cmakedir"]) == 0
    assert capsys.readouterr().out == f"{expected}\n"


def test_cmake_package_is_found_in_the_prefix_of_python(tmp_path, nothing_installed):
    assert installation.cmakedir() is None
    expected = install(tmp_path / "python")
    assert installation.cmakedir() == expected


def test_missing_cmake_package_is_told_with_where_it_was_looked_for(capsys, tmp_path, nothing_installed):
    assert __main__.main(["--cmakedir"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "cmake --install" in captured.err
    assert str(tmp_path / "python") in captured.err


@pytest.mark.parametrize("command", [["doctor"], pytest.param(["doctor", "--json"], marks=pytest.mark.slow)])
def test_reader_that_goes_away_is_no_failure_to_tell(command):
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__main__.__file__)))
    end_to_read, end_to_write = os.pipe()
    os.close(end_to_read)
    with os.fdopen(end_to_write, "w") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "ftn_pytorch", *command],
            stdout=stream, stderr=subprocess.PIPE, text=True, check=False, env={**os.environ, "PYTHONPATH": folder},
        )  # fmt: skip
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
    assert done.returncode == 1
