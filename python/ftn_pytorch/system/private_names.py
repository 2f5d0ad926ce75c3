# SPDX-License-Identifier: MIT
"""Everything that this package uses of torch, ONNX Runtime and Python beyond their documented interfaces.

Such names may go with any version. Here each has a function, a reason why no public name will do, and a text that says
what does not work without it. ``missing`` tries all of them; ``python -m ftn_pytorch doctor`` prints what it finds.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from .private_name import PrivateName


def missing() -> list[PrivateName]:
    """All names of this module that are gone. Imports torch._dynamo and ONNX Runtime, which takes a second."""
    values = (*globals().values(), *_COMMON_HOOKS.values())
    names = [each for value in values for each in (value if type(value) is tuple else (value,))]
    return [name for name in names if isinstance(name, PrivateName) and not name.is_there()]


# ---- packages of AOTInductor, exported programs

_PACKAGES = "packages of AOTInductor cannot be run through Python"
_AOTI_LOADER = PrivateName("torch._C:_aoti", "AOTIModelPackageLoader", _PACKAGES)
_ARCHIVE_VERSION = PrivateName("torch.export.pt2_archive.constants", "ARCHIVE_VERSION_VALUE", _PACKAGES)
_TREESPEC_LOADS = PrivateName("torch.utils._pytree", "treespec_loads", _PACKAGES)
_TREE_UNFLATTEN = PrivateName("torch.utils._pytree", "tree_unflatten", "models that take containers cannot be run")
_NO_OPERATORS = "exported programs are loaded with weights_only=.false. only"
_OPERATOR = PrivateName("torch._ops", "OpOverload", _NO_OPERATORS)
_HIGHER_OPERATOR = PrivateName("torch._ops", "HigherOrderOperator", _NO_OPERATORS)
_AOTI_COMPILE = PrivateName("torch._inductor", "aoti_compile_and_package", "export --aot has nothing to compile with")
_ANY_SIZE = PrivateName("torch.fx.experimental._config", "backed_size_oblivious", "packages refuse a single row")

AOTI_TRIAL = "import sys, torch; torch._C._aoti.AOTIModelPackageLoader(sys.argv[1], sys.argv[2], False, 1, -1)"
"""Code that loads a package (file, model) in another process, which has no ftn_pytorch."""


def aoti_loader(path: str, model: str, device_index: int) -> Any:
    """The loader of a package; -1 for the current device. torch._inductor.aoti_load_package is no more public, and its
    models cannot be given a list of inputs as it is.
    """
    return _AOTI_LOADER.value()(path, model, False, 1, device_index)


def archive_version() -> str:
    """The version of ``.pt2`` archives that this torch reads. torch tells it nowhere else."""
    return _ARCHIVE_VERSION.value()


def tree_spec(text: str) -> Any:
    """A tree of inputs or results from its text in a package. torch.utils.pytree knows trees of its own only."""
    return _TREESPEC_LOADS.value()(text)


def tree_unflatten() -> Callable[[list, Any], Any]:
    """The function that makes containers from a list of leaves and a tree of torch.export."""
    return _TREE_UNFLATTEN.value()


def is_operator(name: str) -> bool:
    """Whether a name such as "torch.ops.aten.add.Tensor" is that of an operator. torch.ops holds functions, too."""
    found: Any = sys.modules.get("torch")
    if not name.startswith("torch.ops."):
        return False
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return isinstance(found, (_OPERATOR.value(), _HIGHER_OPERATOR.value()))


def aoti_compile(program: Any, path: str, settings: Mapping[str, Any]) -> None:
    """Compile an exported program to a package. What torch documents for this is a private module."""
    _AOTI_COMPILE.value()(program, package_path=path, inductor_configs=dict(settings))


def any_batch_size() -> contextlib.AbstractContextManager:
    """Export with one row as a batch like any other. No public option; without it packages refuse one row."""
    if not _ANY_SIZE.is_there():
        return contextlib.nullcontext()
    config = importlib.import_module(_ANY_SIZE.owner)
    return config.patch(**{_ANY_SIZE.name: True})


FORMER_COLLECTIVES = {"_allgather_base": "all_gather_single", "_reduce_scatter_base": "reduce_scatter_single"}
"""Methods of process groups as torch before 2.13 calls them."""

# ---- torch.compile

_COMPILE = "compile= of load cannot be used"
_WORKER_START = PrivateName("torch._inductor.config", "worker_start_method", _COMPILE)
_COMPILE_THREADS = PrivateName("torch._inductor.config", "compile_threads", _COMPILE)
_CXX = PrivateName("torch._inductor.cpp_builder", "get_cpp_compiler", _COMPILE)
_CALL = PrivateName("torch:nn.Module", "_call_impl", _COMPILE)
_COMPILED_CALL = PrivateName("torch:nn.Module", "_compiled_call_impl", _COMPILE)
_WRAPPER = PrivateName("torch._dynamo.eval_frame", "OptimizedModule", "networks compiled by a script are not known")
_WRAPPED = PrivateName("torch._dynamo.eval_frame:OptimizedModule", "_orig_mod", _WRAPPER.without, "__init__")


def compile_in_own_processes() -> None:
    """Inductor starts its workers as programs of their own. Its variable is read once, maybe before this is called."""
    _set_inductor(_WORKER_START, "subprocess")


def compile_without_workers() -> None:
    """Inductor compiles in this process. As above."""
    _set_inductor(_COMPILE_THREADS, 1)


def _set_inductor(setting: PrivateName, value: Any) -> None:
    setting.value()
    setattr(importlib.import_module(setting.owner), setting.name, value)


def find_cxx() -> None:
    """Raises if inductor has no C++ compiler. By public means that shows in the first call only."""
    _CXX.value()()


def plain_call(module: Any) -> Callable:
    """What a torch.nn.Module does when it is called, whatever has been compiled. Its ``__call__`` runs the latter."""
    return _CALL.of(module)


def set_compiled_call(module: Any, call: Callable) -> None:
    """Let calls of a torch.nn.Module run this. Its ``compile()`` leaves modules of torch's own as they are."""
    _COMPILED_CALL.of(module)
    setattr(module, _COMPILED_CALL.name, call)


