# SPDX-License-Identifier: MIT
"""docs/ftr-format.md: its small file, and a reader written from the page, which gives the numbers of the library's."""

import json
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import ftr_cases  # noqa: E402
import ftr_reader  # noqa: E402
import ftr_written  # noqa: E402
from ftn_pytorch import __main__, load_recording, recorded, save_recording  # noqa: E402
from ftn_pytorch.errors import FtnPytorchError  # noqa: E402
from ftn_pytorch.saved import saved_recording  # noqa: E402
from ftr_cases import leaves  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ftr-format.md"
BEFORE = Path(__file__).parent / "recordings_of_before"


def is_same(one, other):
    """Bit for bit."""
    if isinstance(one, torch.Tensor):
        same = (one.dtype, one.shape) == (other.dtype, other.shape)
        return same and one.numpy().tobytes() == other.numpy().tobytes()
    return type(one) is type(other) and one == other


def compared(path, calls):
    """Both readers run the calls, one after the other."""
    ours = load_recording(path)
    results = [(leaves(ours.call(name, *(each.clone() for each in args))), ours.arrays) for name, args in calls]
    theirs = ftr_reader.File(path)
    for (name, args), (result, _) in zip(calls, results):
        assert all(map(is_same, result, leaves(theirs.call(name, *args)))), name
    found = {name: each for name, each in theirs.arrays.items() if name in ours.arrays}
    assert found.keys() == ours.arrays.keys()
    assert all(is_same(each, ours.arrays[name]) for name, each in found.items())
    return theirs


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize("make", ftr_cases.CASES, ids=lambda make: make.__name__)
def test_both_readers_give_the_same_bits(tmp_path, make):
    compared(*ftr_cases.saved(make, tmp_path))


@pytest.mark.usefixtures("extension")
def test_both_readers_give_the_same_bits_for_batches_of_any_size(tmp_path, write):
    script, path = write("any_batch_of_two.py", SCRIPT), str(tmp_path / "any.ftr")
    shapes = ["--input", "8x4", "--target", "8x3"]
    assert __main__.main(["export", script, "--to", "recording", *shapes, "--output", path]) == 0
    numbers, calls = torch.Generator().manual_seed(3), []
    for rows in (1, 2, 7, 65):
        x, target = torch.randn(rows, 4, generator=numbers), torch.randn(rows, 3, generator=numbers)
        calls += [("ftn_pytorch_train", (x, target)), ("ftn_pytorch_forward", (x.T.contiguous().T,))]
    compared(path, calls)


@pytest.mark.usefixtures("extension")
def test_both_readers_run_a_file_of_0_2_0():
    """Its numbers are those of one processor; the readers agree on any."""
    x = torch.arange(12.0).reshape(4, 3) / 10
    calls = [("ftn_pytorch_train", (x, x.sum(1, keepdim=True)))] * 3 + [("ftn_pytorch_forward", (x,))]
    compared(str(BEFORE / "0.2.0.ftr"), calls)
    expected, file = json.loads((BEFORE / "0.2.0.json").read_text()), ftr_reader.File(str(BEFORE / "0.2.0.ftr"))
    losses = [file.call(name, *args)[1].item() for name, args in calls[:3]]
    assert losses == pytest.approx(expected["losses"])
    assert file.call(*calls[3][:1], *calls[3][1]).flatten().tolist() == pytest.approx(expected["result"])


@pytest.mark.usefixtures("extension")
def test_both_readers_change_an_argument_that_has_other_strides(tmp_path):
    @recorded
    def clamp(x):
        x.clamp_(-0.5, 0.5)
        return x.sum(1)

    for _ in range(9):
        clamp(torch.randn(4, 3))
    path = save_recording(str(tmp_path / "clamp.ftr"), {"clamp": clamp}, names={})
    given, again = (torch.linspace(-1, 1, 12).reshape(3, 4).T for _ in range(2))
    assert is_same(load_recording(path).call("clamp", given), ftr_reader.File(path).call("clamp", again))
    assert is_same(given, again) and given.abs().max() == 0.5


