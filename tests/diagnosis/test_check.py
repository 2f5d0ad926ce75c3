# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch check``: hooks called through the library, without a Fortran program, and their times."""

import json
import os
from pathlib import Path

import pytest
import warm

SCRIPT = """
import torch

torch.manual_seed(1)
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
gain = 1.0

def ftn_pytorch_setup(factor=1.0):
    global gain
    gain = factor

def ftn_pytorch_forward(x):
    return gain * net(x)

def ftn_pytorch_train(x, target):
    loss = torch.nn.functional.mse_loss(net(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return False, loss
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "closure.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def run(command, build_dir, tmp_path):
    """run(subcommand, *arguments, code=0): what it wrote; the library is that of the build."""

    def run(*arguments, code=0):
        library = {"ftn_pytorch_ROOT": str(build_dir), "TMPDIR": str(tmp_path)}
        return command(*arguments, code=code, environment=library, cwd=tmp_path)

    return run


@pytest.fixture
def python_here(tmp_path):
    """python_here(code): run it in the folder of the script, as a program would."""

    def python_here(code):
        package = Path(__file__).resolve().parents[2] / "python"
        variables = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{tmp_path}"}
        done = warm.run(["-c", code], env=variables, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr

    return python_here


def checked(run, *arguments, code=0) -> dict:
    return json.loads(run("check", *arguments, "--json", code=code).stdout)


def test_both_hooks_are_called(run, script) -> None:
    report = checked(run, script, "--input", "x=32x16")
    forward, train, other, other_train = report["calls"]
    assert forward["results"] == [{"name": "", "shape": [32, 4], "dtype": "float32"}] and forward["seconds"] > 0
    assert train["failure"] == "" and train["loss"] > 0 and train["finished"] is False and train["seconds"] > 0
    assert (
        other["is_reversed"] and "FTN_PYTORCH_ERR_PYTHON" in other["failure"] and "(16x32 and 16x4)" in other["failure"]
    )
    assert "not called" in other_train["failure"]
    assert report["is_fine"] and report["warnings"] == []
    assert report["functions"] == [
        "ftn_pytorch_setup(factor=1.0)",
        "ftn_pytorch_forward(x)",
        "ftn_pytorch_train(x, target)",
    ]


def test_text_for_people(run, script) -> None:
    text = run("check", script, "--input", "32x16").stdout
    assert "ftn_pytorch_forward(float32 (32, 16), Fortran (16, 32))" in text
    assert "result float32 (32, 4), Fortran (4, 32)" in text
    assert "with the axes the other way round:" in text and text.endswith("all calls went well\n")
    assert "Traceback" not in text, "the other order is expected to fail"


def test_a_failure_of_the_script_is_told_with_its_traceback(run, script) -> None:
    text = run("check", script, "--input", "32x15", code=1).stdout
    assert "Traceback" in text and "mat1 and mat2" in text and text.endswith("FAILED\n")


def test_outputs_that_the_program_would_pass(run, script) -> None:
    assert checked(run, script, "--input", "32x16", "--output", "32x4")["is_fine"]
    report = checked(run, script, "--input", "32x16", "--output", "4x32", code=1)
    assert "FTN_PYTORCH_ERR_SHAPE" in report["calls"][0]["failure"]
    script.write_text("import torch\ndef ftn_pytorch_forward(x, out): out.copy_(2 * x)\n")
    assert checked(run, script, "--input", "3", "--output", "3")["is_fine"]
    assert "FTN_PYTORCH_ERR_SIGNATURE" in checked(run, script, "--input", "3", code=1)["calls"][0]["failure"]


def test_results_of_all_kinds_and_a_class_that_prints(run, script) -> None:
    script.write_text(
        """
import torch

class Model:
    def __init__(self):
        self.net = torch.nn.Linear(16, 4)

    def forward(self, x):
        print("forward")
        return {"y": self.net(x), "n": 3, "text": "calm"}

    def train(self, x, target):
        return True, 0.5