def is_compiled(module: Any) -> bool:
    """True for a torch.nn.Module that somebody has compiled. torch tells by nothing public."""
    return _COMPILED_CALL.of(module) is not None or uncompiled(module) is not module


def uncompiled(module: Any) -> Any:
    """The module that torch.compile was given, from the one that it returned; any other as it is."""
    if "torch._dynamo" not in sys.modules or not isinstance(module, _WRAPPER.value()):
        return module
    return _WRAPPED.of(module)


# ---- recorded functions

_RECORDED = "recorded functions run as if they were not recorded"
_DISPATCH_MODE = PrivateName("torch.utils._python_dispatch", "TorchDispatchMode", _RECORDED)
_SCHEMA = PrivateName("torch._ops:OpOverload", "_schema", _RECORDED, "__init__")
_KEYS = PrivateName("torch._C", "DispatchKey", _RECORDED)
_NET, _OPTIMIZER = "torch:nn.Module", "torch:optim.Optimizer"
_OF_NETS = "forward:forward_ forward_pre:forward_pre_ backward:backward_ backward_pre:full_backward_pre_"
_OF_OPTIMIZERS = "optimizer_step_pre:step_pre_ optimizer_step_post:step_post_"
_HOOKS = tuple(
    PrivateName(owner, f"_{name}_hooks", "hooks are not seen where functions are recorded", f"register_{used_in}hook")
    for owner, names in ((_NET, _OF_NETS), (_OPTIMIZER, _OF_OPTIMIZERS))
    for name, _, used_in in (each.partition(":") for each in names.split())
)
_COMMON_HOOKS = {
    of: tuple(PrivateName(owner, name.format(each), _HOOKS[0].without) for each in kinds.split())
    for of, owner, name, kinds in (
        ("modules", "torch.nn.modules.module", "_global_{}_hooks", "forward forward_pre backward backward_pre"),
        ("optimizers", "torch.optim.optimizer", "_global_optimizer_{}_hooks", "pre post"),
    )
}
_TENSOR_HOOKS = tuple(
    PrivateName("torch:Tensor", name, _HOOKS[0].without) for name in ("_backward_hooks", "_post_accumulate_grad_hooks")
)
_MADE = {"_parameters": "register_parameter", "_buffers": "register_buffer", "_modules": "add_module"}
_TABLES = tuple(PrivateName(_NET, name, _RECORDED, used_in) for name, used_in in _MADE.items())
_PASSING = PrivateName(_NET, "_non_persistent_buffers_set", "checkpoints lack some buffers", "register_buffer")
_TRANSFORMS = "recorded functions are not seen by torch.func, torch.vmap and torch.autograd.forward_ad"
_FORWARD_LEVEL = PrivateName("torch.autograd.forward_ad", "_current_level", _TRANSFORMS)
_INTERPRETERS = PrivateName("torch._C:_functorch", "peek_interpreter_stack", _TRANSFORMS)
_COLLECTIVES = "average_gradients cannot be used"
_ALL_REDUCE = PrivateName("torch:ops._c10d_functional", "all_reduce", _COLLECTIVES)
_WAIT = PrivateName("torch:ops._c10d_functional", "wait_tensor", _COLLECTIVES)
_ASSERT = PrivateName("torch:ops.aten", "_assert_async", _COLLECTIVES)
_COPY_ALL = PrivateName("torch", "_foreach_copy_", "Background cannot be used")