SCRIPT = """
import torch
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
def ftn_pytorch_forward(x):
    with torch.no_grad():
        return net(x) / x.shape[0] * torch.arange(x.shape[0]).unsqueeze(1)
def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss
"""


@pytest.mark.usefixtures("extension")
def test_the_small_file_of_the_page_runs_and_is_that_of_the_page(tmp_path):
    data = ftr_written.small_file()
    shown = re.findall(r"^([0-9a-f]{8})  (.{47})  (.+)$", PAGE.read_text(), re.MULTILINE)
    assert len(shown) == 25 and f"{len(data):,} bytes" in PAGE.read_text()
    for place, digits, text in shown:
        row = data[int(place, 16) :][: len(text)]
        assert row.hex(" ") == digits.strip()
        assert "".join(chr(each) if 32 <= each < 127 else "." for each in row) == text
    path = tmp_path / "scale.ftr"
    path.write_bytes(data)
    file = compared(str(path), [("ftn_pytorch_forward", (torch.randn(5, 3),))])
    assert torch.equal(file.call("ftn_pytorch_forward", torch.ones(2, 3))[1], torch.tensor([1.0, 2.0, 4.0]))
    with pytest.raises(ftr_reader.Refused, match="no recording takes these arguments"):
        file.call("ftn_pytorch_forward", torch.ones(2, 4))


def changed(change):
    """The small file with another recording in it."""
    content = ftr_written.small_content()
    recording = content["recording"]
    change(content, recording, recording["functions"]["ftn_pytorch_forward"][0])
    return ftr_written.small_file(content)


def operation(name="aten::mul", overload="Tensor", schema=ftr_written.SCHEMA, arguments=None, results=((2,),)):
    def change(content, recording, tape):
        given = [("last", 0), ("slot", 1)] if arguments is None else arguments
        tape["operations"] = [(name, overload, schema, given, [list(each) for each in results])]

    return lambda: changed(change)


def tape(**entries):
    return lambda: changed(lambda content, recording, tape: tape.update(entries))


def flipped():
    data = bytearray(ftr_written.small_file())
    data[2000] ^= 1
    return bytes(data)


SUM = "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor"
SUM_ARGUMENTS = [("last", 0), ("value", [0]), ("value", True)]
ADD = "aten::add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)"
ADD_ARGUMENTS = [("slot", 0), ("slot", 1), ("slot", 0)]
# as of a torch whose operators had fewer arguments: the last one, one before the result, and two of two
EARLIER = {
    "last": (operation("aten::sum", "dim_IntList", SUM, SUM_ARGUMENTS), lambda x, weight: x.sum(0, keepdim=True)),
    "before a result": (operation("aten::add", "out", ADD, ADD_ARGUMENTS), lambda x, weight: x + weight),
    "all": (
        operation("aten::triu", "", "aten::triu(Tensor self) -> Tensor", [("slot", 0)]),
        lambda x, weight: x.triu(),
    ),
}


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize("case", EARLIER)
def test_operators_that_have_got_arguments_since_compute_as_before(tmp_path, case):
    make, expected = EARLIER[case]
    path, x = tmp_path / "scale.ftr", torch.randn(4, 3)
    path.write_bytes(make())
    wanted = expected(x, torch.tensor([1.0, 2.0, 4.0]))
    assert torch.equal(load_recording(str(path)).forward(x), wanted)


