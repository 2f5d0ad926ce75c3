# SPDX-License-Identifier: MIT
"""Every way known in which a saved model can carry code: refused unless the program asks for it.

An attack makes a folder. That it would work is shown with ``weights_only=.false.``, wherever this torch lets it come
that far: otherwise a refusal would prove nothing.
"""

import contextlib
import io
import json
import os
import pickle
import zipfile

import pytest

from ftn_pytorch.runners.models import exported_content, formats

torch = pytest.importorskip("torch")

from formats_models import call, close, load  # noqa: E402


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Pair(torch.nn.Module):
    """Two inputs whose sizes depend on each other, so that the program has guards; a constant, a text."""

    def __init__(self):
        super().__init__()
        self.constant = torch.ones(3)

    def forward(self, x, pair):
        return torch.einsum("ij,kj->ik", x[::2] + pair["y"], x * self.constant)


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """The entries of a program of torch.export, by name."""
    path = str(tmp_path_factory.mktemp("program") / "net.pt2")
    size = torch.export.Dim("size", min=2, max=50)
    axes = {"x": {0: 2 * size}, "pair": {"y": {0: size}}}
    torch.export.save(torch.export.export(Pair(), inputs(), dynamic_shapes=axes), path)
    archive = formats.Archive(path)
    return {name: archive.read(name) for name in archive.names}


def inputs():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(6, 3, generator=generator), {"y": torch.randn(3, 3, generator=generator)}


def written(path, entries):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(f"net/{name}", content)
    return str(path)


def pickled(marker, protocol=2):
    return pickle.dumps(Attack(marker), protocol)


def saved(value):
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


# ---- pickles in a program: (entries, folder to make) -> None


def with_payload(entries, folder, name, content):
    """Another entry in the table of weights or constants, which says that it is a pickle."""
    table = f"data/{folder}/model_{folder}_config.json"
    facts = json.loads(entries[table])
    meta = {"path_name": name, "is_param": False, "use_pickle": True, "tensor_meta": None}
    facts["config"]["attack"] = meta
    entries[table] = json.dumps(facts).encode()
    entries[f"data/{folder}/{name}"] = content


def opaque_object(entries, marker):
    with_payload(entries, "constants", "opaque_obj_0", pickled(marker, 4))


def opaque_object_of_a_dotted_name(entries, marker):
    # "torch" counts as harmless to whoever looks at the module alone
    text = str(marker).encode()
    data = b"\x80\x04\x8c\x05torch\x8c\x08os.mkdir\x93\x8c" + bytes([len(text)]) + text + b"\x85R."
    with_payload(entries, "constants", "opaque_obj_0", data)


def custom_object(entries, marker):
    with_payload(entries, "constants", "custom_obj_0", pickled(marker))


def constant_in_protocol_0(entries, marker):
    with_payload(entries, "constants", "tensor_7", pickled(marker, 0))


def constant_in_an_archive(entries, marker):
    with_payload(entries, "constants", "tensor_7", saved(Attack(marker)))


def weight(entries, marker):
    with_payload(entries, "weights", "weight_7", saved(Attack(marker)))


def weights_as_one_pickle(entries, marker):
    entries["data/weights/model.pt"] = saved({"weight": Attack(marker)})


def sample_inputs(entries, marker):
    entries["data/sample_inputs/model.pt"] = saved((Attack(marker),))


# ---- code in the description of the graph


def graph(change):
    """An attack that changes the description: change(program, expression that makes the folder)."""

    def attack(entries, marker):
        program = json.loads(entries["models/model.json"])
        change(program, f"__import__('os').mkdir('{marker}')", marker)
        entries["models/model.json"] = json.dumps(program).encode()

    attack.__name__ = change.__name__
    return attack


@graph
def size_that_is_an_expression(program, code, marker):
    program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"] = code


@graph
def symbol_with_a_call_for_a_name(program, code, marker):
    size = program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0]["as_expr"]
    size["expr_str"] = f"Symbol({code!r}, positive=True, integer=True)"


@graph
def guard(program, code, marker):
    program["guards_code"] = [f"{code} is None"]


@graph
def guard_that_hides_in_a_lambda(program, code, marker):
    program["guards_code"] = [f"(lambda: {code})() is None"]


@graph
def operator_that_is_a_function(program, code, marker):
    _with_node(program, "torch.os.mkdir", path={"as_string": str(marker)})


@graph
def operator_that_loads_a_library(program, code, marker):
    _with_node(program, "torch.ops.load_library.__call__", path={"as_string": str(marker)})


