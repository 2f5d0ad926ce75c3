# SPDX-License-Identifier: MIT
"""Names of torch, ONNX Runtime and Python that are not documented: all in one module, and what is said without them."""

import ast
import functools
import re
from pathlib import Path

import pytest

import program
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.system import private_names
from ftn_pytorch.system.private_names import PrivateName

PACKAGE = Path(private_names.__file__).parents[1]
# Documented in spite of their underscore: those of named tuples and enumerations, and sys._getframe.
DOCUMENTED = {"_fields", "_make", "_replace", "_value_", "_name_", "_getframe", "_current_frames"}
# What a pickle of torch.save names, and what is told apart by its name; nothing here is used.
NAMED_IN_FILES = {"torch._utils", "torch._ops", "torch._C._distributed", "torch._C._jit", "_c10d_functional", "_ns"}
NAMED_IN_FILES |= {
    "_abc_impl",
    "_lru_list_elem",
    "_FuncPtr",
    "_ArrayFunctionDispatcher",
    "_csv.writer",
    "_()",
    "_local_scalar_dense",
    "_core",
}
PRIVATE = re.compile(r"^_(?!_)|\b(torch|onnxruntime|numpy|threading|atexit)(\.\w+)*\._(?!_)\w+|pt2_archive\.")


@functools.cache
def sources():
    others = [
        path
        for path in PACKAGE.rglob("*.py")
        if path.name not in ("private_name.py", "private_names.py") and "bench" not in path.parts
    ]
    return {path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in others}


@functools.cache
def own_names():
    """Names with an underscore that this package gives itself, and its modules."""
    names = {path.stem for path in sources()} | {"_ftn_pytorch", "_ftn_pytorch_recording", "_ftn_pytorch_leaf"}
    names.remove("_version")  # which tensors have, too
    for tree in sources().values():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
                names.add(node.attr)
    return names


def is_self(node):
    return isinstance(node, ast.Name) and node.id == "self"


