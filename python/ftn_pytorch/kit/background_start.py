# SPDX-License-Identifier: MIT
"""How a process that trains begins: torch is imported as ``load`` imports it, and modules come from the same pack.

What such a process is given comes as bytes, since reading them imports torch. Until a pack is in use, each module costs
operations on paths, so imports stand where they are needed.
"""

from __future__ import annotations

import contextlib
import pickle

from ..system import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def serve(pipe: Connection, pack_file: str | None, given: bytes) -> None:
    """What the child does until its parent is gone.

    ``given``: a pickled function that loads what is trained, and returns one that is called with the pipe.
    """
    if pack_file is not None:
        # The parent has told what is wrong with a pack.
        with contextlib.suppress(Exception):
            pack.use(pack_file)
    from ..system import host_values, quick_import

    host_values.is_elsewhere("the training runs in another process than the program")
    with quick_import.modules_of_frames_told():
        answers = pickle.loads(given)()
    answers(pipe)