model = Model()
ftn_pytorch_forward, ftn_pytorch_train = model.forward, model.train
"""
    )
    report = checked(run, script, "--input", "32x16")
    kinds = [(result["name"], result["dtype"]) for result in report["calls"][0]["results"]]
    assert kinds == [("y", "float32"), ("n", "number"), ("text", "text")] and report["calls"][1]["finished"]
    assert all(row["seconds"] > 0 for row in measured(run, script, "--input", "32x16")["rows"])


def test_checks_of_the_library_speak(run, script) -> None:
    script.write_text(SCRIPT.replace("return gain * net(x)", "x.mul_(2)\n    return net(x)"))
    report = checked(run, script, "--input", "32x16", code=1)
    assert "FTN_PYTORCH_ERR_INPUT_MODIFIED" in report["calls"][0]["failure"]


def test_double_precision_needs_the_option_of_load(run, script) -> None:
    report = checked(run, script, "--input", "32x16:float64", code=1)
    failure = report["calls"][0]["failure"]
    assert "same dtype" in failure and 'convert real arrays on their way in with load(..., dtype="float32")' in failure
    assert checked(run, script, "--input", "32x16:float64", "--dtype", "float32")["is_fine"]


def test_arrays_that_may_be_transposed_unnoticed(run, script) -> None:
    script.write_text("import torch\ndef ftn_pytorch_forward(x): return 2 * x\n")
    (warning,) = checked(run, script, "--input", "32x16")["warnings"]
    assert "Both orders of axes are accepted" in warning
    script.write_text(script.read_text() + "ftn_pytorch_shapes = {'x': ('n', 16)}\n")
    assert checked(run, script, "--input", "32x16")["warnings"] == []


def test_shapes_in_the_order_of_fortran(run, script) -> None:
    report = checked(run, script, "--input", "16x32", code=1)
    assert any("The other order of axes works" in text for text in report["warnings"])


def test_targets_names_and_settings(run, script) -> None:
    report = checked(run, script, "--input", "x=32x16", "--target", "target=32x4", "--config", "factor=nan", code=0)
    assert report["calls"][1]["arguments"][1].startswith("target: float32 (32, 4)")
    report = checked(run, script, "--input", "y=32x16", code=1)
    assert "ftn_pytorch_forward(x) has no parameter 'y'" in report["calls"][0]["failure"]


def test_a_loss_that_is_not_finite(run, script) -> None:
    script.write_text(SCRIPT.replace("return False, loss", "return False, float('nan')"))
    assert any("the loss is nan" in text for text in checked(run, script, "--input", "32x16")["warnings"])


def test_saved_models(run, saved_model) -> None:
    report = checked(run, saved_model, "--input", "3x2:float64")
    assert report["backend"] == "torchscript" and report["calls"][0]["results"][0]["shape"] == [3, 2]


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("nowhere.py", "--input", "3"), "FTN_PYTORCH_ERR_FILE"),
        (("closure.py", "--input", "3x"), "give a shape such as 32x16"),
        (("closure.py", "--input", "3:float99"), "no type 'float99'"),
        (("closure.py", "--input", "3:bfloat16"), "Fortran has no such type"),
        (("closure.py", "--input", "a=3", "--input", "4"), "give each argument a name of its own"),
        (("closure.py", "--input", "1+1=3"), "is no name of a parameter"),
        (("closure.py", "--input", "3", "--config", "factor"), "write NAME=VALUE"),
        (("closure.py", "--input", "3", "--config", "colour=red"), "FTN_PYTORCH_ERR_SIGNATURE"),
        (("broken.py", "--input", "3"), "FTN_PYTORCH_ERR_SYNTAX"),
        (("empty.py", "--input", "3"), "defines neither ftn_pytorch_forward nor ftn_pytorch_train"),
    ],
)
def test_what_cannot_be_checked(run, script, arguments, text) -> None:
    script.with_name("broken.py").write_text("def f(:\n")
    script.with_name("empty.py").write_text("x = 1\n")
    assert text in run("check", *arguments, code=2).stderr


def test_library_that_is_not_there(command, script, tmp_path) -> None:
    package = tmp_path / "ftn_pytorch"
    package.symlink_to(Path(__file__).resolve().parents[2] / "python" / "ftn_pytorch")
    nowhere = dict.fromkeys(("ftn_pytorch_ROOT", "CMAKE_PREFIX_PATH"), "") | {"PYTHONPATH": str(tmp_path)}
    if "ftn_pytorch_ROOT" in os.environ:
        nowhere["ftn_pytorch_ROOT"] = str(tmp_path)
    text = command("check", script, "--input", "32x16", code=2, environment=nowhere, cwd=tmp_path).stderr
    assert "libftn_pytorch.so is not found" in text and "CMAKE_PREFIX_PATH" in text


def measured(run, *arguments) -> dict:
    return json.loads(run("check", "--time", *arguments, "--json").stdout)


def test_times_of_a_script(run, script, saved_model) -> None:
    report = measured(run, script, "--input", "32x16")
    assert report["parameters"] == 68 and report["parameter_bytes"] == 272
    assert report["flops"]["forward"] == 2 * 32 * 16 * 4 and report["flops"]["train"] > report["flops"]["forward"]
    rows = {(row["function"], row["path"]): row for row in report["rows"]}
    for path in ("Python", "ftn_pytorch", "ftn_pytorch, recorded"):
        assert rows["forward", path]["seconds"] > 0 and rows["train", path]["seconds"] > 0
    for path in ("Python", "TorchScript, direct", "TorchScript, python", "torch.export, python", "ONNX, python"):
        row = rows["net", path]
        assert row["note"] == "" and row["seconds"] > 0 and row["ratio"] > 0, path
    assert report["peak_memory"] > report["memory"] > 0 and report["load_seconds"] > 0
    assert report["machine"]["threads"] >= 1 and report["warnings"] == []


@pytest.mark.slow
def test_times_tell_what_is_not_recorded(run, script) -> None:
    script.write_text(SCRIPT.replace("return False, loss", "return loss.item() < 1e-9, loss"))
    report = measured(run, script, "--input", "32x16")
    assert "is not recorded: " in report["warnings"][0]
    row = report["rows"][-1]
    assert row["path"] == "ftn_pytorch, recorded" and row["seconds"] is None and "is not recorded" in row["note"]


def test_times_for_people_and_of_a_saved_model(run, saved_model) -> None:
    lines = run("check", "--time", saved_model, "--input", "3x2:float64").stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == ["direct", "python"]


@pytest.mark.slow
def test_times_say_why_a_path_is_missing(run, script) -> None:
    script.write_text(SCRIPT + "other = torch.nn.Linear(2, 2)\n")
    (row,) = (row for row in measured(run, script, "--input", "32x16")["rows"] if row["function"] == "network")
    assert row["note"] == "the script has net, other: choose one with --network"
    rows = measured(run, script, "--input", "32x16", "--network", "other")["rows"]
    (row,) = (row for row in rows if row["function"] == "other")
    assert "mat1 and mat2" in row["note"] and row["seconds"] is None
    text = run("check", "--time", script, "--input", "32x16", "--network", "none", code=2).stderr
    assert "--network none: the script has net, other" in text


def test_times_of_a_script_with_numpy(run, script) -> None:
    script.write_text("import numpy\ndef ftn_pytorch_forward(x): return 2 * x\n")
    report = measured(run, script, "--input", "32x16")
    assert [row["path"] for row in report["rows"]] == ["Python", "ftn_pytorch"]
    assert all(row["note"] == "" for row in report["rows"])


def test_times_tell_other_numbers(run, script) -> None:
    script.write_text("import torch\ndef ftn_pytorch_forward(x): return x + torch.rand(())\n")
    rows = measured(run, script, "--input", "32x16")["rows"]
    assert "draws random numbers" in rows[1]["note"]


def test_times_of_training_alone(run, script) -> None:
    script.write_text("def ftn_pytorch_train(x, target): return False, float(((x[:, :1] - target) ** 2).mean())\n")
    (row,) = measured(run, script, "--input", "32x16")["rows"]
    assert row["seconds"] is None and "name some with --target" in row["note"]
    for inputs in ("32x16", "x=32x16"):
        rows = measured(run, script, "--input", inputs, "--target", "32x1")["rows"]
        assert [row["path"] for row in rows] == ["Python", "ftn_pytorch"] and all(row["seconds"] > 0 for row in rows)
    rows = measured(run, script, "--input", "32x16", "--target", "2x2")["rows"]
    assert all("ValueError" in row["note"] and row["seconds"] is None for row in rows)


def test_times_of_a_function_that_fails_after_some_calls(run, script) -> None:
    script.write_text(
        "calls = []\ndef ftn_pytorch_forward(x):\n    calls.append(1)\n    return {1: x}[len(calls) < 9]\n"
    )
    rows = measured(run, script, "--input", "4")["rows"]
    assert [row["seconds"] for row in rows] == [None, None]
    assert all(row["note"].startswith("a later call failed: ") and "KeyError" in row["note"] for row in rows)


@pytest.fixture
def recording(run, script, tmp_path):
    """A saved recording of the script, for any batch size."""
    run("export", script, "--to", "recording", "--input", "32x16", "--target", "32x4", "--output", "closure.ftr")
    return tmp_path / "closure.ftr"


def test_a_saved_recording_is_described_unless_it_is_damaged(run, recording) -> None:
    lines = run("check", recording).stdout.splitlines()
    assert lines[0].startswith("closure.ftr: recorded from closure.py, torch 2.") and "bytes" in lines[0]
    assert lines[1].startswith("  ftn_pytorch_forward(x float32 (B, 16)): ") and "operators" in lines[1]
    assert lines[2].startswith("  ftn_pytorch_train(x float32 (B, 16), target float32 (B, 4)): ")
    assert lines[4].startswith("numbers of optimizers: optimizer.0.lr = 0.1") and lines[-1].endswith("operators fit")
    listed = run("check", recording, "--operators").stdout.splitlines()
    assert "       1 aten::mse_loss" in listed and set(lines) < set(listed)
    report = json.loads(run("check", recording, "--json").stdout)
    assert report["bytes"] == recording.stat().st_size and report["numbers"]["optimizer.0.lr"] == 0.1
    # Two parameters, their gradients, and the random state of NumPy in bytes.
    assert report["arrays"] == 5 and report["elements"] == 2 * 68 + 4 * 624
    assert report["functions"][0]["operators"]["aten::addmm"] == 1
    content = bytearray(recording.read_bytes())
    content[len(content) // 2] ^= 1
    recording.write_bytes(content)
    assert "FTN_PYTORCH_ERR_CORRUPT" in run("check", recording, code=1).stdout
    assert "FTN_PYTORCH_ERR_CORRUPT" in run("check", recording, "--input", "32x16", code=2).stderr


@pytest.mark.parametrize("name, text", [("net.pt", "give --input"), ("nowhere.ftr", "FTN_PYTORCH_ERR_FILE")])
def test_what_cannot_be_described(run, saved_model, name, text) -> None:
    saved_model.rename(saved_model.with_name("net.pt"))
    assert text in run("check", saved_model.with_name(name), code=2).stderr


def test_a_checkpoint_is_not_described(run, script, python_here, tmp_path) -> None:
    python_here("import closure, ftn_pytorch\nftn_pytorch.Checkpoint(net=closure.net).save('net.ckpt')")
    assert "holds parameters, but no program" in run("check", tmp_path / "net.ckpt", code=2).stderr


def test_a_saved_recording_is_checked(run, recording) -> None:
    report = checked(run, recording, "--input", "7x16")
    assert report["functions"][1].startswith("ftn_pytorch_train(x float32 (B, 16), target float32 (B, 4)): ")
    forward, train, other, _ = report["calls"]
    assert forward["results"][0]["shape"] == [7, 4] and forward["seconds"] > 0
    assert train["failure"] == "" and train["loss"] > 0 and train["finished"] is False
    assert "FTN_PYTORCH_ERR_SHAPE" in other["failure"] and "x float32 (B, 16)" in other["failure"]
    assert report["is_fine"] and report["warnings"] == []
    report = checked(run, recording, "--input", "7x16", "--target", "7x3", code=1)
    assert "FTN_PYTORCH_ERR_SHAPE" in report["calls"][1]["failure"] and not report["is_fine"]


def test_times_of_a_saved_recording(run, recording) -> None:
    rows = measured(run, recording, "--input", "32x16")["rows"]
    assert [(row["function"], row["path"]) for row in rows[1::2]] == [("forward", "python"), ("train", "python")]
    assert [row["path"] for row in rows] == ["direct", "python"] * 2
    assert all(row["seconds"] > 0 and row["note"] == "" for row in rows)
    (_, _, one, other) = measured(run, recording, "--input", "32x16", "--target", "32x3")["rows"]
    assert all(row["seconds"] is None and "its recordings take" in row["note"] for row in (one, other))


def test_arrays_that_the_script_declares(run, script) -> None:
    script.write_text(SCRIPT + "ftn_pytorch_shapes = {'x': ('n', 16)}\n")
    assert checked(run, script)["calls"][0]["arguments"] == ["x: float32 (8, 16), Fortran (16, 8)"]
    assert measured(run, script)["inputs"] == ["x=8x16:float32"]
    script.write_text(SCRIPT)
    for words in ((), ("--time",)):
        text = run("check", script, *words, code=2).stderr
        assert "FTN_PYTORCH_ERR_ARGUMENT: give --input, or declare ftn_pytorch_shapes" in text


def test_targets_that_a_script_declares_which_only_trains(run, script) -> None:
    shapes = "ftn_pytorch_shapes = {'x': (4, 16), 'target': (4, 1)}\n"
    script.write_text(shapes + "def ftn_pytorch_train(x, target): return False, float((x[:, :1] - target).sum())\n")
    train = checked(run, script)["calls"][0]
    assert train["arguments"] == ["x: float32 (4, 16), Fortran (16, 4)", "target: float32 (4, 1), Fortran (1, 4)"]
    assert train["failure"] == "" and train["finished"] is False


@pytest.mark.parametrize(
    "arguments, text",
    [
        (
            ("closure.py", "--input", "3", "--call", "0"),
            "--call is for a folder of recorded calls, and this is a scrip",
        ),
        (
            ("closure.py", "--input", "3", "--network", "net"),
            "--network is for --time, and this is a script or a saved",
        ),
        (
            ("closure.py", "--input", "3", "--time", "-o", "3"),
            "--output is for a script or a saved model, and this is -",
        ),
        ((".", "--dtype", "float32"), "and this is a folder of recorded calls"),
        (
            (".", "--json"),
            "--json is for --time or a saved recording without --input or a script or a saved model, and",
        ),
    ],
)
def test_options_that_are_for_something_else(run, script, arguments, text) -> None:
    told = run("check", *arguments, code=2).stderr
    assert "FTN_PYTORCH_ERR_ARGUMENT" in told and text in told


def test_former_names_say_the_new_one_once(run, script, tmp_path) -> None:
    run("export", script, "--to", "recording", "--input", "32x16", "--output", "closure.ftr")
    former = run("describe", "closure.ftr", "--json")
    assert former.stdout == run("check", "closure.ftr", "--json").stdout
    assert former.stderr.count("note: describe is check now") == 1
    former = run("replay", tmp_path, "--call", "2", code=2)
    assert former.stderr.count("note: replay is check now") == 1 and "holds no record.json" in former.stderr
    script.write_text("import numpy\ndef ftn_pytorch_forward(x): return 2 * x\n")
    former = run("bench", script, "--input", "32x16", "--json")
    assert [row["path"] for row in json.loads(former.stdout)["rows"]] == ["Python", "ftn_pytorch"]
    assert former.stderr.count("note: bench is check --time now") == 1
