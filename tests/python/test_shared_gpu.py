# SPDX-License-Identifier: MIT
"""Ranks that share a GPU: a node with GPUs and MPS is played by two folders."""

import contextlib
import os
import socket

import pytest

from ftn_pytorch.diagnosis import doctor
from ftn_pytorch.system import shared_gpu
from ftn_pytorch.system.process import FtnPytorchWarning
from ftn_pytorch.tensors import device


@pytest.fixture
def node(tmp_path, monkeypatch):
    """node(gpus, ranks, rank): this process is a rank on a node with that many GPUs."""

    def node(gpus, ranks, rank=0):
        for number in range(gpus):
            (tmp_path / "gpus" / f"0000:{number:02}:00.0").mkdir(parents=True)
        monkeypatch.setattr(shared_gpu, "_GPUS", str(tmp_path / "gpus"))
        monkeypatch.setattr(shared_gpu, "_PIPES", str(tmp_path / "mps"))
        for name in ("CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY"):
            monkeypatch.delenv(name, raising=False)
        for name, number in (("SIZE", ranks), ("LOCAL_SIZE", ranks), ("RANK", rank), ("LOCAL_RANK", rank)):
            monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", str(number))

    return node


@contextlib.contextmanager
def listening(folder, kind=socket.SOCK_STREAM):
    """MPS listens there; what it leaves behind stays."""
    folder.mkdir()
    with socket.socket(socket.AF_UNIX, kind) as end:
        end.bind(str(folder / "control"))
        if kind != socket.SOCK_DGRAM:
            end.listen()
        yield


@pytest.mark.parametrize(("gpus", "ranks", "text"), [(1, 2, "2 ranks .* share 1 GPU "), (4, 16, "16 ranks .* 4 GPUs ")])
def test_ranks_that_take_turns_are_told_how_not_to(node, gpus, ranks, text):
    node(gpus, ranks)
    with pytest.warns(FtnPytorchWarning, match=text + ".*nvidia-cuda-mps-control -d"):
        shared_gpu.warn_if_slow()
    shared_gpu.warn_if_slow()  # a second warning would be an error


def test_the_first_rank_of_another_node_is_told_too(node, monkeypatch):
    node(1, 2)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    with pytest.warns(FtnPytorchWarning, match="share 1 GPU"):
        shared_gpu.warn_if_slow()


@pytest.mark.parametrize(("gpus", "ranks", "rank"), [(0, 2, 0), (2, 2, 0), (4, 1, 0), (1, 2, 1)])
def test_nothing_is_said_of_ranks_with_a_gpu_each_and_by_other_ranks(node, gpus, ranks, rank):
    node(gpus, ranks, rank)
    shared_gpu.warn_if_slow()


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM])
def test_nothing_is_said_where_mps_runs(node, tmp_path, kind):
    node(1, 2)
    with listening(tmp_path / "mps", kind):
        shared_gpu.warn_if_slow()
    with pytest.warns(FtnPytorchWarning, match="share 1 GPU"):  # it has ended, and its socket is there
        shared_gpu.warn_if_slow()


def test_mps_is_looked_for_where_the_variable_says(node, tmp_path, monkeypatch):
    node(1, 2)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "elsewhere"))
    with listening(tmp_path / "elsewhere"):
        shared_gpu.warn_if_slow()


def test_a_pipe_without_a_reader_is_no_mps(node, tmp_path):
    node(1, 2)
    (tmp_path / "mps").mkdir()
    os.mkfifo(tmp_path / "mps" / "control")
    assert shared_gpu.turns(os.environ)
    reader = os.open(tmp_path / "mps" / "control", os.O_RDONLY | os.O_NONBLOCK)
    assert not shared_gpu.turns(os.environ)
    os.close(reader)


def test_nothing_is_said_of_slices(node, monkeypatch):
    node(1, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-12345678")
    shared_gpu.warn_if_slow()


def test_the_first_array_on_a_device_warns(node, monkeypatch):
    torch = pytest.importorskip("torch")
    node(1, 2)
    monkeypatch.setattr(torch, "empty", lambda size, device: None)
    with pytest.warns(FtnPytorchWarning, match="share 1 GPU"):
        device.start_device("cuda:0")


def test_the_doctor_tells_it(node, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    found = {each.name: each for each in doctor.findings({})}
    assert found["gpu"].verdict == doctor.OK
    node(1, 16)
    found = {each.name: each for each in doctor.findings({})}
    assert found["gpu"].verdict == doctor.NOTE
    assert "16 ranks of this node share 1 GPU" in found["gpu"].found
    assert "nvidia-cuda-mps-control -d" in found["gpu"].cure


def test_the_doctor_tells_ranks_of_hidden_gpus(node, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    node(2, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    found = {each.name: each for each in doctor.findings({})}
    assert found["gpu"].verdict == doctor.NOTE
    assert "CUDA_VISIBLE_DEVICES=0 leaves 1 of 2 GPUs" in found["gpu"].found
    assert 'device="cuda" chooses one for each rank' in found["gpu"].cure
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    found = {each.name: each for each in doctor.findings({})}
    assert found["gpu"].verdict == doctor.OK
