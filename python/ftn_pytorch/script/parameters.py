# SPDX-License-Identifier: MIT
"""Parameters of a loaded model by name, and functions that every runner adds to its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..values import dtype_name, loaded, user_objects
from ..values.walk import Kind, Walk, kind_of

PARAMETERS = "ftn_pytorch_parameters"
OPTIMIZER = "ftn_pytorch_optimizer"
AVERAGED = "ftn_pytorch_averaged"


# What gives the function of a name, which makes an object for a model; ``opening`` knows them.
makers: dict[str, Callable[[], Callable]] = {}


def is_own(name: str) -> bool:
    """True for the functions that this adds."""
    return name in (PARAMETERS, OPTIMIZER, AVERAGED)


def own_function(runner: Any, name: str) -> Callable | None:
    """One of these functions, None where the model has nothing that it could work on."""
    if not is_own(name) or not runner.networks():
        return None
    return functools.partial(named if name == PARAMETERS else makers[name](), runner)


def refusal(path: str) -> FtnPytorchError:
    """The failure for a model without."""
    return FtnPytorchError(
        "HOOK",
        f"{path} has no parameters that can be reached: those of scripts, TorchScript models, programs of torch.export "
        "and pickled modules can be, and a script needs a name for each of its networks",
    )


def named(runner: Any) -> dict[str, Any]:
    """Parameters by name, "net.0.weight", each one once.

    In a script the name of the network comes first. ARGUMENT if a lazy one has no shape yet.
    """
    return dict(_each(runner, "named_parameters"))


def trainable(runner: Any) -> list[Any]:
    """Those that require gradients; ARGUMENT if none does."""
    found = [each for each in named(runner).values() if each.requires_grad]
    if not found:
        raise FtnPytorchError(
            "ARGUMENT",
            f"no parameter of {runner.path} requires gradients, so there is nothing to train: fetch them with "
            "parameters(...) and call set_requires_grad, unless the model was frozen when it was written",
        )
    return found


def buffers(runner: Any) -> list[Any]:
    """Buffers of all networks, such as the statistics of batch normalization."""
    return [each for _, each in _each(runner, "named_buffers")]


def weights(runner: Any, network: str) -> dict[str, Any]:
    """Parameters and buffers of a network of a script, by their names in it, in host memory.

    ``network`` is a name of the script, which may lead on ("nets.0", "background.published"), or empty for its only
    network. A tensor that is shared has all of its names, as in saved models.
    HOOK if there is no such network.
    """
    found = runner.networks()
    chosen = found.get(network, runner.value(network)) if network else None
    if not network and len(found) == 1:
        (chosen,) = found.values()
    if chosen is None or not isinstance(chosen, loaded("torch").nn.Module):
        listed = ", ".join(found) or "no network"
        wanted = f"no network {network!r}" if network else "more or less than one network"
        raise FtnPytorchError("HOOK", f"{runner.path} has {wanted} to publish, but {listed}: name one by name=")
    from ..system import private_names

    chosen = private_names.uncompiled(chosen)
    return {name: each.detach().cpu().contiguous() for name, each in _all_names(chosen).items()}


def _all_names(module: Any) -> dict[str, Any]:
    return dict((*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)))


def assign(runner: Any, values: Mapping[str, Any]) -> None:
    """Copy to all parameters and buffers of a saved model; HOOK for what has none.

    SHAPE where it is another network, DTYPE where numbers would lose digits, and nothing is changed then.
    """
    torch = loaded("torch")
    networks = runner.networks()
    if list(networks) != [""]:
        raise FtnPytorchError("HOOK", f"{runner.path} takes no weights: publish to a saved model that has parameters")
    (module,) = networks.values()
    here = _all_names(module)
    shapes = [{name: each.shape for name, each in listed.items()} for listed in (here, values)]
    wrong = [name for name in {**here, **values} if shapes[0].get(name) != shapes[1].get(name)]
    if wrong:
        raise FtnPytorchError(
            "SHAPE", f"the network is another one than that of {runner.path}: they differ in {', '.join(wrong)}"
        )
    require_digits(values, here, "DTYPE", runner.path)
    with torch.no_grad():
        for name, value in values.items():
            here[name].copy_(value)


def require_digits(values: Mapping[str, Any], here: Mapping[str, Any], status: str, path: str) -> None:
    """DTYPE or another status where numbers would lose digits on their way. Both have the same names."""
    torch = loaded("torch")
    for name, kept in here.items():
        if torch.promote_types(values[name].dtype, kept.dtype) != kept.dtype:
            raise FtnPytorchError(
                status,
                f"the weights would lose digits: {name} is {dtype_name(values[name])}, and {dtype_name(kept)} in "
                f"{path}. Take them from a copy of the network that has this type, or write the model from this one",
            )


def networks_in(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Networks among the names of a script, also in lists, dicts and objects of own classes, and lone parameters."""
    torch = loaded("torch")
    if torch is None:
        return {}
    found: dict[int, tuple[str, Any]] = {}
    names = [each for each in list(namespace.items()) if not each[0].startswith("__")]
    # one name after the other, which is the order of parameters in files
    for edge in (edge for each in names for edge in Walk([each], enters=_may_hold_networks, is_dotted=True)):
        kind = kind_of(edge.value)
        is_parameter = kind is Kind.TENSOR and edge.value.is_leaf and edge.value.requires_grad
        if kind is Kind.MODULE or is_parameter or type(edge.value) is torch.nn.Parameter:
            found.setdefault(id(edge.value), (edge.path, edge.value))
    return dict(found.values())


def _may_hold_networks(value: Any, kind: Kind) -> bool:
    return kind is Kind.CONTAINER or (kind is Kind.OBJECT and user_objects.is_plain(type(value)))


def _each(runner: Any, kind: str) -> Iterator[tuple[str, Any]]:
    from ..system import private_names

    torch = loaded("torch")
    is_lazy = torch.nn.parameter.is_lazy
    seen: set[int] = set()
    for path, value in runner.networks().items():
        if isinstance(value, torch.nn.Module):
            inside = getattr(private_names.uncompiled(value), kind)()
        else:
            inside = [("", value)] if kind == "named_parameters" else []
        for name, each in inside:
            full = f"{path}.{name}".strip(".")
            if is_lazy(each):
                raise FtnPytorchError("ARGUMENT", f"{full} of {runner.path} has no shape before the first forward")
            if id(each) not in seen:
                seen.add(id(each))
                yield full, each
