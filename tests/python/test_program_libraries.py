# SPDX-License-Identifier: MIT
"""Numbers of torch that are looked at where the program has a BLAS, and modules that a library of it would reach."""

import types
from pathlib import Path

import pytest

from ftn_pytorch.system import program_libraries

torch = pytest.importorskip("torch")


class Other(types.SimpleNamespace):
    """torch with other functions in some places."""

    def __getattr__(self, name):
        return getattr(torch, name)


def wrong_for(dtype, function):
    """A function that is wrong for one type, as one name of a library may be."""
    return lambda *args: function(*args) + (1 if args[0].dtype == dtype else 0)


def test_right_numbers():
    assert program_libraries.wrong_function(torch) == ""


@pytest.mark.parametrize("name", ["mm", "bmm", "mv", "dot", "vdot"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
def test_each_function_and_type_is_looked_at(name, dtype):
    assert program_libraries.wrong_function(Other(**{name: wrong_for(dtype, getattr(torch, name))})) == name


def test_decompositions_are_looked_at():
    linalg = types.SimpleNamespace(cholesky_ex=lambda a: (torch.zeros_like(a), None))
    assert program_libraries.wrong_function(Other(linalg=linalg)) == "linalg.cholesky"


def test_nothing_of_torch_changes():
    def state():
        modes = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads())
        return (*modes, torch.get_default_device(), torch.random.get_rng_state().tolist())

    before = state()
    assert program_libraries.wrong_function(torch) == ""
    assert state() == before
    with torch.device("meta"), torch.inference_mode():
        torch.set_default_dtype(torch.float64)
        try:
            assert program_libraries.wrong_function(torch) == ""
        finally:
            torch.set_default_dtype(torch.float32)


def test_libraries_of_a_wheel(tmp_path: Path):
    """A module names a function itself, or a library beside its package does."""
    module = tmp_path / "reader" / "inner" / "files.so"
    module.parent.mkdir(parents=True)
    module.write_bytes(b"\x7fELF\0nc_open\0")
    bundled = tmp_path / "reader.libs" / "libhdf5-1234.so.310"
    bundled.parent.mkdir()
    bundled.write_bytes(b"\x7fELF\0H5open\0")
    watch = program_libraries._Modules({"H5open": "/usr/lib/libhdf5.so.103"}, "a reason")
    arguments = ("reader.inner.files", str(module), None, None, None)
    with pytest.raises(program_libraries.FtnPytorchError, match=r"reader\.inner\.files .*H5open of /usr/lib/libhdf5"):
        watch.event("import", arguments)
    program_libraries._Modules({"nc_close": "/usr/lib/libnetcdf.so.19"}, "a reason").event("import", arguments)
    watch.event("open", (str(module), "r", 0))
    # Needed by the name of the library that the program has: it is the same one.
    bundled.unlink()
    module.write_bytes(b"\x7fELF\0H5open\0libhdf5.so.103\0")
    watch.event("import", arguments)
