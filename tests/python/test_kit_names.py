# SPDX-License-Identifier: MIT
"""Parts of the kit by their names: all of them, and only when somebody asks."""

from ftn_pytorch import kit


def test_all_parts_come_by_a_star(python):
    code = "before = set(dir()); from ftn_pytorch.kit import *; print(*sorted(set(dir()) - before - {'before'}))"
    assert python(code, warm=True).split() == dir(kit)
