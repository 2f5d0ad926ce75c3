# SPDX-License-Identifier: MIT
"""The one table of options of ``load``, in the order of Fortran's arguments.

At run time ``options.py`` reads it. When the library is built, so do the arguments of ``load`` in Fortran
(fpt_module.fypp) and the reader of the core (calls/options.cpp, by the rows that ``python option_table.py`` prints); so
it needs nothing but Python. docs/load-options.md is written from it by docs/site/load_options.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    name: str
    kind: str
    """What it is given as: one of ``KINDS``."""
    default: str
    """As programs would write it, empty for none."""
    meaning: str
    """In one or two sentences of Markdown, which are the comment in Fortran, too."""
    files: str
    """For which files it is."""
    words: tuple[str, ...] = ()
    """Texts that the core takes."""
    largest: int = 0
    """Number that the core takes at most."""
    is_of_models: bool = False
    """No script has it: an argument of torch_module alone."""

    @property
    def is_read_by_core(self) -> bool:
        """C++ needs it, and has checked it before Python sees it."""
        return bool(self.words or self.largest or self.name == "device")

    @property
    def comment(self) -> list[str]:
        """Lines of a comment in Fortran: the meaning without marks of Markdown, and the default."""
        import re  # each module costs each rank operations on files at its start, where nobody asks for comments
        import textwrap

        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", self.meaning).replace("`", "")
        default = f". Default: {self.default}" if self.default else ""
        return textwrap.wrap(re.sub(r"^[a-z](?=[a-z]* )", lambda first: first[0].upper(), text) + default, 110)


@dataclass(frozen=True)
class Kind:
    declaration: str
    """Of the argument in Fortran."""
    said: str
    """The same in the documentation."""
    shape: str = ""


KINDS = {
    "text": Kind("character(*), intent(in), optional", "`character(*)`"),
    "flag": Kind("logical, intent(in), optional", "`logical`"),
    "integer": Kind("integer, intent(in), optional", "`integer`"),
    "real": Kind("real(c_double), intent(in), optional", "`real(8)`"),
    "flag or text": Kind("class(*), intent(in), optional", "`logical` or `character(*)`"),
    "communicator": Kind("type(*), optional, target", "`type(MPI_Comm)` or `integer`"),
    "arguments": Kind("type(torch_arg), contiguous, optional, target", "`type(torch_arg)(:)`", "(:)"),
}

# fmt: off
TABLE = (
    Option("flags", "integer", "0",
        'sum of `torch_use_device` (as `device="cuda"`) and `torch_use_inference_mode`, which has no effect on '
        "ONNX models. The second argument, as in pytorch-fortran", "saved models", largest=3, is_of_models=True),
    Option("config", "arguments", "",
        "named values for [`ftn_pytorch_setup`](script-api.md#ftn_pytorch_setup-and-config)", "scripts"),
    Option("layout", "text", '"reversed"',
        '`"reversed"`: an array `(nx, ny)` has shape `(ny, nx)` in Python. `"same"`: `(nx, ny)`, by strides',
        "all files", words=("reversed", "same")),
    Option("mode", "text", '"checked"',
        '`"safe"`: full checks in every call, see [errors.md](errors.md#modes). `FTN_PYTORCH_MODE` sets the '
        "default", "all", words=("checked", "safe")),
    Option("dtype", "text", '"keep"',
        '`"float32"`, `"float64"`: convert `real` and `complex` inputs. Outputs that serve as inputs are copied '
        "back", "all", words=("keep", "float32", "float64")),
    Option("device", "text", "the host",
        '`"cpu"`, `"cuda"`, the GPU of the rank, or `"cuda:1"`: [gpu.md](gpu.md#several-gpus)', "all"),
    Option("inputs", "text", '"share"',
        '`"copy"`: inputs are copies that the script may keep. Outputs that serve as inputs are copied back',
        "all", words=("share", "copy")),
    Option("cast", "flag", ".false.",
        "outputs may be [narrower](script-api.md#results) than results", "all", largest=1),
    Option("backend", "text", '"auto"',
        '`"direct"`: [without Python](direct-path.md), or an error. `"python"`: always through Python',
        "saved models", words=("auto", "python", "direct"), is_of_models=True),
    Option("compile", "flag or text", ".false.",
        "`.true.` or a mode of [`torch.compile`](formats.md#torchcompile). Not with `record`",
        "scripts, exported programs, pickles"),
    Option("compile_backend", "text", '"inductor"', "backend of `torch.compile`. Only with `compile`", "the same"),
    Option("weights_only", "flag", ".true.",
        "`.false.`: the file may [run code while it is read](formats.md#files-and-trust)",
        "pickles, exported programs"),
    Option("training", "flag", ".false.",
        "predict in [training mode](formats.md#training-mode)", "TorchScript, pickles", largest=1),
    Option("record", "flag or text", ".false.",
        "[record](recording.md) `ftn_pytorch_forward` and `ftn_pytorch_train`, then run them without Python. "
        '`"compiled"`: as [compiled code](recording.md#compiled-steps) where that can be',
        "scripts"),
    Option("tolerance", "real", "0",
        "with `record`: how far results may differ from those of the script, relative to the largest. 0: bit for bit",
        "scripts"),
    Option("background", "flag", ".false.",
        "[`ftn_pytorch_train`](kit/background.md) runs in a process of its own. Not with `communicator`", "scripts"),
    Option("communicator", "communicator", "",
        "the [ranks](ranks.md) that train one network", "scripts, saved recordings; with `per`, all"),
    Option("per", "text", '"rank"',
        '`"node"`: [one Python for a node](ranks.md#one-python-for-a-node). `"gpu"`: [one process for the ranks '
        'of a GPU](gpu.md#one-process-for-the-ranks-of-a-gpu). Both need `communicator`, `"gpu"` also `device`',
        "all", words=("rank", "node", "gpu")),
    Option("fallback", "text", "",
        "file that answers where the server does not", "[servers](servers.md)", is_of_models=True),
)
# fmt: on
OPTIONS = {row.name: row for row in TABLE}


if __name__ == "__main__":
    for row in TABLE:
        if row.is_read_by_core:
            words = ", ".join(f'"{word}"' for word in row.words)
            print(f'{{"{row.name}", {{{words}}}, {row.largest}}},')
