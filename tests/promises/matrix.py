# SPDX-License-Identifier: MIT
"""The table of ``tests/matrix.md``: what scripts use, and how often each promise is kept for them.

The counts are of the verdicts in the headers of the corpus, which the tests compare with what they find.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from .scripts import OF_DEVICES, Script, corpus

PATH = Path(__file__).resolve().parents[1] / "matrix.md"
# What a script uses, and how that is seen in its text
FEATURES = {
    "networks": r"\bnn\.[A-Z]",
    "layers with buffers": r"BatchNorm|register_buffer|InstanceNorm",
    "dropout, other layers that draw": r"[dD]ropout",
    "optimizers of torch": r"optim\.[A-Z]\w+\((?!params|parameters\b)",
    "optimizers of the script": r"class \w+\((?:torch\.optim\.\w+|Descent|Wrapper)\)",
    "rates and schedules": r"param_groups|lr_scheduler",
    "gradients": r"\.backward\(|autograd\.grad|torch\.func",
    "functions of autograd": r"autograd\.Function",
    "hooks": r"register_\w*hook|_hooks",
    "the kit": r"ftn_pytorch\.kit",
    "random numbers of torch": r"torch\.rand|Generator|normal_|bernoulli|[dD]ropout|manual_seed",
    "random numbers of Python and NumPy": r"(?<!torch\.)\brandom\.|default_rng|secrets",
    "arrays of NumPy": r"\bnp\.|\.numpy\(",
    "views and writes in place": r"\w_\(|\.data\b|\[[^\]\n]*\] *[-+*/]?= |\.view\(|\.t\(",
    "classes": r"^ *class ",
    "dataclasses, named tuples, members of Enum": r"dataclass|namedtuple|NamedTuple|enum\.",
    "slots, properties, descriptors": r"__slots__|property|__get__|__getattr",
    "closures": r"nonlocal|^ +def |lambda",
    "decorators": r"^ *@(?!recorded|torch\.no_grad|dataclasses|staticmethod|classmethod|property)\w",
    "lists, dicts and sets that change": r"\.(?:append|extend|update|pop|add|insert|clear|setdefault)\(",
    "names that are bound again": r"^ *(?:global|nonlocal) |globals\(\)",
    "iterators and generators": r"\byield\b|\bnext\(|\biter\(|itertools",
    "text that is run": r"\b(?:eval|exec|compile)\(",
    "modules of the user": r"make_module|^(?:import|from) (?:counting|helpers|network)\b",
    "threads": r"\bthreading\.",
    "files and clocks": r"\bopen\(|pathlib|\btime\.|datetime|BytesIO",
    "settings of the process": r"os\.environ|os\.getenv|set_default|set_num_threads|deterministic|backends|precision",
    "modes of torch": r"autocast|inference_mode|no_grad|set_grad_enabled|detect_anomaly",
    "containers and objects as arguments": r"def inputs\(",
    "shapes that change": r"if call|\[:call|call %",
    "pages of the documentation": r"^family: docs",
    "steps and optimizers as users write them": r"^family: (?:steps_of_)?users",
    "all": "",
}
KINDS = ("same", "refused", "either", "unseen", "wrong")


def features_of(script: Script) -> list[str]:
    """Rows of the table in which a script counts."""
    text = "\n".join([f"family: {script.family}", script.text, *script.beside.values()])
    return [name for name, pattern in FEATURES.items() if re.search(pattern, text, re.MULTILINE)]


def written(promises: list[str]) -> str:
    """The table, without what needs a GPU."""
    promises = [each for each in promises if each not in OF_DEVICES]
    counts: dict[str, dict[str, Counter]] = {name: {each: Counter() for each in promises} for name in FEATURES}
    for script in corpus().values():
        for name in features_of(script):
            for promise in promises:
                if script.can_be_asked(promise):
                    counts[name][promise][script.verdict_of(promise)] += 1
    lines = [_HEAD, f"| scripts with | {' | '.join(promises)} |", "|---" * (len(promises) + 1) + "|"]
    for name, row in counts.items():
        cells = [" / ".join(str(row[each][kind]) for kind in KINDS) for each in promises]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


_HEAD = f"""# Scripts and promises

Written by `python promises --write` in this folder: do not edit. A cell counts the scripts of [corpus](corpus) that use
something, by what becomes of a promise for them: {" / ".join(KINDS)}.

- same: the numbers of plain Python, bit for bit.
- refused: the library says that it cannot, and why. either: one of both, which depends on addresses of memory.
- unseen: other numbers, as the documentation says.
- wrong: other numbers, which is a defect that is known.

Scripts whose numbers differ in each run count for `recorded` only. For `compiled`, which means the same numbers within
a tolerance, half of the optimizers as users write them count, where these are recorded. From `arrays` on a Fortran
program calls: scripts with arguments that it does not have do not count, and for `node` one of sixteen does. What
becomes of `device` and `saved-device` is seen where there is a GPU.
"""
