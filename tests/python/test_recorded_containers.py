# SPDX-License-Identifier: MIT
"""Nothing is written where a recording has no room."""

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch.recording import extension  # noqa: E402
from ftn_pytorch.recording.following import Known  # noqa: E402
from ftn_pytorch.recording.recorded_call import record  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")


@pytest.mark.parametrize("count", [0, 1, 3, 300])
def test_a_recording_with_another_number_of_tensors_is_not_run(count):
    def double(x, y):
        return x * y

    given = (torch.ones(2), torch.ones(2))
    _, tape = record(double, given, {}, (), frozenset(), Known())
    others = tuple(torch.ones(2) for _ in range(count))
    replay = extension.module().Replay(others, {}, tape)
    for run in (lambda: replay.run(others, {}), lambda: replay.launch(list(others), [], False)):
        with pytest.raises(ValueError, match=f"a recording of 2 tensors is given {count}"):
            run()