def used_names(tree):
    """Attributes, imported names, and texts that stand for a name."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            place = "" if getattr(node, "level", 0) else getattr(node, "module", None) or ""
            for text in [place, *(alias.name for alias in node.names)]:
                yield from ((node.lineno, part) for part in (*text.split("."), text))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


def private_uses(tree):
    own = own_names() | DOCUMENTED | NAMED_IN_FILES
    return [(line, name) for line, name in used_names(tree) if PRIVATE.search(name) and name not in own]


def test_no_other_module_uses_private_names():
    assert {path: found for path, tree in sources().items() if (found := private_uses(tree))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import torch._inductor",
        "torch._C",
        "from torch.utils import _pytree",
        "x._version",
        "getattr(x, '_orig_mod')",
        "code = 'import torch\\ntorch._C._aoti.Loader(a[1], b)'",
    ],
)
def test_the_search_finds_private_names(text):
    assert private_uses(ast.parse(text))


NAMES = {key: value for key, value in vars(private_names).items() if isinstance(value, PrivateName)}


def test_all_names_are_there():
    pytest.importorskip("torch")
    assert private_names.missing() == []


@pytest.fixture
def gone(monkeypatch):
    """gone(key): that name is one which its owner does not have."""

    def take(key):
        name = NAMES[key]._replace(name=NAMES[key].name + "_of_old")
        monkeypatch.setattr(private_names, key, name)
        return name

    return take


@pytest.mark.parametrize("key", NAMES)
def test_the_doctor_notes_a_name_that_is_gone(key, gone):
    pytest.importorskip(NAMES[key].owner.partition(":")[0].partition(".")[0])
    name = gone(key)
    notes = [line for line in program.diagnose({})[2].splitlines() if "private name" in line]
    assert len(notes) == 1
    assert notes[0].startswith("note  private name: ")
    assert f"{name.owner.replace(':', '.')}.{name.name}" in notes[0]
    assert name.without in notes[0]
    assert "use a version of" in notes[0]


@pytest.mark.parametrize("owner", ["json.of_old", "json:JSONDecoder.of_old", "json:OfOld"])
def test_a_name_whose_owner_is_gone_is_gone(owner):
    name = PrivateName(owner, "decode", "nothing can be read")
    assert not name.is_there() and not name._replace(used_in="decode").is_there()
    assert name._replace(owner="json:JSONDecoder").is_there()


def module():
    import torch

    return torch.nn.Linear(1, 1)


NEEDS = {
    "_AOTI_LOADER": lambda: private_names.aoti_loader("net.pt2", "model", -1),
    "_ARCHIVE_VERSION": private_names.archive_version,
    "_TREESPEC_LOADS": lambda: private_names.tree_spec("[]"),
    "_TREE_UNFLATTEN": private_names.tree_unflatten,
    "_OPERATOR": lambda: private_names.is_operator("torch.ops.aten.add.Tensor"),
    "_HIGHER_OPERATOR": lambda: private_names.is_operator("torch.ops.aten.add.Tensor"),
    "_AOTI_COMPILE": lambda: private_names.aoti_compile(None, "net.pt2", {}),
    "_WORKER_START": private_names.compile_in_own_processes,
    "_COMPILE_THREADS": private_names.compile_without_workers,
    "_CXX": private_names.find_cxx,
    "_CALL": lambda: private_names.plain_call(module()),
    "_COMPILED_CALL": lambda: private_names.set_compiled_call(module(), print),
    "_WRAPPER": lambda: private_names.uncompiled(module()),
    "_WRAPPED": lambda: private_names.uncompiled(__import__("torch").compile(module(), backend="eager")),
    "_TENSOR_VERSION": lambda: private_names.version_of(module().weight),
    "_BASE": lambda: private_names.viewed(module().weight[0]),
    "_UNSEEN": lambda: private_names.version_of(module().weight),
    "_SCRIPT_CORE": lambda: private_names.script_methods(__import__("torch").jit.script(module())),
    "_SCRIPT_METHODS": lambda: private_names.script_methods(__import__("torch").jit.script(module())),
    "_SCRIPT_TYPE": lambda: private_names.script_attributes(__import__("torch").jit.script(module())),
    "_KEYS": lambda: private_names.has_kernel(__import__("torch").ops.aten.add.Tensor, "CPU"),
    "_SCHEMA": lambda: private_names.schema_of(__import__("torch").ops.aten.add.Tensor),
    "_FORWARD_LEVEL": private_names.is_forward_differentiated,
    "_INTERPRETERS": private_names.is_transformed,
    "_ALL_REDUCE": lambda: private_names.all_reduce(None, "sum", None),
    "_WAIT": lambda: private_names.all_reduce(None, "sum", None),
    "_ASSERT": lambda: private_names.assert_later(None, "text"),
    "_COPY_ALL": lambda: private_names.copy_all([module().weight], [module().weight]),
    "_JOIN_THREADS": private_names.join_threads,
    "_EXIT_FUNCTIONS": private_names.run_exit_functions,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("key", NEEDS)
def test_what_needs_a_name_that_is_gone_says_so(key, gone, fails):
    pytest.importorskip("torch._dynamo")
    name = gone(key)
    product = "Python 3." if name.owner in ("atexit", "threading") else "torch "
    with fails("VERSION", name.name, f"is a private name, which {product}", "no longer has", name.without):
        NEEDS[key]()


def test_each_name_either_says_so_or_has_a_substitute():
    assert set(NAMES) - set(NEEDS) == {
        "_ANY_SIZE",
        "_METADATA",
        "_PASSING",
        "_SCRIPT_FUNCTION",
        "_LOAD_HOOKS",
        "_LOAD_OWN",
        "_DISPATCH_MODE",
        "_STEP_COUNT",
        "_STEPPED",
        "_LAST_RATES",
        "_FOREIGN_THREAD",
        "_SESSION",
        "_BINDING",
    }


def test_models_run_without_the_short_cut_of_onnx_runtime(gone):
    class Session:
        _sess = "unused"

        def run_with_iobinding(self, binding):
            return binding

    gone("_SESSION")
    assert private_names.bound_run(Session(), "bound")() == "bound"


def test_exports_are_made_without_the_option_for_any_size(gone):
    config = pytest.importorskip("torch.fx.experimental._config")
    before = config.backed_size_oblivious
    with private_names.any_batch_size():
        assert config.backed_size_oblivious
    gone("_ANY_SIZE")
    with private_names.any_batch_size():
        assert config.backed_size_oblivious == before


def test_states_without_metadata_have_none():
    assert private_names.metadata_of({}) is None


@pytest.mark.parametrize("key", ["_ARCHIVE_VERSION", "_AOTI_LOADER", "_TREESPEC_LOADS"])
def test_a_package_is_not_to_be_exported_again_where_a_name_is_gone(key, model_file, gone):
    pytest.importorskip("torch")
    gone(key)
    with pytest.raises(FtnPytorchError, match="is a private name") as caught:
        program.load_model(model_file("package"))
    assert "export the model" not in caught.value.text
