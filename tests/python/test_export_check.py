# SPDX-License-Identifier: MIT
"""What ``export`` compares a file with, and that a file which differs takes no place of another one."""

import os

import pytest

from ftn_pytorch import __main__

torch = pytest.importorskip("torch")

MODEL = """
    import torch
    class Dry(torch.nn.Module):
        '''A branch that numbers of the example hardly take, which TorchScript cannot read.'''
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)
        def forward(self, x, **options):
            if x.max() < -1:
                return torch.zeros(x.shape[0], 1)
            return self.layer(x)
    class Index(Dry):
        def forward(self, x, **options):
            return [x, -x][(x.sum() > 1000).long()]
    class Rows(Dry):
        '''Python asks for a size, and for a tensor that no input changes.'''
        def __init__(self):
            super().__init__()
            self.register_buffer("turned", torch.tensor(True))
        def forward(self, x, **options):
            if x.shape[1] > 2 and self.turned:
                x = x.view(int(x.shape[1] / 3), -1, 3) + torch.tensor([1.0, 2.0, 3.0])
            return self.layer(x[0])
    class Kept(torch.nn.Module):
        '''Another network for exporters, where numbers are large.'''
        def __init__(self, sign):
            super().__init__()
            self.sign = sign
        def forward(self, x):
            if torch.compiler.is_exporting():
                return x + 1
            return torch.where((self.sign * x).min() > 5, x, x + 1)
    class Faint(Kept):
        def forward(self, x):
            return x + 1 if torch.compiler.is_exporting() or x.abs().max() > 0.1 else x + 2
    class Far(torch.nn.Module):
        '''What is lost in single precision.'''
        def __init__(self):
            super().__init__()
            self.far = torch.nn.Parameter(torch.tensor(1e8 + 1, dtype=torch.float64))
        def forward(self, x):
            return x + (self.far - 1e8)
    class Guarded(torch.nn.Module):
        def forward(self, x):
            if (x > 5).all():
                raise ValueError("too large")
            return x
    class Doubling(torch.nn.Module):
        def forward(self, x):
            return x.mul_(2) + 1
    class Restrained(torch.nn.Module):
        def forward(self, x):
            return x * 2 if torch.compiler.is_exporting() else x.mul_(2)
    class Noisy(torch.nn.Module):
        def forward(self, x):
            return x + torch.rand_like(x)
    class Counting(torch.nn.Module):
        calls = 0
        def forward(self, x):
            self.calls += 1
            return x * self.calls
    class Turned(torch.nn.Module):
        def forward(self, x):
            return x.T.double() if torch.compiler.is_exporting() else x
    turned = Turned()
    doubling, restrained, noisy, counting = Doubling(), Restrained(), Noisy(), Counting()
    dry, index, rows, far, faint, guarded = Dry(), Index(), Rows(), Far(), Faint(1), Guarded()
    positive, negative = Kept(1), Kept(-1)
"""


@pytest.fixture
def command(write, tmp_path, monkeypatch, capsys):
    """command(name, *options): exit code, and what was written on both streams."""
    monkeypatch.chdir(tmp_path)
    write("model.py", MODEL)

    def command(name, *options):
        code = __main__.main(["export", f"model.py:{name}", "--input", "4x3", *options])
        return code, "".join(capsys.readouterr())

    return command


@pytest.mark.parametrize("how", [[], ["--trace"]])
@pytest.mark.parametrize(
    "name, text",
    [
        ("dry", "Converting a tensor to a Python boolean might cause the trace to be incorrect"),
        ("index", "__index__ gives Python a value that is computed from the inputs"),
    ],
)
def test_a_trace_that_has_one_way_of_a_branch_is_no_file(command, tmp_path, how, name, text):
    code, told = command(name, "--to", "pt", *how)
    assert code == 1 and "FAILED: for other inputs the trace may give other results" in told and text in told
    assert "model.pt was not written: there is no such file" in told
    assert [name for name in os.listdir(tmp_path) if name != "__pycache__"] == ["model.py"]