# what makes the file, the status of the library, its words, and those of the other reader
REFUSED = {
    "cut off": (lambda: ftr_written.small_file()[:-100], "CORRUPT", "the end of it is missing", "the end is missing"),
    "a bit": (flipped, "CORRUPT", "does not agree with its checksum", "the digest does not agree"),
    "format": (lambda: ftr_written.small_file(format_=4), "FORMAT", "has format 4", "format 4"),
    "kind": (lambda: ftr_written.small_file(kind=2), "FORMAT", "is of kind 2", "kind 2"),
    "version": (
        lambda: changed(lambda content, recording, tape: recording.update(version=3)),
        "FORMAT",
        "it has format 3 of recordings",
        "version 3",
    ),
    "entry": (
        lambda: changed(lambda content, recording, tape: content.update(more=1)),
        "FORMAT",
        'it has the entry "more"',
        "unknown entries",
    ),
    "unknown operator": (operation(overload="tensor"), "FORMAT", "mul.tensor, which this torch lacks", "no operator"),
    "own operator": (operation("mine::mul"), "FORMAT", "mine::mul, which a saved recording", "no file may call"),
    "operator of files": (operation("aten::save", ""), "FORMAT", "aten::save, which a saved", "no file may call"),
    "schema": (
        operation(schema=ftr_written.SCHEMA.replace("other", "another")),
        "FORMAT",
        "it calls aten::mul as .*another.*: write the file again with this torch",
        "aten::mul is",
    ),
    "schema with another default": (
        operation("aten::sum", "dim_IntList", SUM.replace("=False", "=True"), SUM_ARGUMENTS),
        "FORMAT",
        "it calls aten::sum as .*keepdim=True.*: write the file again with this torch",
        "aten::sum is",
    ),
    "schema without an argument that has no default": (
        operation("aten::mul", "Tensor", "aten::mul.Tensor(Tensor self) -> Tensor", [("last", 0)]),
        "FORMAT",
        "it calls aten::mul as",
        "aten::mul is",
    ),
    "arguments": (operation(arguments=[("slot", 1)]), "FORMAT", "is given 1 arguments and takes 2", "with 1 arguments"),
    "results": (operation(results=((2,), (0,))), "FORMAT", "it has 1 results, and not 2", "with 2 results"),
    "kind of argument": (
        operation(arguments=[("last", 0), ("array", 1)]),
        "FORMAT",
        "there is no kind of argument array",
        "an argument of kind array",
    ),
    "empty slot": (operation(arguments=[("last", 0), ("slot", 2)]), "FORMAT", "slot 2 is used before", "in slot 2"),
    "taken slot": (operation(arguments=[("last", 0), ("slot", 0)]), "FORMAT", "slot 0 is used before", "in slot 0"),
    "constant": (operation(results=((1,),)), "FORMAT", "slot 1 is that of a constant", "a constant would change"),
    "slot": (operation(results=((3,),)), "FORMAT", "there is no slot 3", "there is no slot 3"),
    "no batch": (tape(batch=False), "FORMAT", "from that of a batch, and there is none", "follows from no batch"),
    "batch of nothing": (
        tape(inputs=[("x", "tensor", 0, "float32", [(0, 3)], [(0, 1)])]),
        "FORMAT",
        "no input tells the size of the batch",
        "no input tells the batch",
    ),
    "size": (
        tape(inputs=[("x", "tensor", 0, "float32", [(1 << 31, 0), (0, 3)], [(0, 3), (0, 1)])]),
        "FORMAT",
        "a size is out of range",
        "a size out of range",
    ),
    "number": (tape(numbers=[("setting", "lr")]), "FORMAT", "the number lr, which the file does not", "no such number"),
    "formula": (
        tape(branches=[(0, [(2, 1.0), (3, 0)], [(2, 1.0)], True)]),
        "FORMAT",
        "a formula computes with nothing",
        "computes with nothing",
    ),
    "comparison": (tape(branches=[(3, [], [], True)]), "FORMAT", "there is no comparison 3", "of code 3"),
    "result": (tape(template=("tensor", 1)), "FORMAT", "there is no result 1", "no result 1"),
    "container": (tape(template=("set", [])), "FORMAT", "there is no kind of result set", "a result of kind set"),
    "gradient": (tape(gradients=[("weight", 0)]), "FORMAT", "slot 0 is used before", "a slot that nothing is in"),
}


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize("case", REFUSED)
def test_both_readers_refuse(tmp_path, case):
    make, status, words, other_words = REFUSED[case]
    path = tmp_path / "scale.ftr"
    path.write_bytes(make())
    with pytest.raises(FtnPytorchError, match=words) as failure:
        load_recording(str(path))
    assert failure.value.status == status
    with pytest.raises(ftr_reader.Refused, match=other_words):
        ftr_reader.File(str(path))


@pytest.fixture
def check(tmp_path, capsys):
    """check(file, *options): status and output of the command for these bytes."""

    def check(data, *options):
        path = tmp_path / "scale.ftr"
        path.write_bytes(data)
        status = __main__.main(["check", str(path), *options])
        written = capsys.readouterr()
        return status, written.out + written.err

    return check


