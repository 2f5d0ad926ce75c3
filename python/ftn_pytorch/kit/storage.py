# SPDX-License-Identifier: MIT
"""Memory for samples: of the process or of a file that is mapped, and samples as files for other programs."""

from __future__ import annotations

import functools
import mmap
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..checkpoint import file
from ..errors import FtnPytorchError, imported
from ..system import files, trial

HELD_OUT = "held_out_"
"""What the names of arrays begin with whose samples were held out."""


def in_memory(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    # Not of inference mode, whatever mode the first samples arrive in: they are trained on.
    with torch.inference_mode(False):
        return torch.empty(shape, dtype=dtype, device=device)


def in_file(shape: tuple[int, ...], dtype: torch.dtype, folder: str) -> torch.Tensor:
    """A tensor over a file without a name in ``folder``, which goes with the tensor or the process, however it ends.

    All of its place on the disk is taken now, so that no later write can find the disk full, which would be a signal.
    FILE if there is not enough.
    """
    count = torch.Size(shape).numel()
    size = max(count * dtype.itemsize, 1)
    try:
        with tempfile.TemporaryFile(dir=folder) as unnamed:
            os.posix_fallocate(unnamed.fileno(), 0, size)
            mapped = mmap.mmap(unnamed.fileno(), size)
    except OSError as failure:
        raise FtnPytorchError(
            "FILE",
            f"Replay cannot take {size / 1e6:.1f} MB in {folder}: {failure.strerror}. Make room, name another folder= "
            "or a smaller capacity. No sample has been added",
        ) from failure
    return torch.frombuffer(mapped, dtype=dtype, count=count).view(shape)


def too_large(given: torch.Tensor, kept: torch.dtype) -> Any:
    """A finite number that is outside of the range of ``kept``; None if there is none."""
    limits = _narrower(given.dtype, kept)
    if limits is None:
        return None
    numbers = torch.view_as_real(given) if given.is_complex() else given
    lowest, highest = torch.aminmax(numbers)
    # Most samples fit; a comparison with NaN is false.
    if lowest.item() >= limits.min and highest.item() <= limits.max:
        return None
    # Numbers beside the largest one are rounded to it; what is infinite, or not a number, stays so.
    narrow = numbers.to(getattr(torch, limits.dtype))
    changed = torch.isfinite(numbers) & ~torch.isfinite(narrow) if narrow.is_floating_point() else narrow != numbers
    found = numbers[changed]
    return found[0].item() if len(found) else None


@functools.cache
def _narrower(given: torch.dtype, kept: torch.dtype) -> Any:
    """What is known of numbers of ``kept``, if there are larger ones of ``given``; else None."""
    if torch.bool in (given, kept):
        return None
    own, limits = (
        torch.finfo(each) if each.is_floating_point or each.is_complex else torch.iinfo(each) for each in (given, kept)
    )
    return None if limits.min <= own.min and own.max <= limits.max else limits


def export(path: str | os.PathLike[str], arrays: Mapping[str, torch.Tensor]) -> None:
    """Write arrays by name, as NPZ or HDF5 by the ending of ``path``, completely or not at all; "%r" is the rank.

    Types that NumPy does not have, such as bfloat16, are written as float32, in which all their numbers are. In a job
    of several ranks the file tells who has written it, beside its arrays.

    ARGUMENT for another ending, IMPORT if h5py is needed and missing, FILE if it cannot be written, LOCKED if another
    process is writing it, or another rank of this job has.
    """
    write, owner_in = (_write_npz, file.owner_in) if _is_npz(path) else (_write_hdf5, _owner_in_hdf5)
    if trial.is_on():
        return
    target = file.resolve(path)
    numpy = {name: _in_numpy(each.cpu()) for name, each in arrays.items()}
    with file.locked(target, owner_in), files.completed(target) as part:
        write(part, numpy)


def _in_numpy(array: torch.Tensor) -> Any:
    try:
        return array.numpy()
    except TypeError:
        return array.to(torch.complex64 if array.is_complex() else torch.float32).numpy()


def load(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """The arrays by name of what ``export`` has written. ARGUMENT for another ending, IMPORT without h5py, FILE."""
    try:
        return {name: torch.from_numpy(each) for name, each in (_read_npz if _is_npz(path) else _read_hdf5)(path)}
    except (OSError, ValueError, zipfile.BadZipFile) as failure:
        raise FtnPytorchError("FILE", f"{path} cannot be read: {failure}") from failure


def _is_npz(path: str | os.PathLike[str]) -> bool:
    ending = os.path.splitext(path)[1].lower()
    if ending not in (".npz", ".h5", ".hdf5"):
        raise FtnPytorchError("ARGUMENT", f"{path} must end with .npz, .h5 or .hdf5, which says what it is")
    return ending == ".npz"


def _read_npz(path: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    import numpy

    with numpy.load(path) as arrays:
        yield from arrays.items()


def _read_hdf5(path: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    with _h5py().File(path, "r") as there:
        yield from ((name, each[()]) for name, each in there.items())


def _write_npz(path: str, arrays: Mapping) -> None:
    import numpy

    with open(path, "wb") as raw:
        numpy.savez(raw, **arrays)
        file.sign(raw)


def _write_hdf5(path: str, arrays: Mapping) -> None:
    with _h5py().File(path, "w") as written:
        for name, each in arrays.items():
            written[name] = each
        written.attrs.update(file.owner_in_job())


def _owner_in_hdf5(path: str) -> Any:
    try:
        with _h5py().File(path, "r") as there:
            return dict(there.attrs)
    except OSError:
        return None


def _h5py() -> Any:
    return imported("h5py", "an HDF5 file (NPZ needs nothing)", "h5py")