def is_forward_differentiated() -> bool:
    """True within torch.autograd.forward_ad.dual_level, of any thread. torch tells it by nothing public."""
    module = sys.modules.get(_FORWARD_LEVEL.owner)
    return module is not None and _FORWARD_LEVEL.of(module) >= 0


def is_transformed() -> bool:
    """True within a transform of torch.func: grad, vmap, jvp and their like. torch tells it by nothing public."""
    return _INTERPRETERS.value()() is not None


def all_reduce(tensor: Any, operation: str, group: Any) -> Any:
    """A new tensor, reduced over a group. What torch documents waits outside of operators, which nothing records."""
    return _WAIT.value()(_ALL_REDUCE.value()(tensor, operation, group.group_name))


def assert_later(is_true: Any, text: str) -> None:
    """Raise if a tensor is not true, as an operator, which a recording makes again. torch._assert has no such form."""
    _ASSERT.value().msg(is_true, text)


def copy_all(to: list[Any], of: list[Any]) -> None:
    """Copy tensors in one operation: each one of its own would hand the interpreter lock to another thread."""
    if to:
        _COPY_ALL.value()(to, of)


def dispatch_mode() -> type | None:
    """The class of modes that see every operator call, None if it is gone; used all over, and documented nowhere."""
    return _DISPATCH_MODE.value() if _DISPATCH_MODE.is_there() else None


def has_kernel(operator: Any, key: str) -> bool:
    """Whether an operator has a kernel of its own, of "CPU" or "CompositeImplicitAutograd", say."""
    return operator.has_kernel_for_dispatch_key(getattr(_KEYS.value(), key))


def schema_of(operator: Any) -> Any:
    """Names, defaults and aliases of the arguments of an operator."""
    return _SCHEMA.of(operator)


def tables_of(module: Any) -> list[dict[str, Any]]:
    """The dicts that hold parameters, buffers and layers of a torch.nn.Module. Its methods give copies."""
    return [table.of(module) for table in _TABLES]


def passing_buffers(module: Any) -> list[str]:
    """Names of the buffers of a torch.nn.Module that its ``state_dict`` leaves out."""
    return [name for name in getattr(module, _PASSING.name, ()) if name in _TABLES[1].of(module)]


