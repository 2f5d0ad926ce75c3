# SPDX-License-Identifier: MIT
"""What the program tells scripts: in this process, in others, and in recorded functions."""

from __future__ import annotations

import pytest
import torch

import ftn_pytorch
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.system import host_values
from ftn_pytorch.system.process import FtnPytorchWarning


@pytest.fixture(autouse=True)
def told_nothing(monkeypatch):
    monkeypatch.setattr(host_values, "_values", {})
    monkeypatch.setattr(host_values, "_elsewhere", [])


def test_nothing_told_is_an_empty_dict():
    assert ftn_pytorch.host() == {}


def test_the_dict_belongs_to_who_asked():
    host_values.set_values({"step": 1})
    ftn_pytorch.host()["step"] = 2
    assert ftn_pytorch.host() == {"step": 1}


def test_values_are_added_and_replaced():
    host_values.set_values({"step": 1, "time": "early"})
    host_values.set_values({"step": 2})
    assert ftn_pytorch.host() == {"step": 2, "time": "early"}


def test_it_is_refused_in_another_process():
    host_values.is_elsewhere("the script runs in another process than the program")
    with pytest.raises(FtnPytorchError, match=r"not known here: the script runs in another process") as caught:
        ftn_pytorch.host()
    assert caught.value.status == "ARGUMENT"


@pytest.mark.usefixtures("extension")
def test_a_function_that_asks_is_not_recorded():
    @ftn_pytorch.recorded
    def scaled(x):
        return x * ftn_pytorch.host()["factor"]

    with pytest.warns(FtnPytorchWarning, match="it calls ftn_pytorch.host"):
        for factor in range(10):
            host_values.set_values({"factor": factor})
            assert scaled(torch.ones(3)).tolist() == [factor] * 3
