# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch pack``, and programs with FTN_PYTORCH_PACK. Which modules come from a pack: tests/python."""

import pytest

SCRIPT = """
import numpy
import helper

ftn_pytorch_shapes = {"x": ("n", 3)}

def ftn_pytorch_forward(x):
    return 2 * helper.same(numpy.asarray(x))

def ftn_pytorch_train(x, target):
    return False, float(abs(x - target).sum()) + 0.5
"""
LATE = """
def ftn_pytorch_forward(x):
    import colorsys
    return 3 * x
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "helper.py").write_text("def same(x):\n    return x\n")
    path = tmp_path / "closure.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def pack(command, build_dir, tmp_path):
    """pack(*arguments, code=0): the finished command; the library is that of the build."""

    def pack(*arguments, code=0):
        environment = {"ftn_pytorch_ROOT": str(build_dir)}
        return command("pack", *arguments, code=code, environment=environment, cwd=tmp_path, cold=True)

    return pack


@pytest.fixture
def file(pack, script, tmp_path):
    pack(script)
    return tmp_path / "closure.pack"


def test_a_program_has_the_same_numbers(run, pack, script, tmp_path):
    told = pack(script).stdout
    file = tmp_path / "closure.pack"
    assert f"{file}: " in told and "of a load and ftn_pytorch_forward and ftn_pytorch_train" in told
    assert f"export FTN_PYTORCH_PACK={file}" in told
    words = ("warnings", f"load={script}", "forward", "train")
    plain, packed = run(*words), run(*words, PACK=file, LOG="info")
    assert plain.stdout == packed.stdout and "forward FTN_PYTORCH_OK 12" in packed.stdout
    assert f"modules come from {file}, which has " in packed.stderr and "warning" not in packed.stderr
    (tmp_path / "helper.py").write_text("def same(x):\n    return x + 1\n")
    script.write_text(SCRIPT.replace("2 *", "3 *"))
    edited = run(*words, PACK=file)
    assert "forward FTN_PYTORCH_OK 21" in edited.stdout and "warning" not in edited.stderr


@pytest.mark.parametrize("content, status", [(None, "FILE"), (b"import os\n", "FORMAT"), (b"", "FORMAT")])
def test_what_is_no_pack_is_an_error(run, script, tmp_path, content, status):
    file = tmp_path / "other.pack"
    if content is not None:
        file.write_bytes(content)
    told = run(f"load={script}", "init", PACK=file).stdout
    assert told.count(f"FTN_PYTORCH_ERR_{status} ") == 2 and told.count(f"FTN_PYTORCH_PACK is '{file}'") == 2
    assert "unset FTN_PYTORCH_PACK" in told


def test_a_pack_that_does_not_fit_is_passed_over(run, script, file):
    file.write_bytes(file.read_bytes().replace(b"Python 3", b"Python 2", 1))
    words = ("warnings", f"load={script}", f"load={script}", "forward")
    done = run(*words, PACK=file)
    assert "forward FTN_PYTORCH_OK 12" in done.stdout
    assert done.stderr.count("warning") == 1 and "it was made with Python 2" in done.stderr
    ranks = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}
    assert "warning" not in run(*words, PACK=file, environment=ranks).stderr


def test_a_python_that_the_program_has_started_is_left_alone(command, build_dir, script, tmp_path):
    variables = {"ftn_pytorch_ROOT": str(build_dir), "FTN_PYTORCH_PACK": "nowhere"}
    command("check", script, "--input", "2x3", environment=variables, cwd=tmp_path)


def test_calls_are_made_where_arrays_are_known(pack, tmp_path):
    late = tmp_path / "too late.py"
    late.write_text(LATE)
    file = tmp_path / "too late.pack"
    told = pack(late).stdout
    assert "of a load and no call: give --input, or declare ftn_pytorch_shapes" in told
    assert told.endswith(f"\nexport FTN_PYTORCH_PACK='{file}'\n"), "for a shell"
    assert b"colorsys.py" not in file.read_bytes()
    refused = pack(late, code=2)
    assert "FTN_PYTORCH_ERR_FILE" in refused.stderr and "is there already: name the file" in refused.stderr
    assert "of a load and ftn_pytorch_forward\n" in pack(late, "--input", "2x3", "-o", file).stdout
    assert b"colorsys.py" in file.read_bytes()


def test_a_script_that_fails_makes_no_pack(pack, tmp_path):
    late = tmp_path / "late.py"
    late.write_text(LATE.replace("colorsys", "no_such_module"))
    assert "no_such_module" in pack(late, "--input", "2x3", code=2).stderr
    assert not (tmp_path / "late.pack").exists()


def test_the_doctor_tells(command, file, tmp_path):
    def told(code=0):
        return command("doctor", environment={"FTN_PYTORCH_PACK": str(file)}, code=code).stdout

    assert f"ok    pack: {file}, " in told() and f"modules of {tmp_path / 'closure.py'}" in told()
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"ftn_pytorch 0", b"ftn_pytorch 9", 1))
    assert "note  pack: " in told() and "it was made with ftn_pytorch 9" in told()
    file.write_bytes(whole[:-1])
    assert "wrong pack: " in told(code=1)
