# SPDX-License-Identifier: MIT
"""The command that exports. What it writes is compared with eager torch in test_formats_cells.py, too."""

import argparse
import importlib.util
import os
import sys

import pytest

import program
from ftn_pytorch import __main__
from ftn_pytorch.commands import export
from ftn_pytorch.errors import FtnPytorchError

torch = pytest.importorskip("torch")

MODEL = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)
        def forward(self, x): return self.linear(x)
    class Random(torch.nn.Module):
        def forward(self, x): return x + torch.rand_like(x)
    class Branch(torch.nn.Module):
        def forward(self, x): return x if x.sum() > 1000 else (x + 1 if x.shape[0] > 0 else x)
    class Loops(torch.nn.Module):
        def forward(self, x): return next(iter({"y": x + 1}.values()), None)
    class Pairs(torch.nn.Module):
        def forward(self, x):
            torch._check(x.shape[0] >= 2)
            return x + 1
    class Sized(torch.nn.Module):
        def forward(self, x): return torch.stack([x[i] for i in range(x.shape[0])]) + x
    def build_model(): return Net()
    def pairs(): return Pairs()
    def random(): return Random()
    def branch(): return Branch()
    def loops(): return Loops()
    def fails(): raise ValueError("no weights")
    def none(): return None
    net = Net()
    number = 3
"""


@pytest.fixture
def command(write, tmp_path, monkeypatch, capsys):
    """command(name, *options): exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    write("model.py", MODEL)

    def command(name, *options):
        code = __main__.main(["export", f"model.py:{name}", *options])
        return (code, *capsys.readouterr())

    return command


@pytest.mark.parametrize("name", ["build_model", "net"])
@pytest.mark.parametrize(("to", "words"), [("pt", "scripted TorchScript"), ("pt2", "torch.export")])
def test_file_is_written_and_checked(command, tmp_path, name, to, words):
    code, out, err = command(name, "--input", "4x3", "--to", to)
    assert (code, err) == (0, "")
    assert words in out
    assert "max error" in out
    assert "tolerance 1.0e-05: ok" in out
    assert sorted(os.listdir(tmp_path)) == [f"model.{to}", "model.py"]


@pytest.mark.parametrize("how", [[], ["--trace"]])
@pytest.mark.parametrize("trainable", [False, True])
def test_parameters_can_be_trained_if_that_is_asked_for(command, tmp_path, how, trainable):
    assert command("net", "--input", "4x3", "--to", "pt", *how, *["--trainable"] * trainable)[0] == 0
    parameters = list(torch.jit.load(tmp_path / "model.pt").parameters())
    assert [parameter.requires_grad for parameter in parameters] == [trainable] * 2


def test_dtype_is_that_of_inputs_and_parameters(command):
    code, out, _ = command("net", "--input", "4x3", "--to", "pt", "--dtype", "float64")
    assert code == 0
    assert "tolerance 1.0e-12: ok" in out


def test_dynamic_batch_is_checked_with_other_sizes(command, tmp_path):
    code, out, _ = command("net", "--input", "4x3", "--to", "pt2", "--dynamic-batch", "--output", "deep.pt2")
    assert code == 0
    assert "with 7 rows: result 1" in out and "with 1 row: result 1" in out
    assert (tmp_path / "deep.pt2").exists()


def test_a_network_that_wants_two_rows_is_exported_and_that_is_said(command):
    code, out, err = command("pairs", "--input", "4x3", "--to", "pt2", "--dynamic-batch")
    assert code == 0
    assert "with 7 rows: result 1" in out
    assert "check with 1 row: not made, as the script refuses them: " in err


def test_what_cannot_be_scripted_is_traced(command):
    code, out, _ = command("loops", "--input", "4x3", "--to", "pt")
    assert code == 0
    assert "traced TorchScript model (torch.jit.script cannot do it" in out


def test_results_that_differ_fail(command):
    code, out, err = command("random", "--input", "4x3", "--to", "pt2")
    assert code == 1
    assert "FAILED" in err


def test_tolerance_can_be_given(command):
    assert command("random", "--input", "4x3", "--to", "pt2", "--tolerance", "2")[0] == 0
    assert command("random", "--input", "4x3", "--to", "pt2", "--tolerance", "1e-9", "--output", "model.pt2")[0] == 1


