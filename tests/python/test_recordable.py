# SPDX-License-Identifier: MIT
"""Steps as users write them are recorded, with the numbers of plain Python: refusing state must not refuse them."""

import pytest

pytest.importorskip("torch")

from recorded_attack import recordable  # noqa: E402
from recorded_attack.running import verdict  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")


@pytest.mark.parametrize("name", recordable())
def test_steps_that_are_recorded(name):
    kind, text, is_ready = verdict(recordable()[name], calls=16)
    assert kind == "recorded" and is_ready, f"{kind}: {text}"