def hooks_of(value: Any) -> list[dict]:
    """The dicts that hold the hooks of a module or an optimizer."""
    found = [getattr(value, hook.name, None) for hook in _HOOKS]
    return [each for each in found if isinstance(each, dict)]


def hooks_of_all(of: str) -> list[dict]:
    """The same for all "modules" or "optimizers", as register_module_forward_hook and its like have set them."""
    return [hook.value() for hook in _COMMON_HOOKS[of]]


MODULES_OF_MODES = ("torch.utils._python_dispatch", "torch.overrides")
"""What a recorder switches there by itself."""


def has_hooks(value: Any) -> bool:
    """True for a module, an optimizer or a tensor that somebody has given a hook."""
    return any(getattr(value, hook.name, None) for hook in (*_HOOKS, *_TENSOR_HOOKS))


# ---- tensors and models

_TENSOR_VERSION = PrivateName("torch:Tensor", "_version", "scripts cannot compute on a device")
_BASE = PrivateName("torch:Tensor", "_base", "tensors with graphs cannot be outputs of calls")
_UNSEEN = PrivateName("torch:_C", "DisableTorchFunction", _TENSOR_VERSION.without)
_SCRIPT_CORE = PrivateName("torch:jit.RecursiveScriptModule", "_c", "no TorchScript model runs in Python", "__init__")
_SCRIPT_METHODS = PrivateName("torch._C:ScriptModule", "_method_names", _SCRIPT_CORE.without)
_SCRIPT_TYPE = PrivateName(_SCRIPT_CORE.owner, "_concrete_type", "checkpoints lack some of TorchScript", "_reconstruct")
_SCRIPT_FUNCTION = PrivateName("torch._C", "_create_function_from_graph", "TorchScript trains with other last bits")
_METADATA = PrivateName("torch:nn.Module", "_metadata", "checkpoints do not keep the versions of layers", "state_dict")

_RENAMES = "checkpoints of modules that rename their parameters are refused"
_LOAD_HOOKS = PrivateName("torch:nn.Module", "_load_state_dict_pre_hooks", _RENAMES, "_load_from_state_dict")
_LOAD_OWN = PrivateName("torch:nn.Module", "_load_from_state_dict", _RENAMES)


def version_of(tensor: Any) -> int:
    """How often a tensor was changed in place. No public name; comparing the numbers would read all of them. Modes of
    __torch_function__, such as that of a recording, do not see this question.
    """
    with unseen():
        return _TENSOR_VERSION.of(tensor)


def unseen() -> Any:
    """A context in which no mode and no class of tensors sees what is called. The public one is for modes alone."""
    return _UNSEEN.value()()


def viewed(tensor: Any) -> Any:
    """The tensor of which autograd knows this one as a view; None for no view. No public name."""
    return _BASE.of(tensor)


def version_getter() -> Any:
    """What a mode of __torch_function__ is told when a function asks for the version of a tensor."""
    return _TENSOR_VERSION.value().__get__


def script_methods(model: Any) -> list[str]:
    """Names of the methods of a TorchScript model. ``dir`` lists those of torch.nn.Module, too."""
    return _SCRIPT_METHODS.of(_SCRIPT_CORE.of(model))()


def script_attributes(module: Any) -> list[str]:
    """Names of what a TorchScript module holds; ``state_dict`` tells parameters and buffers only."""
    return list(_SCRIPT_TYPE.of(module).get_attributes())


def own_copy(model: Any, method: Any) -> Callable | None:
    """A method of a TorchScript model as it is written, with plans of its own; None without the name for it. What
    torch.jit has rewritten for a method is used for all its calls, and by no public name does it forget that.
    """
    if not _SCRIPT_FUNCTION.is_there():
        return None
    return functools.partial(_SCRIPT_FUNCTION.value()(method.name, method.graph.copy()), _SCRIPT_CORE.of(model))


