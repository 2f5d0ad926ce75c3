# SPDX-License-Identifier: MIT
"""all_reduce_mean and broadcast in a process without communicator and process group."""

import pytest

import ftn_pytorch
from ftn_pytorch.errors import FtnPytorchError

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _of_no_job(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)


def test_mean_outside_of_mpi_is_a_copy():
    x = torch.ones(3, requires_grad=True)
    mean = ftn_pytorch.all_reduce_mean(x)
    assert torch.equal(mean, x) and mean.data_ptr() != x.data_ptr() and not mean.requires_grad


def test_mean_in_a_job_needs_a_communicator(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    with pytest.raises(FtnPytorchError, match="all_reduce_mean needs a process group.*communicator=") as failure:
        ftn_pytorch.all_reduce_mean(torch.ones(3))
    assert failure.value.status == "ARGUMENT"


def test_broadcast_needs_a_communicator():
    with pytest.raises(FtnPytorchError, match="broadcast needs a process group.*communicator=") as failure:
        ftn_pytorch.broadcast(torch.nn.Linear(2, 2))
    assert failure.value.status == "ARGUMENT"


def test_parts_of_the_kit_over_ranks_outside_of_mpi(tmp_path, monkeypatch, fails):
    from ftn_pytorch.kit import Guard, Log, Normaliser

    x = torch.randn(20, 2, dtype=torch.float64)
    over, alone = Normaliser(2, over_ranks=True), Normaliser(2)
    for batch in x.split([3, 0, 17]):
        over.update(batch), alone.update(batch)
    torch.testing.assert_close(over.std, alone.std, rtol=1e-14, atol=0)
    guard = Guard(over_ranks=True)
    assert guard.allows(torch.tensor(2.0), samples=3) and guard.loss == 2.0
    log = Log(str(tmp_path / "log.csv"), over_ranks=True)
    log.write(1, loss=guard.loss)
    log.flush()
    assert (tmp_path / "log.csv").read_text() == "step,loss\n1,2.0\n"
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    with fails("ARGUMENT", "Guard.allows needs a process group", "communicator="):
        guard.allows(1.0)