@graph
def operator_that_opens_a_file(program, code, marker):
    arguments = {"filename": {"as_string": str(marker)}, "shared": {"as_bool": True}, "size": {"as_int": 9}}
    _with_node(program, "torch.ops.aten.from_file.default", **arguments)


@graph
def name_that_is_source(program, code, marker):
    text = json.dumps(program).replace('"einsum"', json.dumps(f"{{}}[{code}]"))
    program.update(json.loads(text))


@graph
def container_whose_factory_is_imported(program, code, marker):
    context = {"default_factory_module": "antigravity", "default_factory_name": "fly", "dict_context": ["y"]}
    _containers(program, "collections.defaultdict", context)


@graph
def key_that_is_imported(program, code, marker):
    _containers(program, "builtins.dict", [{"__enum__": True, "fqn": "antigravity:fly", "name": "y"}])


def _with_node(program, target, **arguments):
    inputs = [{"name": name, "arg": value, "kind": 2} for name, value in arguments.items()]
    node = {"target": target, "inputs": inputs, "outputs": [], "metadata": {}, "name": "attack"}
    program["graph_module"]["graph"]["nodes"].append({**node, "is_hop_single_tensor_return": None})


def _containers(program, kind, context):
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    protocol, tree = json.loads(signature["in_spec"])
    pair = tree["children_spec"][0]["children_spec"][1]
    pair["type"], pair["context"] = kind, json.dumps(context)
    signature["in_spec"] = json.dumps([protocol, tree])


# What of these makes the folder in this torch; the others import a module, open a file, or are stopped by torch itself
# later than here.
MAKES_A_FOLDER = [
    opaque_object,
    opaque_object_of_a_dotted_name,
    constant_in_protocol_0,
    constant_in_an_archive,
    weight,
    weights_as_one_pickle,
    sample_inputs,
    size_that_is_an_expression,
    guard,
    guard_that_hides_in_a_lambda,
]
READ_SINCE_2_13 = [opaque_object, opaque_object_of_a_dotted_name]
OTHERS = [
    custom_object,
    operator_that_is_a_function,
    name_that_is_source,
    symbol_with_a_call_for_a_name,
    operator_that_loads_a_library,
    operator_that_opens_a_file,
    container_whose_factory_is_imported,
    key_that_is_imported,
]


def test_program_without_code_keeps_its_numbers(entries, tmp_path):
    x, pair = inputs()
    path = written(tmp_path / "net.pt2", entries)
    for runner in (load(path), load(path, weights_only=False)):
        close(call(runner, x, y=pair["y"])[1], [Pair()(x, pair)])


@pytest.mark.parametrize("attack", [*MAKES_A_FOLDER, *OTHERS], ids=lambda attack: attack.__name__)
def test_program_with_code_is_refused(attack, entries, tmp_path, fails):
    changed = dict(entries)
    attack(changed, tmp_path / "run")
    with fails("FORMAT", "net.pt2", "could run code", "weights_only=.false."):
        load(written(tmp_path / "net.pt2", changed))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("attack", MAKES_A_FOLDER, ids=lambda attack: attack.__name__)
def test_the_same_program_runs_its_code_where_that_is_asked_for(attack, entries, tmp_path):
    if attack in READ_SINCE_2_13 and torch.__version__ < (2, 13):
        pytest.skip("this torch reads no opaque objects")
    changed = dict(entries)
    attack(changed, tmp_path / "run")
    with contextlib.suppress(Exception):
        runner = load(written(tmp_path / "net.pt2", changed), weights_only=False)
        call(runner, *inputs()[:1], **inputs()[1])
    assert (tmp_path / "run").is_dir()


def test_what_is_looked_at_is_what_torch_reads(entries, tmp_path, fails):
    """An archive with two directories: Python's reader takes the one, torch's reader the other."""
    changed = dict(entries)
    sample_inputs(changed, tmp_path / "run")
    harmful = written(tmp_path / "harmful.pt2", changed)
    harmless = written(tmp_path / "harmless.pt2", entries)
    with open(harmful, "rb") as first, open(harmless, "rb") as second:
        both = bytearray(first.read() + second.read())
    # the place of the directory, which Python's reader works out by itself
    both[-6:-2] = both[len(both) - os.path.getsize(harmless) - 6 : len(both) - os.path.getsize(harmless) - 2]
    (tmp_path / "net.pt2").write_bytes(both)
    with contextlib.suppress(Exception):
        load(str(tmp_path / "net.pt2"))
    assert not (tmp_path / "run").exists()


