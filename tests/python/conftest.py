# SPDX-License-Identifier: MIT
"""Fixtures for tests of the Python layer: scripts in a folder of their own, and failures as the library sees them."""

import contextlib
import fcntl
import os
import subprocess
import sys
import textwrap
import weakref

import pytest
from warm import run as run_warm

import program
from ftn_pytorch.ranks import communicator
from ftn_pytorch.ranks import mpi as calls_of_mpi
from ftn_pytorch.system import process
from played_mpi import Played


def pytest_configure(config):
    """A warning of the package that a test does not expect is a failure."""
    config.addinivalue_line("filterwarnings", "error::ftn_pytorch.system.process.FtnPytorchWarning")


@pytest.fixture(autouse=True)
def isolated(tmp_path):
    """Loading scripts changes sys.path, sys.modules and what was done once per process.

    Processes that the package starts come from a server that has imported torch, in place of importing it again.
    """
    before = set(sys.modules)
    # Not by monkeypatch, whose undo is for what the test has changed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        patch.setattr(process, "_state", process._State())
        if torch := sys.modules.get("torch"):
            get_context = torch.multiprocessing.get_context
            get_context("forkserver").set_forkserver_preload(["torch", "torch._dynamo"])
            warmer = {"spawn": "forkserver"}
            patch.setattr(torch.multiprocessing, "get_context", lambda way=None: get_context(warmer.get(way, way)))
        yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write(tmp_path):
    """write(name, text): a file in the test's folder, as a path."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


@pytest.fixture
def load(write):
    """load(text, config, **options): the runner of a script with that text."""

    def load(text, config=None, name="model.py", **options):
        return program.load(write(name, text), config, **options)

    return load


@pytest.fixture
def fails():
    """with fails(status, *pieces): the body fails with that status, and the text holds all pieces."""

    @contextlib.contextmanager
    def fails(status, *pieces):
        with pytest.raises(BaseException) as caught:
            yield
        found, text = program.describe_error(caught.value, "")
        assert found == status, text
        for piece in pieces:
            assert piece in text

    return fails


@pytest.fixture
def python():
    """python(code, *arguments): standard output of a fresh interpreter with the code; ``warm``: it imported torch."""

    def python(code, *arguments, warm=False):
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        words = ["-c", textwrap.dedent(code), *map(str, arguments)]
        environment = {**inherited, "PYTHONPATH": program.PYTHONPATH}
        if warm:
            done = run_warm(words, env=environment)
        else:
            command = [sys.executable, *words]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return python


@pytest.fixture
def extension(monkeypatch):
    """The extension that runs recordings, of the build under test; skips where that has none."""
    find_extension(monkeypatch)


@pytest.fixture(scope="module")
def extension_for_fixtures():
    """The same, for what is made once for a module."""
    with pytest.MonkeyPatch.context() as patch:
        find_extension(patch)
        yield


def find_extension(patch):
    pytest.importorskip("torch")
    from ftn_pytorch.system import extension

    patch.setenv("ftn_pytorch_ROOT", os.environ.get("FTN_PYTORCH_BUILD_DIR", ""))
    if extension.module() is None:
        # Not found by an earlier test, which did not name the build
        patch.setattr(extension._Found, "obstacle", None)
    if extension.obstacle():
        pytest.skip(extension.obstacle())


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    """model_file(source): a file of formats_models.SOURCES, made once for all workers, since some take a minute."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "formats"
    folder.mkdir(exist_ok=True)

    def model_file(source):
        import formats_models

        with open(folder / f"{source}.lock", "a+") as made:
            fcntl.flock(made, fcntl.LOCK_EX)
            made.seek(0)
            path = made.read()
            if not path:
                path = formats_models.write(source, folder)
                made.write(path)
        return path

    return model_file


@pytest.fixture
def mpi(monkeypatch):
    """An MPI that is played in this process, by which communicators work; its handles are names of ``played_mpi``."""
    played = Played()
    monkeypatch.setattr(calls_of_mpi, "library", lambda purpose: played)
    monkeypatch.setattr(communicator, "_known", weakref.WeakSet())  # modules of other tests may not be collected yet
    return played
