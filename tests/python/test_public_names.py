# SPDX-License-Identifier: MIT
"""What scripts import: ``ftn_pytorch`` shows its names, and importing it imports nothing that they need."""

import ftn_pytorch

KIT = {
    *("Average", "Background", "Guard", "LearntRange", "Log", "Normaliser", "NStep", "Online"),
    *("Replay", "ReplayData", "Rollout"),
}
NAMES = {
    *("Checkpoint", "average_gradients", "init_process_group", "lock", "procedure", "rank", "recorded"),
    *("all_reduce_mean", "broadcast", "host"),
    *("load_recording", "require_equal", "save_recording", "world_size"),
}


def test_public_names_are_shown_and_there():
    assert set(dir(ftn_pytorch)) == {*NAMES, "kit", "__version__"}
    assert all(callable(getattr(ftn_pytorch, name)) for name in NAMES)
    assert dir(ftn_pytorch.kit) == sorted(KIT)


def test_importing_it_imports_two_modules(python):
    code = "import sys, ftn_pytorch; print(*sorted(name for name in sys.modules if name.startswith('ftn_pytorch')))"
    assert python(code).split() == ["ftn_pytorch", "ftn_pytorch._version"]


def test_what_runs_models_imports_no_command(python):
    code = "import sys, ftn_pytorch._embed, ftn_pytorch.opening; print(*sys.modules)"
    names = python(code).split()
    assert "ftn_pytorch.runners.base" in names and "torch" not in names
    assert not [name for name in names if name.startswith("ftn_pytorch.runners.models")]
    assert not [name for name in names if name.startswith("ftn_pytorch.commands")]