def test_program_of_an_old_torch_is_refused(tmp_path, fails):
    with zipfile.ZipFile(tmp_path / "net.pt2", "w") as archive:
        archive.writestr("version", "8.8")
        archive.writestr("serialized_exported_program.json", "{}")
        for name in ("state_dict", "constants", "example_inputs"):
            archive.writestr(f"serialized_{name}.pt", pickled(tmp_path / "run"))
    with fails("FORMAT", "torch 2.7 or later", "weights_only=.false."):
        load(str(tmp_path / "net.pt2"))
    assert not (tmp_path / "run").exists()


# ---- machine code


@pytest.mark.parametrize("name", ["net.onnx", "net.pt", "net"])
def test_machine_code_goes_by_its_own_name_only(tmp_path, fails, name):
    path = written(tmp_path / name, {"archive_format": b"pt2", "data/aotinductor/model/net.so": b"\x7fELF"})
    for chosen in (True, False):
        with fails("FORMAT", "machine code", "ends in .pt2"):
            load(path, weights_only=chosen)


def test_machine_code_beside_a_program_is_not_loaded(entries, tmp_path, fails):
    changed = {**entries, "data/aotinductor/model/net.so": b"\x7fELF"}
    with fails("FORMAT", "cannot be loaded by torch"):
        load(written(tmp_path / "net.pt2", changed))
    with fails("FORMAT", "machine code"):
        load(written(tmp_path / "net.pt", changed))


# ---- ONNX


def onnx_model(**tensor):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weight = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[2], **tensor)
    value = onnx.helper.make_tensor_value_info
    return onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
            "g",
            [value("x", onnx.TensorProto.FLOAT, [2])],
            [value("y", onnx.TensorProto.FLOAT, [2])],
            [weight],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=9,
    )


def test_onnx_model_reads_no_file_of_another_folder(tmp_path, fails):
    onnx = pytest.importorskip("onnx")
    (tmp_path / "secret.bin").write_bytes(b"\0" * 8)
    (tmp_path / "models").mkdir()
    for place in ("../secret.bin", str(tmp_path / "secret.bin")):
        model = onnx_model(data_location=onnx.TensorProto.EXTERNAL)
        model.graph.initializer[0].external_data.add(key="location", value=place)
        path = tmp_path / "models" / "net.onnx"
        path.write_bytes(model.SerializeToString())
        with fails("FORMAT", "cannot be read by ONNX Runtime"):
            load(str(path))


def test_onnx_model_names_no_library_of_operators(tmp_path, fails):
    model = onnx_model(float_data=[1.0, 2.0])
    model.graph.node[0].domain, model.graph.node[0].op_type = "attack", "Run"
    model.opset_import.add(domain="attack", version=1)
    model.metadata_props.add(key="ort_config", value='{"session_options": {"custom_ops_library": "./attack.so"}}')
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    with fails("FORMAT", "attack"):
        load(str(tmp_path / "net.onnx"))


# ---- TorchScript


def test_torchscript_calls_no_python(tmp_path, fails):
    class Net(torch.nn.Module):
        def forward(self, x):
            return x

    path = str(tmp_path / "net.pt")
    torch.jit.script(Net()).save(path)
    archive = formats.Archive(path)
    entries = {name: archive.read(name) for name in archive.names}
    source = next(name for name in entries if name.startswith("code/") and name.endswith(".py"))
    attack = f"import os\nos.mkdir({str(tmp_path / 'run')!r})\n".encode()
    with fails("FORMAT", "torch.jit.load"):
        load(written(tmp_path / "attack.pt", {**entries, source: attack + entries[source]}))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "text",
    [
        "2**9**9**9", "(9**60)**60", "Pow(9, Pow(9, Integer(9)))", "Pow(9, 9**9)", "2**(64*64*64*64)", "1 << 10**10",
        "LShift(1, 99999999999)", "math.factorial(99999999)", "math.comb(10**9, 5)", "Pow(2, Integer(1000000000))",
    ],
)  # fmt: skip
def test_numbers_without_end_are_refused_before_anybody_computes_them(text):
    with pytest.raises(exported_content._Refused, match="more than arithmetic of sizes"):
        exported_content._arithmetic(text, "model.json")


@pytest.mark.parametrize(
    "text",
    [
        "s0**2 + 1", "Pow(Symbol('s0', positive=True, integer=True), Integer(2))", "2**s0", "s0 << 3",
        "math.ceil(s0 / 2)", "Mul(Pow(Symbol('s0'), Integer(2)), Pow(Symbol('s1'), Integer(-1)))",
        "Pow(Symbol('s0'), Rational(1, 2))",
    ],
)  # fmt: skip
def test_sizes_with_powers_are_arithmetic(text):
    assert exported_content._arithmetic(text, "model.json")
