# SPDX-License-Identifier: MIT
"""What a file is, told by its content and then by its extension; and files that are nothing, or broken."""

import os
import pickle
import zipfile

import pytest

import program
from ftn_pytorch.runners.models import formats

EMPTY = "def ftn_pytorch_forward(): return 1\n"

# The smallest ONNX model: ir_version 8, and a graph without nodes that is called "g".
ONNX = b"\x08\x08\x3a\x03\x12\x01g"


def archive(path, *names, content=b""):
    with zipfile.ZipFile(path, "w") as target:
        for name in names:
            target.writestr(name, content)
    return str(path)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("m/constants.pkl", "m/code/net.py", "m/data.pkl"), formats.TORCHSCRIPT),
        (("m/data.pkl", "m/data/0"), formats.PICKLE),
        (("m/archive_format", "m/models/model.json"), formats.EXPORTED),
        (("serialized_exported_program.json", "version"), formats.EXPORTED),
    ],
)
@pytest.mark.parametrize("file", ["model.py", "model.onnx", "model"])
def test_content_counts_before_extension(tmp_path, names, kind, file):
    assert formats.identify(archive(tmp_path / file, *names)) == kind


@pytest.mark.parametrize("file", ["model.pt2", "MODEL.PT2"])
@pytest.mark.parametrize("others", [(), ("m/models/model.json",)])
def test_package_is_told_by_its_folder(tmp_path, file, others):
    names = ("m/archive_format", "m/data/aotinductor/model/x.so", *others)
    assert formats.identify(archive(tmp_path / file, *names)) == formats.AOTI


@pytest.mark.parametrize("file", ["model.onnx", "model.pt", "model"])
def test_onnx_is_told_by_its_fields(tmp_path, file):
    (tmp_path / file).write_bytes(ONNX)
    assert formats.identify(str(tmp_path / file)) == formats.ONNX


@pytest.mark.parametrize("name", ["MODEL.PY", "..py", ".py", "a.b.py"])
def test_extension_of_a_script_follows_the_last_dot_and_may_be_in_capitals(write, name):
    assert formats.identify(write(name, EMPTY)) == formats.SCRIPT


@pytest.mark.parametrize("protocol", [2, 4])
def test_pickle_of_old_torch_is_recognised(tmp_path, protocol):
    (tmp_path / "weights.pt").write_bytes(pickle.dumps({"weight": 1.0}, protocol))
    assert formats.identify(str(tmp_path / "weights.pt")) == formats.PICKLE


# ---- what is refused


@pytest.mark.parametrize("name", ["m/constants.pkl", "m/code/net.py"])
def test_half_a_saved_model_is_none(tmp_path, fails, name):
    with fails("FORMAT", "no saved model"):
        program.load_model(archive(tmp_path / "net.pt", name))


def test_archive_without_model_is_none(tmp_path, fails):
    with fails("FORMAT", "without a model"):
        program.load_model(archive(tmp_path / "net.pt2", "net/archive_format"))


@pytest.mark.parametrize("name", ["model.txt", "model"])
def test_other_files_are_refused_with_what_is_accepted(write, fails, name):
    with fails("FORMAT", ".py", "torch.jit.save", ".pt2", ".onnx"):
        program.load(write(name, EMPTY))


def test_other_archive_is_refused(tmp_path, fails):
    with fails("FORMAT", "zip archive"):
        program.load(archive(tmp_path / "fields.npz", "x.npy"))


@pytest.mark.parametrize(
    ("name", "content", "piece"),
    [
        ("net.pt", b"PK\x03\x04 and nothing that follows", "damaged"),
        ("net.pt", b"", "empty"),
        ("net.pt2", b"", "empty"),
        ("net.pt2", b"GIF89a", "begins with b'GIF89a'"),
        ("net.onnx", b"", "no ONNX model: it is empty"),
        ("net.onnx", b"\x08", "ends inside the field at byte 0"),
        ("net.onnx", b"\x08\x08", "holds no graph"),
        ("net.onnx", ONNX[:-1], "cut off: 1 bytes are missing"),
        ("net.onnx", b"not at all", "no such content at byte 0"),
        ("net.onnx", b"\xff" * 64, "ends inside the field at byte 0"),
        ("net.h5", b"\x89HDF\r\n\x1a\n", "Keras"),
        ("net.safetensors", b"\x10\0\0\0\0\0\0\0{}", "parameters but no program"),
        ("net.gguf", b"GGUF\x03", "parameters but no program"),
    ],
)
def test_broken_and_foreign_files_are_refused(tmp_path, fails, name, content, piece):
    (tmp_path / name).write_bytes(content)
    with fails("FORMAT", str(tmp_path / name), piece):
        program.load_model(str(tmp_path / name))


# ---- pickles


class Attack:
    """Leaves a file behind when it is read."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_names_in_a_pickle_are_listed_and_nothing_is_run(tmp_path):
    for protocol in (0, 2, 4):
        data = pickle.dumps(Attack(tmp_path / "run"), protocol)
        assert formats.foreign_names(data) == ["posix.mkdir"]
        assert formats.foreign_names(data[:-10]) == ["posix.mkdir"]
    assert formats.foreign_names(b"\xff\xfe") == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("form", ["bare", "archive"])
def test_pickle_with_code_is_refused_and_not_run(tmp_path, fails, form):
    data = pickle.dumps(Attack(tmp_path / "run"), 2)
    path = str(tmp_path / "net.pt")
    if form == "bare":
        (tmp_path / "net.pt").write_bytes(data)
    else:
        archive(path, "net/data.pkl", content=data)
    with fails("FORMAT", "posix.mkdir", "weights_only=.false.", "so it is refused"):
        program.load_model(path)
    assert not (tmp_path / "run").exists()


def test_parameters_are_refused_with_advice(tmp_path, fails):
    path = archive(tmp_path / "weights.pt", "w/data.pkl", "w/data/0", content=pickle.dumps({"weight": 1.0}, 2))
    with fails("FORMAT", "holds parameters, but no program", "torch.load", "torch.jit.save", "ftn_pytorch export"):
        program.load_model(path)


def test_an_archive_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path, monkeypatch, fails):
    monkeypatch.setattr(formats, "_ALWAYS_UNPACKED", 1000)
    path = tmp_path / "net.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/constants.pkl", bytes(1_000_000))
        archive.writestr("net/code/a.py", "")
    with fails("FORMAT", "would unpack to 1000000 bytes"):
        formats.identify(str(path))