def test_a_trace_may_look_at_sizes_and_at_what_is_constant(command):
    code, told = command("rows", "--to", "pt", "--trace")
    assert code == 0, told


@pytest.mark.parametrize(
    "name, numbers",
    [("positive", "large positive numbers"), ("negative", "large negative numbers"), ("faint", "small numbers")],
)
def test_numbers_of_other_sign_and_size_are_compared(command, name, numbers):
    code, told = command(name, "--to", "pt2")
    assert code == 1 and "check: result 1: max error 0.0e+00" in told
    failed = [line for line in told.splitlines() if line.endswith("FAILED")]
    assert len(failed) == 1 and failed[0].startswith(f"check with {numbers}: result 1")


def test_numbers_that_the_script_refuses_are_not_compared(command):
    code, told = command("guarded", "--to", "pt")
    assert code == 0 and "with large positive numbers: not made, as the script refuses them: ValueError" in told


def test_nothing_is_converted_unless_that_is_asked_for(command):
    code, told = command("far", "--to", "pt2")
    assert code == 0 and told.count("tolerance 1.0e-12: ok") == 4
    assert torch.export.load("model.pt2").state_dict["far"].dtype == torch.float64


def test_a_converted_network_is_compared_with_what_it_was(command):
    code, told = command("far", "--to", "pt2", "--dtype", "float32")
    assert code == 1 and "check: result 1: max error 0.0e+00" in told
    assert "check, before --dtype: result 1: max error" in told and "tolerance 1.0e-05: FAILED" in told


def test_a_network_that_cannot_be_copied_is_not_converted(command, write):
    text = MODEL + "    far.lock = __import__('threading').Lock()\n"
    write("model.py", text)
    code, told = command("far", "--to", "pt2", "--dtype", "float32")
    assert code == 2 and "FTN_PYTORCH_ERR_FORMAT: the module cannot be copied" in told and "leave out --dtype" in told


@pytest.mark.parametrize("to", [["pt", "--trace"], ["pt2"], ["onnx"]])
def test_a_file_that_differs_leaves_the_older_one(command, tmp_path, to):
    if to == ["onnx"]:
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    (tmp_path / "good").write_text("good")
    code, told = command("dry" if to[0] == "pt" else "negative", "--to", *to, "-o", "good")
    assert code == 1 and "the file of that name is still the older one" in told
    assert (tmp_path / "good").read_text() == "good"
    assert sorted(name for name in os.listdir(tmp_path) if name != "__pycache__") == ["good", "model.py"]


# ---- networks that do more than give results


@pytest.mark.parametrize("to", ["pt", "pt2"])
def test_a_network_that_changes_its_input_is_compared_with_the_same_input(command, to):
    code, told = command("doubling", "--to", to)
    assert code == 0 and "check: the network changes input 1 in place, so does the file: pass it with torch_out" in told


def test_a_file_that_leaves_an_input_which_the_network_changes_differs(command, tmp_path):
    code, told = command("restrained", "--to", "pt2")
    assert code == 1 and "check: result 1: max error 0.0e+00, tolerance 1.0e-05: ok" in told
    assert "check: the network changes input 1 in place, and the file does not: FAILED. Let it change x.clone()" in told
    assert not (tmp_path / "model.pt2").exists()


@pytest.mark.parametrize("name", ["noisy", "counting"])
def test_a_network_with_other_results_in_each_call_is_said_to_have_them(command, name):
    code, told = command(name, "--to", "pt2")
    assert code == 1 and "the network gives other results when it is called again: it draws random numbers" in told
    code, told = command("positive", "--to", "pt2")
    assert code == 1 and "called again" not in told


def test_a_result_of_another_type_or_shape_is_said_to_be_so(command):
    code, told = command("turned", "--to", "pt2")
    assert code == 1 and "check: result 1 is float64 of shape (3, 4), not float32 of shape (4, 3): FAILED" in told
