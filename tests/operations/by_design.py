# SPDX-License-Identifier: MIT
"""What differs by design, with the values of both sides: a row that is not needed, or no more true, fails.

A row: where, operations, statuses of all sides in their order ("-" for an operation that is not there), whether the
arrays that they changed are the same, and why.
"""

from __future__ import annotations

Row = tuple[str, tuple[str, ...], str, str, str]

_WORKERS = "model.pt node, model.pt gpu, model.py node, model.py gpu"
_ALL_WORKERS = f"{_WORKERS}, model.ftr node, model.ftr gpu"

MISSING = {
    "gpu": ("train", "keep", "averages", "steps", "schedules"),
    "node": ("steps", "schedules"),
    "model.ftr": ("steps", "schedules"),
    "model.py gpu": ("options",),
}
"""Themes that a path or a format has not: where ranks share a GPU, nothing is trained or saved; a program makes no
optimizer for what another process has, or for a recording, which has its own. Options of a script in another process
are those of "model.py node", and each load takes two seconds.
"""

_SWAPS = (
    "averages | swap: mean",
    "averages | swap: decay",
    "averages | swap: mean, back",
    "averages | swap: decay, back",
)
_UPDATES = ("averages | update: mean", "averages | update: decay")
_AFTER_SWAP = ("averages | update: mean, of averaged weights", "averages | update: decay, of averaged weights")
_AVERAGED = ("averages | forward: mean, averaged weights", "averages | forward: decay, averaged weights")
_AVERAGE = ("averages | create: mean", "averages | create: decay")
_WRONG_DECAY = ("averages | create: decay of one", "averages | create: a text as decay")
_BY_PYTHON = "torch_averaged needs Python, and a model whose parameters can be reached"

BETWEEN_PATHS: list[Row] = [
    (
        _ALL_WORKERS,
        ("forward | forward: section backwards",),
        "19 0",
        "other",
        "arguments travel to the process that computes, and a copy has other strides",
    ),
    (
        _WORKERS,
        ("tensors | tensor: input that gradients are wanted of",),
        "0 1",
        "other",
        "gradients do not pass from one process to another",
    ),
    (
        _WORKERS,
        ("call | shift: an input that may not change",),
        "21 21",
        "other",
        "refused as well, and what the model has changed is the copy in the process that computes",
    ),
    (
        _WORKERS,
        ("objects | create: no such option",),
        "8 1",
        "same",
        "a program makes no optimizer for what another process has",
    ),
    (_WORKERS, ("objects | create",), "0 1", "same", "as above"),
    (
        "model.ftr node, model.ftr gpu",
        (
            *("objects | create", "objects | create: no such class", "objects | create: no such option"),
            *("objects | create: rate below zero", "objects | create: a text as rate"),
        ),
        "7 1",
        "same",
        "as above",
    ),
    (
        "model.pt python, model.ftr python",
        ("wrong | save by call",),
        "7 0",
        "same",
        "what a saved model needs no Python for has a procedure, save; the runner of Python has it as a function, too",
    ),
    (
        "model.pt python",
        ("keep | checkpoint: no name", "keep | checkpoint: a file"),
        "7 2",
        "same",
        "checkpoints of TorchScript are written and read by Python",
    ),
    (
        "model.pt python",
        ("keep | checkpoint: keep none", "keep | checkpoint: a step below zero", "keep | checkpoint: 4"),
        "7 1",
        "same",
        "as above",
    ),
    ("model.pt python", ("keep | checkpoint: 5", "keep | checkpoint: 5 again"), "7 0", "same", "as above"),
    ("model.pt python", ("keep | restore: 5",), "29 0", "other", "as above: nothing was written to restore from"),
    ("model.pt python", ("keep | restore: a step of a file",), "7 3", "same", "as above: the file is no checkpoint"),
    ("model.pt python", _AVERAGE, "7 0", "same", _BY_PYTHON),
    ("model.pt python", ("averages | create: no such option",), "7 8", "same", _BY_PYTHON),
    ("model.pt python", _WRONG_DECAY, "7 1", "same", _BY_PYTHON),
    ("model.pt python", (*_UPDATES, *_SWAPS), "22 0", "same", _BY_PYTHON),
    ("model.pt python", _AFTER_SWAP, "22 1", "same", _BY_PYTHON),
    ("model.pt python", _AVERAGED, "0 0", "other", _BY_PYTHON),
    (
        "model.pt node, model.ftr node",
        (*_AVERAGE, *_WRONG_DECAY, "averages | create: no such option"),
        "7 1",
        "same",
        "a program averages nothing of what another process has",
    ),
    ("model.py node", _AVERAGE, "0 1", "same", "as above"),
    ("model.py node", ("averages | create: no such option",), "8 1", "same", "as above"),
    ("model.py node", (*_UPDATES, *_SWAPS), "0 22", "same", "as above"),
    ("model.py node", _AFTER_SWAP, "1 22", "same", "as above"),
    ("model.py node", _AVERAGED, "0 0", "other", "as above"),
    (
        "model.pt node",
        ("keep | checkpoint: no name",),
        "7 2",
        "same",
        "the name is looked at before the model is asked",
    ),
]