def metadata_of(state: Any) -> Any:
    """What a state_dict says of its layers beside their tensors, None for other dicts; load_state_dict reads it."""
    return getattr(state, _METADATA.name, None)


def set_metadata(state: Any, metadata: Any) -> None:
    """The reverse."""
    setattr(state, _METADATA.name, metadata)


def changes_state_when_loaded(module: Any) -> bool:
    """True if load_state_dict of a module may take names or shapes other than its own. No public name lists hooks."""
    import torch

    own = getattr(torch.nn.Module, _LOAD_OWN.name, None)
    return any(
        getattr(each, _LOAD_HOOKS.name, None) or getattr(type(each), _LOAD_OWN.name, own) is not own
        for each in module.modules()
    )


# ---- schedulers that the core has run

_SCHEDULER, _WARNS = "torch:optim.lr_scheduler.LRScheduler", "torch may warn of an order of steps that was right"
_STEP_COUNT = PrivateName(_SCHEDULER, "_step_count", _WARNS, "step")
_STEPPED = PrivateName(_SCHEDULER, "_opt_called", _WARNS, "step")
_LAST_RATES = PrivateName(_SCHEDULER, "_last_lr", "last_lr may be wrong where Python takes over", "get_last_lr")


def set_progress(scheduler: Any, steps: int, rates: list[float]) -> None:
    """Give a scheduler the state after so many steps, with that of its creation, and the learning rates of the last."""
    scheduler.load_state_dict({"last_epoch": steps - 1, _STEP_COUNT.name: steps, _LAST_RATES.name: rates})


def set_stepped(optimizer: Any, is_stepped: bool) -> None:
    """Whether an optimizer has made a step since it has schedulers, which these ask for."""
    setattr(optimizer, _STEPPED.name, is_stepped)


# ---- ONNX Runtime

_SLOWER = "a call of an ONNX model takes 1 us longer"
_SESSION = PrivateName("onnxruntime:InferenceSession", "_sess", _SLOWER, "run")
_BINDING = PrivateName("onnxruntime:IOBinding", "_iobinding", _SLOWER, "bind_input")


def bound_run(session: Any, binding: Any) -> Callable[[], Any]:
    """A run of a session with an IOBinding. The public method takes 1 us more, for a feature of another device."""
    run = getattr(getattr(session, _SESSION.name, None), "run_with_iobinding", None)
    inner = getattr(binding, _BINDING.name, None)
    if run is None or inner is None:
        return functools.partial(session.run_with_iobinding, binding)
    return functools.partial(run, inner, None)


# ---- threads, of which threading tells what made them by their class only

_FOREIGN_THREAD = PrivateName("threading", "_DummyThread", "threads of the program count as threads of the script")


def is_thread_of_script() -> bool:
    """True in a thread that Python has started, False in those of the program."""
    here = threading.current_thread()
    foreign = _FOREIGN_THREAD.value() if _FOREIGN_THREAD.is_there() else ()
    return here is not threading.main_thread() and not isinstance(here, foreign)


# ---- the end of Python, which has no public name short of finalizing

_CUT_OFF = "threads and exit functions of scripts are cut off when the program ends"
_JOIN_THREADS = PrivateName("threading", "_shutdown", _CUT_OFF)
_EXIT_FUNCTIONS = PrivateName("atexit", "_run_exitfuncs", _CUT_OFF)


def join_threads() -> None:
    """Wait for all threads that are no daemons."""
    if sys.version_info < (3, 13):
        # The thread that ends the process takes the place of the one that started Python: before 3.13, _shutdown called
        # in any other thread waits for that one, too, which never ends.
        threading.main_thread()._ident = threading.get_ident()  # type: ignore[attr-defined]
    _JOIN_THREADS.value()()


def run_exit_functions() -> None:
    """Run what was registered with atexit."""
    _EXIT_FUNCTIONS.value()()
