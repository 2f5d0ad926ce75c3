# SPDX-License-Identifier: MIT
"""What the doctor says of the libraries that run saved models without Python."""

import os
import subprocess
import types

import pytest

from ftn_pytorch._version import __version__
from ftn_pytorch.diagnosis import direct_path, doctor
from ftn_pytorch.system import installation


def found_in(findings):
    return next(finding for finding in findings if finding.name == "direct path")


@pytest.mark.parametrize(
    "facts, verdict, piece",
    [
        ({"direct_torch": ""}, "note", "not built"),
        ({"direct_torch": "", "direct_obstacle": "not for torch 9"}, "note", "not for torch 9"),
        ({"direct_torch": "torch 9", "direct_obstacle": "it was built for another"}, "note", "built for another"),
        ({"direct_torch": "torch 9", "direct_obstacle": ""}, "ok", "torch 9"),
    ],
)
def test_direct_path_is_judged(facts, verdict, piece):
    found = found_in(doctor.findings(facts))
    assert found.verdict == verdict and piece in found.found


@pytest.mark.parametrize(
    "folder, version, verdict, piece",
    [
        ("own", __version__, "ok", "built for the torch of this Python"),
        ("other", __version__, "note", "not for torch"),
        ("own", "0.0.1", "note", f"built for version 0.0.1, not {__version__}"),
        ("own", "", "note", f"built for an earlier version, not {__version__}"),
    ],
)
def test_plugin_beside_the_library_is_compared_with_torch_and_package(
    tmp_path, monkeypatch, folder, version, verdict, piece
):
    torch = pytest.importorskip("torch")
    own = os.path.dirname(torch.__file__)
    (tmp_path / "libftn_pytorch.so").write_bytes(b"")
    searched = own if folder == "own" else str(tmp_path / "torch")
    (tmp_path / "libftn_pytorch_direct.torch").write_text(f"{searched}\n{torch.__version__}\n{version}")
    core = str(tmp_path / "libftn_pytorch.so")
    monkeypatch.setattr(direct_path, "_failure", lambda files: ("", ""))
    found = found_in(doctor.findings({"core": core}))
    assert found.verdict == verdict and piece in found.found


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A folder with libraries that can be opened, built for the torch at hand, and that torch."""
    monkeypatch.setattr(installation, "library", lambda: "")
    (tmp_path / "empty.c").write_text("int nothing;\n")
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    for name in ("torch/lib/libtorch.so", direct_path.PLUGIN, direct_path.TORCHSCRIPT):
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / name, tmp_path / "empty.c"], check=True)
    (tmp_path / "libftn_pytorch_direct.torch").write_text(f"{tmp_path}/torch\n2.13.0\n{__version__}\n")
    return tmp_path


def found_of(folder, **info):
    torch = types.SimpleNamespace(__version__="2.13.0", __file__=str(folder / "torch" / "__init__.py"))
    return list(direct_path.findings(info, str(folder / "libftn_pytorch.so"), torch))


def test_libraries_that_can_be_opened_are_told(plugin):
    assert [(each.name, each.verdict) for each in found_of(plugin)] == [("direct path", "ok"), ("TorchScript", "ok")]


@pytest.mark.parametrize("info", [{}, {"direct_torch": "torch 2.13.0"}])
def test_missing_torchscript_is_told(plugin, info):
    (plugin / direct_path.TORCHSCRIPT).unlink()
    direct, torchscript = found_of(plugin, **info)
    assert (direct.verdict, torchscript.verdict) == ("ok", "note")
    assert torchscript.found == f"{plugin}/{direct_path.TORCHSCRIPT} is missing: TorchScript files run through Python"
    assert torchscript.cure == installation.direct_cure()


def test_torchscript_that_cannot_be_opened_is_wrong(plugin):
    (plugin / direct_path.TORCHSCRIPT).write_bytes(b"no library")
    direct, torchscript = found_of(plugin)
    assert (direct.verdict, torchscript.verdict, torchscript.status) == ("ok", "wrong", "IMPORT")
    begin = f"{plugin}/{direct_path.TORCHSCRIPT} cannot be opened: TorchScript files cannot be loaded: "
    assert torchscript.found.startswith(begin) and "file too short" in torchscript.found
    # in a program, no process is started, and nothing is opened
    assert [each.verdict for each in found_of(plugin, direct_torch="torch 2.13.0")] == ["ok", "ok"]


@pytest.mark.parametrize("file", ["torch/lib/libtorch.so", direct_path.PLUGIN])
def test_plugin_that_cannot_be_opened_is_wrong(plugin, file):
    (plugin / file).write_bytes(b"no library")
    (found,) = found_of(plugin)
    assert (found.name, found.verdict, found.status) == ("direct path", "wrong", "IMPORT")
    assert found.found.startswith(f"{plugin}/{file} cannot be opened: saved models cannot be loaded: ")


def test_plugin_that_ends_the_process_is_wrong(plugin):
    (plugin / "abort.c").write_text("#include <stdlib.h>\n__attribute__((constructor)) void end(void) { abort(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", plugin / direct_path.PLUGIN, plugin / "abort.c"], check=True)
    (found,) = found_of(plugin)
    assert found.verdict == "wrong" and found.found.endswith("the process ends with SIGABRT")


ALL = "manylinux_2_28_x86_64"


@pytest.mark.parametrize(
    "version, system, minors, verdict, piece, cure",
    [
        ("2.12.3+cpu", ALL, ("2.11", "2.12"), "ok", "compiled with torch 2.12.0 for each release of torch 2.12", ""),
        (
            "2.12.3",
            ALL,
            ("2.11", "2.12"),
            "ok",
            "the wheel has it for torch 2.11 to 2.12, and is tested up to 2.12",
            "",
        ),
        (
            "2.13.0",
            ALL,
            ("2.11", "2.12"),
            "note",
            "for torch 2.11 to 2.12, and is tested up to 2.12",
            "newer ftn-pytorch",
        ),
        ("2.12.0a0+git1", ALL, ("2.11", "2.12"), "note", "and 2.12.0a0+git1 is no release of torch", ""),
        (
            "2.11.0",
            ALL,
            ("2.12",),
            "note",
            "for torch 2.12, and is tested up to 2.12, and this",
            "or take a torch of these",
        ),
        ("2.11.0", ALL, (), "note", "not there: saved models run through Python", ""),
        ("2.12.0", "linux_x86_64", ("2.12",), "note", "2.12, and this is torch 2.12.0, which is not from a wheel", ""),
    ],
)
def test_plugins_of_a_wheel_are_told(tmp_path, monkeypatch, version, system, minors, verdict, piece, cure):
    for minor in minors:
        folder = tmp_path / f"torch-{minor}"
        folder.mkdir()
        (folder / "libftn_pytorch_direct.torch").write_text(f"\n{minor}.0\n{__version__}\n")
    monkeypatch.setattr(installation, "library", lambda: "")
    described = tmp_path / f"torch-{version}.dist-info"
    described.mkdir()
    (described / "WHEEL").write_text(f"Tag: cp311-cp311-{system}\n")
    torch = types.SimpleNamespace(__version__=version, __file__=str(tmp_path / "torch" / "__init__.py"))
    monkeypatch.setattr(direct_path, "_failure", lambda files: ("", ""))
    found = next(direct_path.findings({}, str(tmp_path / "libftn_pytorch.so"), torch))
    assert found.verdict == verdict and piece in found.found and cure in found.cure
