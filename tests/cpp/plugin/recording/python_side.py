# SPDX-License-Identifier: MIT
"""The Python side of files and folders that both languages use; test_checkpoint_folder.cpp and others run it.

python_side.py compare [<file of Python> <the same written by C++>]...
python_side.py write <folder> <step>      one checkpoint with the array a = step
python_side.py restore <folder>           prints the step of the newest, and its array a
python_side.py hold <folder>              writes step 1, prints "held", and keeps the lock until its input ends
python_side.py locked <folder>            prints why it cannot be written
"""

import sys

import torch

from ftn_pytorch.checkpoint import archive, file, folder
from ftn_pytorch.errors import FtnPytorchError


def write_file(path, step):
    def fill(stream):
        archive.write(stream, {}, {"a": torch.tensor(float(step))})

    file.write(path, {"step": step, "archive": "torch"}, fill)


def equal(left, right):
    """Whether two values of archives are the same, strides and sharing of tensors aside."""
    if isinstance(left, torch.Tensor):
        wide = torch.complex128 if left.is_complex() else torch.float64
        same = left.dtype == right.dtype and left.stride() == right.stride() and type(right) is torch.Tensor
        return same and torch.equal(left.to(wide), right.to(wide))
    if isinstance(left, dict):
        return list(left) == list(right) and all(equal(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and left == right


def compare(ours, theirs):
    with file.opened(ours) as (about, raw), file.opened(theirs) as (their_about, their_raw):
        assert about == their_about and file.kind(ours) == file.kind(theirs)
        left = torch.load(raw, weights_only=True)
        right = torch.load(their_raw, weights_only=True)
    assert equal(left, right), f"{left}\n{right}"
    arrays, their_arrays = left["arrays"], right["arrays"]
    for name in arrays:
        for other in arrays:
            shares = arrays[name].untyped_storage()._cdata == arrays[other].untyped_storage()._cdata
            assert shares == (
                their_arrays[name].untyped_storage()._cdata == their_arrays[other].untyped_storage()._cdata
            )
    # by its name alone, as users open it
    assert equal(left["arrays"], torch.load(theirs, weights_only=True)["arrays"])


def main(action, *arguments):
    if action == "compare":
        for ours, theirs in zip(arguments[::2], arguments[1::2], strict=True):
            compare(ours, theirs)
            print(theirs, "is the same")
    elif action == "write":
        folder.Session().write(arguments[0], 3, int(arguments[1]), write_file)
    elif action == "restore":
        newest = folder.candidates(arguments[0], None)[0]
        with file.opened(newest.path) as (_, raw):
            print(newest.step, torch.load(raw, weights_only=True)["arrays"]["a"].item())
    elif action == "hold":
        session = folder.Session()
        session.write(arguments[0], 3, 1, write_file)
        print("held", flush=True)
        sys.stdin.read()
    elif action == "locked":
        try:
            folder.Session().write(arguments[0], 3, None, write_file)
        except FtnPytorchError as failure:
            print(failure.status, failure)


if __name__ == "__main__":
    main(*sys.argv[1:])