@pytest.mark.parametrize(
    ("name", "options", "pieces"),
    [
        ("biuld_model", ["--input", "4x3", "--to", "pt"], ("has no 'biuld_model'", "build_model")),
        ("number", ["--input", "4x3", "--to", "pt"], ("of type int",)),
        ("none", ["--input", "4x3", "--to", "pt"], ("gave a NoneType",)),
        ("fails", ["--input", "4x3", "--to", "pt"], ("ValueError: no weights",)),
        ("net", ["--input", "4x4", "--to", "pt"], ("cannot be called with inputs 4x4", "RuntimeError")),
        ("net", ["--input", "4*3", "--to", "pt"], ("4*3", "32x16:int64")),
        ("net", ["--input", "4x0", "--to", "pt"], ("4x0",)),
        ("net", ["--input", "9999999999x9999999999", "--to", "pt"], ("no memory holds that many elements",)),
        ("net", ["--input", "1000000000000000x3", "--to", "pt"], ("FTN_PYTORCH_ERR_MEMORY", "allocate")),
        ("net", ["--input", "4x3:real", "--to", "pt"], ("'real'", "float32")),
        ("net", ["--input", "4x3", "--to", "pt", "--dtype", "int64"], ("--dtype int64",)),
        ("net", ["--input", "scalar", "--to", "pt2", "--dynamic-batch"], ("--dynamic-batch: no --input has an axis",)),
        ("net", ["--input", "4x3", "--to", "pt", "--aot"], ("--to pt2",)),
        ("net", ["--input", "4x3", "--to", "pt2", "--trace"], ("--to pt",)),
        ("net", ["--input", "4x3", "--to", "onnx", "--trainable"], ("--to pt",)),
        ("net", ["--input", "4x3", "--to", "pt", "--tolerance", "nan"], ("--tolerance nan", "from 0 on")),
        ("net", ["--input", "4x3", "--to", "pt", "--output", "nowhere/net.pt"], ("there is no folder", "nowhere")),
        ("branch", ["--input", "4x3", "--to", "pt2"], ("torch cannot export this module to pt2",)),
    ],
)
def test_mistakes_are_told_and_leave_nothing_behind(command, tmp_path, name, options, pieces):
    code, out, err = command(name, *options)
    assert code == 2 and out == "" and err.startswith("export: ")
    for piece in pieces:
        assert piece in err
    assert os.listdir(tmp_path) == ["model.py"]


@pytest.mark.parametrize("source", ["model.py", "model.py:", ":net", "nowhere.py:net"])
def test_source_that_names_nothing_is_refused(command, tmp_path, capsys, source):
    assert __main__.main(["export", source, "--input", "4x3", "--to", "pt"]) == 2
    assert "export: " in capsys.readouterr().err


