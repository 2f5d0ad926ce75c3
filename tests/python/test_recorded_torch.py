# SPDX-License-Identifier: MIT
"""Functions of torch, and layers of torch.nn that train: recorded and from a file they give plain torch's bits."""

from collections import Counter

import pytest

pytest.importorskip("torch")

from promises.asked import verdict  # noqa: E402
from promises.plain import Numbers  # noqa: E402
from promises.tables import SPACES, functions, layers  # noqa: E402

pytestmark = [pytest.mark.usefixtures("extension"), pytest.mark.slow]


@pytest.mark.parametrize("space", [*SPACES, "torch.nn"])
def test_what_torch_has(space):
    counts, wrong = Counter(), []
    for script in functions(space) if space in SPACES else layers():
        for promise in ("recorded", "saved"):
            kind, text = verdict(script, promise)
            counts[promise, kind] += 1
            if kind == "wrong" and Numbers(script).seen != Numbers(script).seen:
                kind = "varies"  # as some kernels do, by the address of their memory
            if kind == "wrong":
                wrong.append(f"{promise}: {script.name}: {text}")
    assert not wrong, "\n".join(wrong)
    assert counts["recorded", "same"] > counts["recorded", "refused"], counts
