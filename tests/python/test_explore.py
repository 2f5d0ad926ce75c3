# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch explore``: files for Model Explorer."""

import json
import linecache
import os
from pathlib import Path

import pytest

from ftn_pytorch import __main__ as command_line

NETS = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        if x.shape[0] > 100:
            x = 2 * x
        return x + torch.nn.functional.gelu(self.convolution(x))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(2, 4, 1)
        self.blocks = torch.nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return torch.cat([x, x], 1), x.mean()

net = Net().eval()
"""


@pytest.fixture
def nets(write, tmp_path, monkeypatch):
    """nets.py in the working directory, and the network of it."""
    monkeypatch.chdir(tmp_path)
    write("nets.py", NETS)
    names: dict = {"__name__": "nets"}
    linecache.cache["nets.py"] = (len(NETS), None, NETS.splitlines(True), "nets.py")
    exec(compile(NETS, "nets.py", "exec"), names)
    return names["net"]


@pytest.fixture
def run(capsys):
    """run(*arguments, code=0): what it wrote to both streams."""

    def run(*arguments, code=0):
        assert command_line.main(["explore", *arguments]) == code
        said = capsys.readouterr()
        return said.out + said.err

    return run


def graph(file):
    """Nodes by their place and label; every edge must come from a node of the file."""
    collection = json.loads(Path(file).read_text())
    (only,) = collection["graphs"]
    known = {node["id"]: node for node in only["nodes"]}
    assert len(known) == len(only["nodes"])
    assert all(edge["sourceNodeId"] in known for node in known.values() for edge in node["incomingEdges"])
    return {f"{node['namespace']}/{node['label']}": node for node in known.values()}, known


def sources(node, known):
    return [known[edge["sourceNodeId"]]["label"] for edge in node["incomingEdges"]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("way", ["script", "trace"])
def test_torchscript_has_its_modules_as_layers(run, nets, way):
    import torch

    example = torch.zeros(1, 2, 8, 8)
    torch.jit.save(torch.jit.script(nets) if way == "script" else torch.jit.trace(nets, (example,)), "net.pt")
    assert "-m model_explorer net.json" in run("net.pt")
    places, known = graph("net.json")
    layers = {node["namespace"] for node in known.values()}
    assert {"inputs", "outputs", "Net/first Conv2d/parameters", "Net/blocks.0 Block", "Net/blocks.1 Block"} <= layers
    weight = places["Net/blocks.0 Block/convolution Conv2d/parameters/weight"]
    assert weight["outputsMetadata"][0]["attrs"] == [{"key": "tensor_shape", "value": "float32[4, 4, 3, 3]"}]
    assert sources(places["Net/cat"], known) == ["add", "add"]
    assert any(setting == {"key": "input 1", "value": "1"} for setting in places["Net/cat"]["attrs"])
    (result,) = (node for node in known.values() if node["namespace"] == "outputs")
    assert sources(result, known) == ["cat", "mean"]
    convolutions = [node for node in known.values() if "conv" in node["label"]]
    assert len(convolutions) == 3 and all("weight" in sources(node, known) for node in convolutions)
    if way == "script":
        assert any(place.startswith("Net/blocks.0 Block/prim::If") and place.endswith("/mul") for place in places)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_onnx_has_its_modules_as_layers(run, nets):
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("onnxscript")
    torch.onnx.export(nets, (torch.zeros(1, 2, 8, 8),), "net.onnx", dynamo=True, verbose=False)
    run("net.onnx")
    places, known = graph("net.json")
    assert {"Net/first Conv2d/Conv", "Net/blocks.0 Block/convolution Conv2d/Conv", "Net/Concat"} <= set(places)
    convolution = places["Net/blocks.1 Block/convolution Conv2d/Conv"]
    assert convolution["outputsMetadata"][0]["attrs"][0]["value"] == "float[1, 4, 8, 8]"
    assert {"key": "pads", "value": "[1, 1, 1, 1]"} in convolution["attrs"]
    assert sources(convolution, known)[1:] == ["blocks.1.convolution.weight", "blocks.1.convolution.bias"]


def test_onnx_graphs_inside_of_nodes(run, tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    result = helper.make_tensor_value_info("r", kind, [2])
    branches = {
        name: helper.make_graph([helper.make_node(operator, ["x", "x"], ["r"])], name, [], [result])
        for name, operator in (("then_branch", "Add"), ("else_branch", "Mul"))
    }
    inputs = [
        helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", kind, ["n"]),
    ]
    main = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], **branches)],
        "main",
        inputs,
        [helper.make_tensor_value_info("y", kind, [2])],
    )
    onnx.save(helper.make_model(main), "net.onnx")
    run("net.onnx")
    places, known = graph("net.json")
    (product,) = (node for node in known.values() if node["label"] == "Mul")
    assert product["namespace"].startswith("If ") and "else_branch" in product["namespace"]
    assert sources(product, known) == ["x", "x"]
    assert places["inputs/x"]["outputsMetadata"][0]["attrs"][0]["value"] == "float[n]"


def test_network_of_a_script_becomes_a_program_of_torch_export(run, nets):
    torch = pytest.importorskip("torch")
    assert "-m model_explorer nets.pt2" in run("nets.py:net", "--input", "1x2x8x8")
    program = torch.export.load("nets.pt2")
    assert any("conv2d" in str(node.target) for node in program.graph.nodes)
    # which Model Explorer reads as it is
    assert f"{os.path.abspath('nets.pt2')}: show it with" in run("nets.pt2")
    run("nets.pt2", "--output", "copy.pt2")
    assert Path("copy.pt2").read_bytes() == Path("nets.pt2").read_bytes()


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("nowhere.pt",), "does not exist"),
        (("nets.py",), "name the network in nets.py, as in nets.py:net"),
        (("nets.py:net",), "needs --input, such as --input 32x16"),
        (("nets.py:none", "--input", "3"), "has no 'none'"),
        (("nets.py:net", "--input", "1x3x8x8"), "torch cannot export"),
        (("nets.py:net", "--input", "3", "--output", "net.json"), "Model Explorer knows this file by .pt2 at its end"),
        (("damaged.onnx",), "is no ONNX model"),
        (("weights.pt",), "holds no graph: it is a pickle file"),
    ],
)
def test_refused(run, nets, arguments, text):
    torch = pytest.importorskip("torch")
    torch.save({"weight": torch.zeros(2)}, "weights.pt")
    Path("damaged.onnx").write_bytes(b"\x08\x07")
    assert text in run(*arguments, code=2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_file_that_cannot_be_written(run, nets):
    torch = pytest.importorskip("torch")
    torch.jit.save(torch.jit.script(nets), "net.pt")
    assert "cannot be written" in run("net.pt", "--output", "nowhere/net.json", code=2)
    assert "--input and --config are for scripts" in run("net.pt", "--input", "3", code=2)