def test_missing_packages_are_told(command, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxscript" else find_spec(name))
    code, _, err = command("net", "--input", "4x3", "--to", "onnx")
    assert code == 2
    assert "pip install onnxscript" in err


def test_usage_is_told(capsys):
    for arguments in ([], ["export"], ["export", "model.py:net", "--to", "exe"], ["--cmakedir", "diagnose"]):
        with pytest.raises(SystemExit) as exit:
            __main__.main(arguments)
        assert exit.value.code == 2
    assert "--version, --prefix, --cmakedir, --pkgconfigdir, doctor, check, export" in capsys.readouterr().err


def test_scalars_and_types_of_inputs():
    assert export.InputSpec.parse("scalar:bool", "float32") == export.InputSpec((), "bool")
    assert export.InputSpec.parse("32x16", "float64") == export.InputSpec((32, 16), "float64")
    with pytest.raises(FtnPytorchError):
        export.InputSpec.parse("", "float32")
    assert export.InputSpec((), "bool").example(torch, 5).shape == ()
    assert set(export.InputSpec((200,), "int64").example(torch).tolist()) == {0, 1}
    assert not export.InputSpec((3, 200), "int64").example(torch, 1).any()
    assert export.InputSpec((3, 200), "bool").example(torch, 1).any()


def test_what_is_there_is_replaced_only_by_name(command, tmp_path):
    """It may be the parameters that the script reads."""
    (tmp_path / "model.pt").write_bytes(b"parameters")
    code, _, err = command("net", "--input", "4x3", "--to", "pt")
    assert code == 2 and "model.pt is there already" in err and "--output" in err
    assert (tmp_path / "model.pt").read_bytes() == b"parameters"
    assert command("net", "--input", "4x3", "--to", "pt", "--output", "model.pt")[0] == 0
    assert (tmp_path / "model.pt").stat().st_size > 1000


@pytest.mark.parametrize("place", ["no/x.pt", "folder", "model.py"])
def test_the_place_is_looked_at_before_the_script_runs(command, tmp_path, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "model.py").write_text("raise RuntimeError('it was run')")
    code, _, err = command("net", "--input", "4x3", "--to", "pt", "--output", place)
    assert code == 2 and "FTN_PYTORCH_ERR_FILE" in err and "it was run" not in err


def test_options_have_help():
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    assert all(action.help for action in parser._actions)


def test_traced_model_that_kept_its_size_is_told(command):
    code, out, err = command("Sized", "--input", "4x3", "--to", "pt", "--trace", "--dynamic-batch")
    assert code == 1
    assert "check: result 1" in out
    assert "check with 7 rows: FAILED: RuntimeError" in err and "kept the size of its example" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_restored_network_is_exported(write, tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    write(
        "trained.py",
        """
        import torch
        def ftn_pytorch_setup(width):
            global net
            net = torch.nn.Linear(3, width)
        def build(): return net
    """,
    )
    runner = program.load("trained.py", {"width": 2})
    net = runner.require("net")
    with torch.no_grad():
        net.weight.fill_(7)
    if kind == "folder":
        program.checkpoint(runner, "state")
    else:
        program.save(runner, "state")
    options = ["--input", "4x3", "--to", "pt2", "--output", "net.pt2", "--checkpoint"]
    assert __main__.main(["export", "trained.py:net", *options, "state"]) == 0
    found = program.call(program.load_model("net.pt2"), "ftn_pytorch_forward", torch.ones(4, 3))
    assert torch.allclose(found, net(torch.ones(4, 3)))
    assert (found > 20).all()
    capsys.readouterr()
    assert __main__.main(["export", "trained.py:build", *options, "state"]) == 2
    assert "name the network that the script keeps" in capsys.readouterr().err
    assert __main__.main(["export", "trained.py:net", *options, "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err


def test_what_the_setup_hook_loads_is_exported(write, tmp_path, monkeypatch, capsys):
    """A network that is written as the script makes it before its setup would be untrained, and nothing would tell."""
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": torch.full((1, 2), 3.0), "bias": torch.zeros(1)}, "weights.pt")
    text = """
        import torch
        net = torch.nn.Linear(2, 1)
        def ftn_pytorch_setup(weights):
            net.load_state_dict(torch.load(weights))
    """
    write("trained.py", text)
    options = ["trained.py:net", "--input", "4x2"]
    assert __main__.main(["export", *options, "--to", "pt2", "--config", "weights=weights.pt"]) == 0
    found = program.call(program.load_model("trained.pt2"), "ftn_pytorch_forward", torch.ones(4, 2))
    assert torch.equal(found, torch.full((4, 1), 6.0))
    capsys.readouterr()
    assert __main__.main(["export", *options, "--to", "pt2", "--output", "trained.pt2"]) == 2
    assert "FTN_PYTORCH_ERR_SIGNATURE" in capsys.readouterr().err


def test_network_that_another_process_trained_is_exported(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(
        "trained.py",
        """
        import torch
        net = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        def ftn_pytorch_train(x, target):
            loss = (net(x) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return False, loss
    """,
    )
    runner = program.load("trained.py", background=True)
    background = runner._background
    for _ in range(3):
        program.call(runner, "ftn_pytorch_train", torch.ones(4, 3), 7 * torch.ones(4, 2))
    background.flush()
    program.save(runner, "state")
    background.stop()
    options = ["--input", "4x3", "--to", "pt2", "--output", "net.pt2", "--checkpoint", "state"]
    assert __main__.main(["export", "trained.py:net", *options]) == 0
    found = program.call(program.load_model("net.pt2"), "ftn_pytorch_forward", torch.ones(4, 3))
    assert torch.allclose(found, runner.require("net")(torch.ones(4, 3)))


def test_a_script_finds_no_arguments_of_the_command(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(
        "parses.py",
        """
        import argparse
        import torch

        parser = argparse.ArgumentParser()
        parser.add_argument("--width", type=int, default=3)
        net = torch.nn.Linear(parser.parse_args().width, 1)
        """,
    )
    words = ["export", "parses.py:net", "--to", "pt2", "--input", "4x3"]
    monkeypatch.setattr("sys.argv", ["ftn_pytorch", *words])
    assert __main__.main(words) == 0
    assert sys.argv[1:] == words
