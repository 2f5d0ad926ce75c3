# SPDX-License-Identifier: MIT
"""Values as text and arrays, so that neither checkpoints nor recordings hold pickled objects.

A value becomes JSON, in which what JSON does not know is a dict with the key ``~``: ``{"~": "tuple", "items": [...]}``.
Tensors and NumPy arrays go into a dict beside it, under the path that leads to them ("net/0.weight"). Numbers, texts
and arrays come back bit for bit. Known are None, bool, int, float, complex, str, bytes, list, tuple and named
tuples, dict, OrderedDict, defaultdict, Counter, set, frozenset, deque, SimpleNamespace, numbers and arrays of NumPy,
tensors, and what ``python_types`` knows; in checkpoints also objects of a user's own classes, and functions and classes
of the user, by their names. A second way to an object is ``{"~": "same", "as": name}``, the first one has ``"as"``.
"""

from __future__ import annotations

import base64
import functools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

from ..system import private_names
from . import is_array, is_number, is_tensor, loaded, python_types, user_objects
from .user_objects import find_imported_type

TAG = "~"
OBJECT = "object"
INSTANCE = "instance"
CYCLE = "cycle"
CODE = "code"
INSTALLED = "installed"
UNKNOWN = "unknown"
SAME = "same"
LABEL = "as"
VIEW = "view"

_JSON = frozenset((type(None), bool, int, float, str))

# Finds the class of a named tuple or of an own object by its name, None if there is none.
FindType = Callable[[str], Any]


class Unstorable(ValueError):
    """A value of a kind that is not known; ``str`` says where it is and what it is."""


