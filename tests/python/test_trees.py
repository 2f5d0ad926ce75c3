# SPDX-License-Identifier: MIT
"""Containers of saved models: results of classes that only some package knows come by the names of their fields."""

import collections
import dataclasses
import json
import zipfile

import pytest

import program
from ftn_pytorch.runners.models import trees

torch = pytest.importorskip("torch")
pytree = pytest.importorskip("torch.utils._pytree")


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """As results of transformers and diffusers are: a dataclass and a dict, without what is None."""

    hidden: object = None
    pooled: object = None
    attention: object = None

    def __post_init__(self):
        self.update({name: value for name, value in vars(self).items() if value is not None})


@dataclasses.dataclass
class Record:
    hidden: object
    pooled: object
    attention: object = None


pytree.register_pytree_node(
    Output,
    lambda output: (list(output.values()), list(output.keys())),
    lambda values, names: Output(**dict(zip(names, values))),
    serialized_type_name="imitated.Output",
)
torch.export.register_dataclass(Record, serialized_type_name="imitated.Record")


class Net(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return self.kind(2 * x, x.sum(1))


@pytest.mark.parametrize("kind", [Output, Record])
def test_results_of_a_class_have_the_names_of_its_fields(kind, tmp_path):
    path = str(tmp_path / "net.pt2")
    torch.export.save(torch.export.export(Net(kind), (torch.ones(4, 3),)), path)
    with zipfile.ZipFile(path) as archive:
        (model,) = (name for name in archive.namelist() if name.endswith("models/model.json"))
        assert f"imitated.{kind.__name__}" in archive.read(model).decode()
    x = torch.rand(4, 3)
    result = program.call(program.load_model(path), "ftn_pytorch_forward", x)
    names, (hidden, pooled) = program.unpack(result)
    assert names == ("hidden", "pooled") and torch.equal(hidden, 2 * x) and torch.equal(pooled, x.sum(1))


LEAF = {"type": None, "context": None, "children_spec": []}


@pytest.mark.parametrize(
    ("context", "is_known"),
    [
        (["a", "b"], True), ([["a", "b"], ["c"]], True), (["a", "a"], False), (["a"], False), (["a", 2], False),
        (["a", "b c"], False), ({"a": "b"}, False), ("ab", False), (None, False), ([["a"], ["b"], []], False),
    ],
)  # fmt: skip
def test_a_class_is_a_dict_where_it_names_its_fields(context, is_known):
    described = {"type": "package.Class", "context": json.dumps(context), "children_spec": [LEAF, LEAF]}
    found = trees.by_fields({"type": "builtins.tuple", "context": "null", "children_spec": [described]})
    assert found["type"] == "builtins.tuple"
    (inner,) = found["children_spec"]
    assert inner == ({**described, "type": "builtins.dict", "context": '["a", "b"]'} if is_known else described)
