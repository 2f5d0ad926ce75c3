# SPDX-License-Identifier: MIT
"""Packs: modules come from them as they come from their files, and from their files wherever something has changed."""

import os
import textwrap

import pytest

# What a fresh interpreter does first: SITE is the folder with packages.
BEGIN = """
import os, sys, warnings
site, file = sys.argv[1:3]
sys.path[:] = [*filter(None, sys.path), site]  # without the working directory, as in programs
from ftn_pytorch.system import pack
"""
MAKE = """
folders = [folder for folder in sys.path if os.path.isabs(folder)]
from ftn_pytorch.commands.packed_modules import PackedModules
import alpha.part, beta, json, _json
with open(file, "wb") as stream:
    size = PackedModules(folders).write(stream, "/data/run/closure.py")
assert size == os.path.getsize(file)
"""
USE = """
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    pack.use(file)
    try:
        import alpha.part, beta, alpha, json
    finally:
        for each in told:
            print("warning:", each.message)
def way(module):
    return "pack" if type(module.__spec__.loader).__name__ == "_Loader" else "file"
"""
SHOW = USE + "print(way(alpha), alpha.part.value(), way(beta), beta.value, way(json))\n"


@pytest.fixture
def site(tmp_path):
    """A folder with an installed package, alpha, and with beta, which nobody has installed."""
    site = tmp_path / "site"
    for name, text in {
        "alpha/__init__.py": "",
        "alpha/part.py": "def value():\n    return 1\n",
        "alpha/data.txt": "numbers",
        "beta.py": "value = 1\n",
        "alpha-1.0.dist-info/RECORD": "alpha/__init__.py,sha256=0,0\nalpha/part.py,sha256=0,26\n",
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return site


@pytest.fixture
def run(python, site, tmp_path):
    """run(code, *arguments): what it prints in a fresh interpreter that may use the pack of these packages."""

    def run(code, *arguments):
        return python(BEGIN + textwrap.dedent(code), site, tmp_path / "x.pack", *arguments).strip()

    run(MAKE)
    return run


@pytest.fixture
def file(run, tmp_path):
    return tmp_path / "x.pack"


def changed(path, text):
    """Another content of the same length, at another time."""
    path.write_text(text)
    os.utime(path, ns=(1, 1))


def test_modules_are_what_they_are_without(run, site):
    code = """
        import inspect, importlib.resources, importlib.metadata
        for module in (alpha, alpha.part, beta):
            print(module.__file__, module.__spec__.origin, module.__cached__, getattr(module, "__path__", None))
            print(module.__name__, module.__package__, module.__spec__.submodule_search_locations)
        print(inspect.getsource(alpha.part.value), alpha.part.value.__code__.co_filename)
        print(importlib.resources.files("alpha").joinpath("data.txt").read_text(), sys.modules["_json"].__file__)
        print(importlib.util.find_spec("no.such") if importlib.util.find_spec("no") else None)
        try:
            import alpha.none
        except ModuleNotFoundError as failure:
            print(failure)
    """
    packed, plain = run(USE + textwrap.dedent(code)), run(USE.replace("pack.use(file)", "") + textwrap.dedent(code))
    assert packed == plain and "numbers" in packed and "No module named 'alpha.none'" in packed
    assert run(SHOW) == "pack 1 pack 1 pack"


def test_a_package_that_was_installed_anew(run, site):
    changed(site / "alpha" / "part.py", "def value():\n    return 2\n")
    assert run(SHOW) == "pack 1 pack 1 pack", "RECORD is what tells"
    record = site / "alpha-1.0.dist-info" / "RECORD"
    changed(record, record.read_text().replace("=0", "=1"))
    told = run(SHOW)
    assert f"a package has changed: {record}" in told and "Make it again: ftn_pytorch pack /data/run" in told
    assert told.count("warning:") == 1 and told.endswith("file 2 file 1 file")
    record.unlink()
    assert run(SHOW).endswith("file 2 file 1 file")


def test_a_copy_with_other_times_is_as_good(run, site):
    os.utime(site / "alpha-1.0.dist-info" / "RECORD", ns=(1, 1))
    os.utime(site / "beta.py", ns=(1, 1))
    os.utime(site, ns=(1, 1))
    assert run(SHOW) == "pack 1 pack 1 pack"


def test_a_file_of_no_package_that_was_changed(run, site):
    changed(site / "beta.py", "value = 2\n")
    told = run(SHOW)
    assert f"{site / 'beta.py'} has changed since it was made" in told
    assert told.count("warning:") == 1 and told.endswith("pack 1 file 2 pack")


@pytest.mark.parametrize("was, text", [(b"ftn_pytorch 0", "ftn_pytorch 9"), (b"Python 3", "Python 2")])
def test_another_version(run, file, was, text):
    file.write_bytes(file.read_bytes().replace(was, text.encode(), 1))
    told = run(SHOW)
    assert f"it was made with {text}" in told and told.endswith("file 1 file 1 file")


@pytest.mark.parametrize("name", ["prefix", "base_prefix"])
def test_another_environment(run, name):
    told = run(f"import sys\nsys.{name} = '/elsewhere'\n{SHOW}")
    assert f"it was made with {name} " in told and "here it is '/elsewhere'" in told
    assert told.endswith("file 1 file 1 file")


FAILS = """
from ftn_pytorch.errors import FtnPytorchError
try:
    pack.use(file)
except FtnPytorchError as failure:
    print(failure.status, failure.text)
assert pack.in_use() is None
"""


def test_what_is_no_whole_pack(run, file):
    whole = file.read_bytes()
    for length in (len(whole) - 1, len(whole) // 2, 150, 40):
        file.write_bytes(whole[:length])
        assert run(FAILS).startswith(f"CORRUPT FTN_PYTORCH_PACK is '{file}': it is cut off")
    damaged = bytearray(whole)
    damaged[whole.index(b"alpha.part") + 3] ^= 1
    file.write_bytes(damaged)
    assert "CORRUPT" in run(FAILS) and "damaged" in run(FAILS)
    for foreign in (b"", b"PK\3\4 something", b"ftn_pytorch pick\n"):
        file.write_bytes(foreign)
        assert run(FAILS).startswith("FORMAT") and "no file of ftn_pytorch pack" in run(FAILS)


def test_what_cannot_be_read(run, file):
    file.unlink()
    assert "FILE" in run(FAILS) and "No such file" in run(FAILS)
    file.mkdir()
    assert "it is no regular file" in run(FAILS)
    file.rmdir()
    os.mkfifo(file)
    assert "it is no regular file" in run(FAILS)


def test_damaged_code_is_not_run(run, file):
    *heading, rest = file.read_bytes().split(b"\n", 5)
    index_bytes = int(heading[4].split()[0])
    file.write_bytes(b"\n".join([*heading, rest[:index_bytes] + bytes(len(rest) - index_bytes)]))
    told = run(SHOW)
    assert "it is damaged, or was written to after the program" in told and told.endswith("pack 1 pack 1 pack")


def test_the_search_path_decides(run, tmp_path, site):
    other = tmp_path / "other"
    (other / "alpha").mkdir(parents=True)
    (other / "alpha" / "__init__.py").write_text("")
    (other / "alpha" / "part.py").write_text("def value():\n    return 3\n")
    show = SHOW.replace("pack.use(file)", "pack.use(file); sys.path.insert(0, sys.argv[3])")
    assert run(show, other).endswith("file 3 pack 1 pack")
    without = "pack.use(file)\nsys.path.remove(site)\nimport alpha\n"
    assert "No module named 'alpha'" in run(f"try:\n  exec({without!r})\nexcept ImportError as failure: print(failure)")
    # A later installation into a folder that is searched before.
    (site / "json.py").write_text("")
    assert run(SHOW) == "pack 1 pack 1 pack", "that of Python comes first"
    first = "site, sys.path[:] = site, [site, *sys.path[:-1]]\n"
    assert run(first + SHOW) == "pack 1 pack 1 file"
    # A place that cannot be looked into may hold anything.
    relative = SHOW.replace("pack.use(file)", "pack.use(file); sys.path.insert(0, '')")
    assert run(relative).endswith("file 1 file 1 file")


def test_finders_are_asked_to_look_again(run, tmp_path):
    late = """
        import importlib.util
        pack.use(file)
        sys.path.insert(0, sys.argv[3])
        print(importlib.util.find_spec("beta").origin)
        with open(os.path.join(sys.argv[3], "beta.py"), "w"): pass
        importlib.invalidate_caches()
        print(importlib.util.find_spec("beta").origin)
    """
    (tmp_path / "late").mkdir()
    first, second = run(late, tmp_path / "late").split()
    assert first.endswith("site/beta.py") and second == str(tmp_path / "late" / "beta.py")


def test_what_is_not_searched_by_programs_is_not_packed(run, tmp_path):
    show = """
        sys.path.insert(0, sys.argv[3])
        import near, nearby.part, alpha
        from ftn_pytorch.commands.packed_modules import PackedModules
        packed = PackedModules([site]).modules
        print(sorted(packed))
    """
    beside = tmp_path / "beside"
    (beside / "nearby").mkdir(parents=True)
    for name in ("near.py", "nearby/__init__.py", "nearby/part.py"):
        (beside / name).write_text("")
    assert run(show, beside) == "['alpha']"