class Encoder:
    """Collects the arrays of all values that it encodes."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}

    def encode(self, value: Any, path: str) -> Any:
        """The tree of a value; Unstorable if there is something in it that is not known."""
        try:
            return self._encode(value, path)
        except RecursionError:
            raise Unstorable(f"{path} contains itself, or is nested too deeply") from None

    def _other(self, value: Any, path: str) -> Any:
        """The tree of an object that is no value, None if there is none."""
        return None

    def _values(self, values: Any, path: str) -> Any:
        """The tree of a container whose items can be replaced, but not changed."""
        return self._encode(list(values), path)

    def _encode(self, value: Any, path: str) -> Any:
        if value is None or type(value) in _JSON:
            return value
        if (name := self._known_as(value)) is not None:
            return {TAG: SAME, LABEL: name}
        label = self._label_of(value)
        tree = self._tree(value, path)
        return tree if label is None else _labelled(tree, label)

    def _known_as(self, value: Any) -> str | None:
        """The name of an object that is told elsewhere."""
        return None

    def _label_of(self, value: Any) -> str | None:
        """What others call an object that is told here; None where there is only this way to it."""
        return None

    def _tree(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind is list:
            return self._items(value, path)
        if kind is dict:
            return self._mapping(value, path)
        if kind is defaultdict:
            factory = self._factory(value, path)
            pairs = {TAG: "defaultdict", "factory": factory, "items": self._pairs(value, path)}
            return self._mapping(value, path) if factory is Ellipsis else pairs
        if is_tensor(value) and self._is_plain_tensor(value, path):
            return self._tensor(value, path)
        if is_array(value) or is_number(value):
            return self._array(value, path)
        tree = self._other(value, path)
        return tree if tree is not None else self._tagged(value, path)

    def _items(self, values: Any, path: str) -> list:
        if type(values) is list and set(map(type, values)) <= _JSON:
            return values.copy()
        return [self._encode(value, f"{path}/{index}") for index, value in enumerate(values)]

    def _pairs(self, value: Mapping, path: str) -> list:
        pairs = []
        for number, (key, each) in enumerate(value.items()):
            place = f"{path}/{key if type(key) in _JSON else f'({number})'}"
            pairs.append([self._key(key, f"{path} (a key)"), self._encode(each, place)])
        return pairs

    def _key(self, key: Any, path: str) -> Any:
        return self._encode(key, path)

    def _mapping(self, value: Mapping, path: str) -> dict:
        if all(type(key) is str and key != TAG for key in value):
            return {key: self._encode(each, f"{path}/{key}") for key, each in value.items()}
        return {TAG: "dict", "items": self._pairs(value, path)}

    def _tagged(self, value: Any, path: str) -> dict:
        kind = type(value)
        if kind is complex:
            return {TAG: "complex", "parts": [value.real, value.imag]}
        if kind in (bytes, bytearray):
            return {TAG: kind.__name__, "data": base64.b64encode(value).decode()}
        if kind in (set, frozenset):
            return {TAG: kind.__name__, "items": self._values(value, path)}
        if isinstance(value, tuple) and (kind is tuple or hasattr(kind, "_fields")):
            tree = {TAG: "tuple", "items": self._items(value, path)}
            return tree if kind is tuple else {**tree, "type": f"{kind.__module__}:{kind.__qualname__}"}
        if kind in python_types.NAMESPACES.values():
            return {TAG: kind.__name__, "items": self._pairs(vars(value), path)}
        if kind is deque:
            return {TAG: "deque", "items": self._values(value, path), "maxlen": value.maxlen}
        if kind is Counter:
            return {TAG: "Counter", "items": self._pairs(value, path)}
        if kind is OrderedDict:
            tree = {TAG: "OrderedDict", "items": self._pairs(value, path)}
            # state_dict() of a torch.nn.Module: versions of its layers
            metadata = private_names.metadata_of(value)
            return tree if metadata is None else {**tree, "metadata": self._encode(metadata, f"{path} (its metadata)")}
        if loaded("torch") and kind is loaded("torch").Size:
            return {TAG: "tuple", "items": list(value)}
        found = python_types.parts_of(value)
        if found is not None:
            return {TAG: found[0], "parts": found[1]}
        raise Unstorable(f"{path} is of type {kind.__module__}.{kind.__qualname__}")

    def _factory(self, value: defaultdict, path: str) -> Any:
        """The name of what makes missing values, None for nothing; Ellipsis if it is stored as a dict."""
        factory = value.default_factory
        named: dict[Any, str] = {kind: name for name, kind in python_types.FACTORIES.items()}
        return None if factory is None else named.get(factory, Ellipsis)

    def _is_plain_tensor(self, value: Any, path: str) -> bool:
        torch = loaded("torch")
        if type(value.detach()) is not torch.Tensor or value.is_nested:
            raise Unstorable(f"{path} is of type {type(value).__qualname__}, a tensor with behaviour of its own")
        if value.is_meta:
            raise Unstorable(f"{path} is a tensor on the device 'meta', which has no numbers")
        return True

    def _tensor(self, value: Any, path: str) -> dict:
        tree: dict[str, Any] = {TAG: "tensor", "at": self._put(path, value.detach().resolve_conj().resolve_neg())}
        if value.device.type != "cpu":
            tree["device"] = str(value.device)
        if isinstance(value, loaded("torch").nn.Parameter):
            tree["parameter"] = True
        return {**tree, "grad": True} if value.requires_grad and value.is_leaf else tree

    def _array(self, value: Any, path: str) -> dict:
        numpy = loaded("numpy")
        kind = type(value)
        if not isinstance(value, numpy.ndarray) and not value.dtype.names:
            return {TAG: "number", "at": self._put(path, numpy.asarray(value))}
        if kind not in (numpy.ndarray, numpy.memmap, numpy.matrix, numpy.ma.MaskedArray):
            raise Unstorable(f"{path} is of type {kind.__module__}.{kind.__qualname__}")
        tree = self._array_in_place(value, path)
        return {**tree, "matrix": True} if kind is numpy.matrix else tree

    def _array_in_place(self, value: Any, path: str) -> dict:
        """The numbers of an array, of whatever class: what they are put back into has it."""
        numpy = loaded("numpy")
        if value.dtype.hasobject:
            raise Unstorable(f"{path} is a NumPy array of {value.dtype}")
        tree: dict[str, Any] = {TAG: "array"}
        plain = numpy.asarray(value)
        if isinstance(value, numpy.ma.MaskedArray):
            mask = f"{path} (its mask)"
            tree.update(mask=self._array(numpy.ma.getmaskarray(value), mask), fill=self._encode(value.fill_value, mask))
            plain = numpy.asarray(value.data)
        if value.dtype.names:
            tree["fields"] = _fields_of(value.dtype, path)
            plain = numpy.ascontiguousarray(plain)[..., None].view(numpy.uint8)
        if plain.flags.fnc:
            tree["order"] = "F"
        return {**tree, "at": self._put(path, plain)}

    def _put(self, path: str, array: Any) -> str:
        name, number = path, 2
        while name in self.arrays:
            name, number = f"{path}~{number}", number + 1
        self.arrays[name] = self._kept(array)
        return name

    def _kept(self, array: Any) -> Any:
        """What stands in ``arrays`` for an array."""
        torch = loaded("torch")
        is_strided = is_tensor(array) and array.layout == torch.strided
        if is_strided and array.untyped_storage().nbytes() > array.nelement() * array.element_size():
            # torch.save would write all of the storage that a view looks at.
            return array.clone()
        return array


def _fields_of(kind: Any, path: str) -> list[Any]:
    """What a structured type of NumPy is made of."""
    found = kind.descr
    if any(len(each) != 2 or not each[0] or not isinstance(each[1], str) for each in found):
        raise Unstorable(f"{path} is a NumPy array of {kind}")
    return [list(each) for each in found]


def _labelled(tree: Any, label: str) -> dict:
    if isinstance(tree, list):
        return {TAG: "list", "items": tree, LABEL: label}
    if TAG in tree:
        return {**tree, LABEL: label}
    return {TAG: "dict", "items": [list(pair) for pair in tree.items()], LABEL: label}


def decode(tree: Any, arrays: Mapping[str, Any], find_type: FindType) -> Any:
    """The value that a tree was made of. Tensors go back to their device if it is there, else they stay on the host."""
    return Decoder(arrays, find_type).value(tree)


class Decoder:
    """Values of trees. ``known``: objects by name, those of trees among them as soon as they are made.

    ``knows`` tells functions and classes of packages that the script uses: a file can name no others.
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        find_type: FindType,
        known: Mapping[str, Any] | None = None,
        knows: Callable[[Any], bool] = lambda code: False,
    ) -> None:
        self.arrays, self.find_type, self._knows = arrays, find_type, knows
        self.known: dict[str, Any] = dict(known or {})

    def value(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return tree.copy() if set(map(type, tree)) <= _JSON else [self.value(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        if TAG not in tree:
            return {key: self.value(each) for key, each in tree.items()}
        if tree[TAG] == SAME:
            if tree[LABEL] not in self.known:
                raise Unstorable(f"it refers to {tree[LABEL]}, which is not there")
            return self.known[tree[LABEL]]
        if tree[TAG] in _FILLED:
            # there before its items, which may refer to it
            made: Any = _FILLED[tree[TAG]]()
            self._made(tree, made)
            items = self.value(tree["items"])
            made.extend(items) if tree[TAG] == "list" else made.update(items)
            if "metadata" in tree:
                private_names.set_metadata(made, self.value(tree["metadata"]))
            return made
        return self._instance(tree) if tree[TAG] == INSTANCE else self._made(tree, self._tagged(tree[TAG], tree))

    def _made(self, tree: Mapping[str, Any], value: Any) -> Any:
        if LABEL in tree:
            self.known[tree[LABEL]] = value
        return value

    def _tagged(self, tag: str, tree: Mapping[str, Any]) -> Any:
        if tag == "tensor":
            return _to_device(self.arrays[tree["at"]], tree)
        if tag == VIEW:
            base = self.known[tree["of"]] if "of" in tree else self.arrays[tree["at"]]
            if "type" in tree:
                shape = tree["sizes"], tree["type"]
                return loaded("numpy").ndarray(*shape, base.data, tree["offset"], tree["strides"])
            return base.detach().as_strided(tree["sizes"], tree["strides"], tree["offset"])
        if tag == "array" and "at" in tree:
            return _array(self.arrays[tree["at"]], tree, self)
        if tag == "number":
            return self.arrays[tree["at"]][()]
        if tag == UNKNOWN:
            raise Unstorable(f"an object of type {tree['type']} was passed, which is not stored")
        if tag == "complex":
            return complex(*tree["parts"])
        if tag in ("bytes", "bytearray"):
            return {"bytes": bytes, "bytearray": bytearray}[tag](base64.b64decode(tree["data"]))
        if tag == CYCLE:
            raise Unstorable("it holds an object that refers to itself, which cannot be made again")
        if tag == CODE:
            return _code(tree, self.find_type)
        if tag == INSTALLED:
            return self._installed(tree["name"])
        if tag == "partial":
            func, args, keywords = self.value([tree["func"], tree["args"], tree["keywords"]])
            return functools.partial(func, *args, **keywords)
        if tag == "method":
            owner = self.value(tree["self"])
            return getattr(type(owner), tree["name"]).__get__(owner, type(owner))
        if "parts" in tree:
            return python_types.make(tag, tree["parts"], self.find_type)
        items = self.value(tree["items"])
        if tag == "defaultdict":
            return defaultdict(_factory(tree["factory"], self.find_type), items)
        if tag in python_types.NAMESPACES:
            return python_types.NAMESPACES[tag](**dict(items))
        if tag == "tuple":
            return _tuple(items, tree.get("type"), self.find_type)
        if tag == "deque":
            return deque(items, tree["maxlen"])
        return Counter(dict(items)) if tag == "Counter" else {"set": set, "frozenset": frozenset}[tag](items)

    def _installed(self, name: str) -> Any:
        found = find_imported_type(name)
        if found is None or not self._knows(found):
            raise Unstorable(f"it holds {name.replace(':', '.')}, which no code of the script mentions")
        return found

    def _can_make(self, kind: type) -> bool:
        """True for a class whose objects are their fields: of the user, or of a package that the script uses."""
        return user_objects.is_plain(kind) or (user_objects.is_made_of_fields(kind) and self._knows(kind))

    def _instance(self, tree: Mapping[str, Any]) -> Any:
        kind = self.find_type(tree["type"])
        if not isinstance(kind, type) or not self._can_make(kind):
            name = tree["type"].replace(":", ".")
            raise Unstorable(f"it holds objects of {name}, which is no class of the script here")
        made = self._made(tree, user_objects.make(kind, {}, None))
        for name, each in self.value(tree["fields"]).items():
            user_objects.set_field(made, name, each)
        if (content := self.value(tree.get("content"))) is not None:
            user_objects.refill(made, content)
        return made


_FILLED: dict[str, Any] = {"list": list, "dict": dict, "OrderedDict": OrderedDict}


def _array(array: Any, tree: Mapping[str, Any], decoder: Decoder) -> Any:
    """An array, or one of a class of NumPy that is more than its numbers."""
    numpy = loaded("numpy")
    if tree.get("order") == "F":
        array = numpy.asfortranarray(array)
    if "fields" in tree:
        array = array.view(numpy.dtype([tuple(each) for each in tree["fields"]]))[..., 0]
    if "mask" in tree:
        return numpy.ma.MaskedArray(array, decoder.value(tree["mask"]), fill_value=decoder.value(tree["fill"]))
    return numpy.asmatrix(array) if tree.get("matrix") else array


def _tuple(items: list, name: str | None, find_type: FindType) -> Any:
    if name is None:
        return tuple(items)
    kind = find_type(name)
    if not (isinstance(kind, type) and issubclass(kind, tuple) and len(getattr(kind, "_fields", ())) == len(items)):
        raise Unstorable(f"it holds named tuples of {name.replace(':', '.')}, which has other fields or is not there")
    return kind._make(items)  # type: ignore[attr-defined]


def _code(tree: Mapping[str, Any], find_type: FindType) -> Any:
    """A function or class of the user; of others a file might name one that does harm."""
    found = find_type(tree["name"])
    if not user_objects.is_own_code(found):
        raise Unstorable(f"it holds {tree['name'].replace(':', '.')}, which is no function or class of the script here")
    return found


def _factory(name: str | None, find_type: FindType) -> Any:
    return name if name is None else python_types.FACTORIES.get(name) or _code({"name": name}, find_type)


def _to_device(tensor: Any, tree: Mapping[str, Any]) -> Any:
    torch = loaded("torch")
    if "device" in tree:
        device = torch.device(tree["device"])
        if device.type != "cuda" or (device.index or 0) < torch.cuda.device_count():
            tensor = tensor.to(device)
    if tree.get("parameter"):
        return torch.nn.Parameter(tensor, requires_grad=bool(tree.get("grad")))
    return tensor.requires_grad_() if tree.get("grad") else tensor