@pytest.mark.usefixtures("extension")
def test_the_command_check_lists_what_a_file_holds_and_says_which_torch_runs_it(check):
    status, told = check(ftr_written.small_file(), "--operators")
    assert status == 0
    for line in (
        "scale.ftr: recorded from scale.py, torch 2.13.0, 7,071 bytes",
        "  ftn_pytorch_forward(x float32 (B, 3)): 1 operator",
        "       1 aten::mul.Tensor",
        "state: 1 arrays, 3 elements",
        "settings: default_dtype = float32, deterministic = False, matmul_precision = highest, cudnn_tf32 = True",
        ", for any torch whose operators fit",
        f"torch {torch.__version__} runs it: the schemas of 1 operator fit",
    ):
        assert line in told
    report = json.loads(check(ftr_written.small_file(), "--json")[1])
    assert report["is_fine"] and report["functions"][0]["operators"] == {"aten::mul.Tensor": 1}
    assert report["settings"]["matmul_precision"] == "highest"


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize("case, words", [("cut off", "_CORRUPT"), ("a bit", "_CORRUPT"), ("schema", "_FORMAT")])
def test_the_command_check_says_what_is_wrong_with_a_file(check, case, words):
    make, _, text, _ = REFUSED[case]
    status, told = check(make())
    assert status == 1 and f"FTN_PYTORCH_ERR{words}" in told and re.search(text, told)
    assert f"FAILED with torch {torch.__version__}" in told
    report = json.loads(check(make(), "--json")[1])
    assert not report["is_fine"] and re.search(text, report["failure"])


def test_the_command_check_needs_a_reader(check, monkeypatch):
    monkeypatch.setattr(saved_recording.extension, "module", lambda: None)
    monkeypatch.setattr(saved_recording.extension, "obstacle", lambda: "there is no reader")
    status, told = check(ftr_written.small_file())
    assert status == 2 and "FTN_PYTORCH_ERR_IMPORT" in told and "there is no reader" in told


def test_the_command_check_needs_a_file(capsys):
    assert __main__.main(["check", "nowhere.ftr"]) == 2
    assert "FTN_PYTORCH_ERR_FILE" in capsys.readouterr().err


def words_in(path, pattern):
    return set(re.findall(pattern, (ROOT / path).read_text()))


def test_the_page_has_the_words_of_the_library():
    """Kinds of arguments and results, keys of a recording, entries, settings, types, operators that are checked."""
    reader, writer = "src/ftr/", "src/plugin/recording/"
    wanted = words_in(reader + "saved_argument.cpp", r'kind == "(\w+)"')
    wanted |= words_in(reader + "saved_argument.cpp", r'name == "(\w+)"')
    wanted |= words_in(reader + "saved_tape.cpp", r'kind == "(\w+)"') | words_in(
        reader + "saved_tape.cpp", r'\b(?:entry|items)\("(\w+)"\)'
    )
    wanted |= words_in(reader + "content.cpp", r'name == "(\w+)"')
    wanted |= words_in(writer + "recording_model.cpp", r'"(ftn_pytorch_\w+)"')
    wanted |= words_in(reader + "program.cpp", r'entry_in\(recording, "(\w+)"')
    wanted |= words_in(reader + "call_settings.cpp", r'[({]"([a-z_0-9]+)"')
    wanted |= words_in(writer + "pieces.cpp", r'kind == "(\w+)"')
    wanted |= words_in(reader + "stored_tensor.cpp", r'{"(\w+)", (?:"|nullptr)')
    wanted |= words_in(reader + "stored_tensor.cpp", r'"(\w+Storage)", at::')
    wanted |= words_in(reader + "pickle_opcode.hpp", r"^  ([A-Z0-9_]+) =") - {"PROTO"}
    wanted |= words_in(reader + "named_operator.cpp", r'"aten::(\w+)"')
    text = PAGE.read_text()
    assert len(wanted) > 90
    assert {word for word in wanted if not re.search(rf"(?<![\w]){word}(?![\w])", text)} == set()
