# SPDX-License-Identifier: MIT
"""Halos between GPUs, by NCCL: outputs and gradients of the whole domain, and recorded steps, which are CUDA graphs."""

from pathlib import Path

import pytest

from gradient_ranks import run

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")

BEGIN = f"""
    import json, sys
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import torch
    import halo_ranks
    from torch import distributed

    rank, size = int(sys.argv[1]), int(sys.argv[2])
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    distributed.init_process_group("nccl", init_method="file://" + sys.argv[3], rank=rank, world_size=size)


    def total(gradient):
        distributed.all_reduce(gradient)
        return gradient


    def end(answer):
        answers = [None] * size
        distributed.all_gather_object(answers, answer)
        print(json.dumps(answers))
        distributed.destroy_process_group()
"""

WHOLE = """
    kinds = ("closed", "periodic"), ("reflected", "periodic"), ("replicated", "closed"), ("periodic", "reflected")
    grids = ((2, 1), [7, 5], [12]), ((1, 2), [9], [8, 7])
    found = [halo_ranks.differences(rank, *grid, ends, total, "valid", device) for grid in grids for ends in kinds]
    end([max(each) for each in found])
"""


def test_a_cnn_over_two_gpus_is_that_of_the_whole(tmp_path):
    for differences in run(2, tmp_path, BEGIN + WHOLE):
        assert len(differences) == 8 and max(differences) < 1e-12


RECORDED = """
    torch.backends.cudnn.deterministic = True
    (plain, _), (kept, step) = (halo_ranks.trained(rank, size, keeps, device) for keeps in (False, True))
    assert step.recording.is_ready, step.recording.obstacle
    (variant,) = step.recording._ready
    facts = [plain[:2] == kept[:2], type(variant.runner).__name__, len(variant.runner._graphs) > 0]
    step.recording.reset()
    end(facts)
"""


def test_a_recorded_step_is_a_graph_with_the_bits_of_a_plain_one(tmp_path, extension):
    assert run(2, tmp_path, BEGIN + RECORDED) == [[True, "GraphReplay", True]] * 2
