# SPDX-License-Identifier: MIT
"""Ranks that share a GPU: a node with GPUs and MPS is played by two folders."""

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


def listen(folder):
    folder.mkdir()
    (folder / "control").touch()


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


def test_nothing_is_said_where_mps_runs(node, tmp_path, monkeypatch):
    node(1, 2)
    listen(tmp_path / "mps")
    shared_gpu.warn_if_slow()
    (tmp_path / "mps" / "control").unlink()
    listen(tmp_path / "elsewhere")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "elsewhere"))
    shared_gpu.warn_if_slow()


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