_PYTHON_TELLS = "torch itself refuses what the model cannot compute; a recording knows types and shapes before it runs"
_HAS_OPTIMIZER = "a program makes the optimizer of TorchScript; a recording and a script have their own"
_NUMBERS = "set and get are for recordings; a script has functions for them"

BETWEEN_FORMATS: list[Row] = [
    (
        "formats",
        ("forward | forward: no samples", "empty | above"),
        "0 14 0",
        "same",
        "a recording holds for batches of a size that was not recorded, but not for none",
    ),
    (
        "formats",
        ("empty | pair", "empty | pair: both axes", "empty | shift: an input that may"),
        "0 14 0",
        "other",
        "as above",
    ),
    ("formats", ("empty | shift: an input that may not change",), "21 14 21", "same", "as above"),
    (
        "formats",
        ("objects | create: no such class", "objects | create: rate below zero", "objects | create: a text as rate"),
        "1 7 1",
        "same",
        "a recording has the optimizer of its script",
    ),
    ("formats", ("objects | create: no such option",), "8 7 8", "same", "as above"),
    ("formats", ("objects | create",), "0 7 0", "same", "as above"),
    (
        "formats",
        (
            *("kinds | input: int8", "kinds | input: complex", "kinds | input: logical"),
            "kinds | input: a copy of integers",
            *("wrong | real64 for real32", "wrong | integers for reals", "wrong | a number", "wrong | a text"),
            "options | forward: integers for reals",
        ),
        "9 13 9",
        "same",
        _PYTHON_TELLS,
    ),
    (
        "formats",
        (
            *("wrong | four features for three", "options | forward: the other layout"),
            *("kinds | input: one axis", "empty | forward: no features"),
        ),
        "9 14 9",
        "same",
        _PYTHON_TELLS,
    ),
    ("formats", ("wrong | setup",), "7 7 0", "same", "a script alone has a setup"),
    ("formats", ("call | has setup",), "no no yes", "same", "as above"),
    ("formats", ("call | has save",), "yes yes no", "same", "a script that has no such hook is saved by the library"),
    (
        "formats",
        ("tensors | tensor: input that gradients are wanted of",),
        "0 1 0",
        "other",
        "a recording records no graph",
    ),
    ("formats", ("tensors | wrap: forward",), "0 0 9", "same", "a function with one parameter gets a wrap as a list"),
    ("formats", ("tensors | adjoint",), "0 7 0", "same", "a recording cannot be differentiated"),
    (
        "formats",
        (
            *("tensors | adjoint: into an array", "tensors | tangent: into an array"),
            "tensors | tangent: of a function that changes its input",
        ),
        "0 7 0",
        "other",
        "as above",
    ),
    ("formats", ("tensors | adjoint: too few gradients",), "14 7 14", "same", "as above"),
    ("formats", ("tensors | adjoint: of logical results",), "1 7 1", "same", "as above"),
    ("formats", ("tensors | adjoint, number of results",), "1 - 1", "same", "as above"),
    ("formats", ("tensors | adjoint, name of result 1",), "'' - ''", "same", "as above"),
    ("formats", ("tensors | adjoint: of the second of one",), "8 7 8", "same", "as above"),
    (
        "formats",
        ("call | shift: an input that may not change",),
        "21 21 21",
        "other",
        "a recording is refused before it runs",
    ),
    (
        "formats",
        ("call | parameters, name of result 1",),
        "first.weight net.0.weight net.0.weight",
        "same",
        "names of the author",
    ),
    (
        "formats",
        ("call | parameters, name of result 2",),
        "first.bias net.0.bias net.0.bias",
        "same",
        "names of the author",
    ),
    (
        "formats",
        ("call | parameters, name of result 3",),
        "last.weight net.2.weight net.2.weight",
        "same",
        "names of the author",
    ),
    (
        "formats",
        ("call | parameters, name of result 4",),
        "last.bias net.2.bias net.2.bias",
        "same",
        "names of the author",
    ),
    ("formats", ("train | train: half a target, and no optimizer",), "7 14 9", "same", _HAS_OPTIMIZER),
    ("formats", ("train | optimizer: adam",), "0 7 7", "same", _HAS_OPTIMIZER),
    (
        "formats",
        ("train | optimizer: rate below zero", "train | optimizer: nesterov without momentum"),
        "1 7 7",
        "same",
        _HAS_OPTIMIZER,
    ),
    ("formats", ("train | train: half a target",), "14 14 9", "same", "the script raises an exception of its own"),
    ("formats", ("train | train: target of real64",), "13 13 9", "same", "as above"),
    ("formats", ("train | train: a number as target",), "1 13 9", "same", _PYTHON_TELLS),
    (
        "formats",
        ("train | set: rate", "train | set: a logical", "train | set: the rate of before"),
        "7 0 7",
        "same",
        _NUMBERS,
    ),
    ("formats", ("train | get: rate",), "7 0 7", "other", _NUMBERS),
    (
        "formats",
        ("train | get: no such number", "train | set: no such number", "train | set: zero"),
        "7 1 7",
        "same",
        _NUMBERS,
    ),
    ("formats", ("train | set: no value", "train | set: an array"), "7 8 7", "same", _NUMBERS),
    (
        "formats",
        ("keep | restore: a step of a file",),
        "7 29 29",
        "same",
        "a file of TorchScript has no step; checkpoints of TorchScript are written and read by Python",
    ),
    ("formats", ("keep | checkpoint: no name", "keep | checkpoint: a file"), "7 2 2", "same", "as above"),
    (
        "formats",
        ("keep | checkpoint: keep none", "keep | checkpoint: a step below zero", "keep | checkpoint: 4"),
        "7 1 1",
        "same",
        "as above",
    ),
    ("formats", ("keep | checkpoint: 5", "keep | checkpoint: 5 again"), "7 0 0", "same", "as above"),
    ("formats", ("keep | restore: 5",), "29 0 0", "other", "as above"),
    ("formats", _AVERAGE, "7 7 0", "same", _BY_PYTHON),
    ("formats", ("averages | create: no such option",), "7 7 8", "same", _BY_PYTHON),
    ("formats", _WRONG_DECAY, "7 7 1", "same", _BY_PYTHON),
    ("formats", (*_UPDATES, *_SWAPS), "22 22 0", "same", _BY_PYTHON),
    ("formats", _AFTER_SWAP, "22 22 1", "same", _BY_PYTHON),
    ("formats", _AVERAGED, "0 0 0", "other", _BY_PYTHON),
]

CHANGED = {"call | shift: an input that may not change": ["x"]}
"""Refused operations that leave something all the same, and in which arrays: this one is changed, outputs are not."""

DRAWS = ("model.ftr direct", "model.ftr python", "model.ftr rank", "model.py python", "model.py rank")
"""Where random numbers of the process go on from elsewhere: this script seeds them, and a recording has their state."""
