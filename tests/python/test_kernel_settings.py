# SPDX-License-Identifier: MIT
"""Settings of torch in saved recordings: those of the script, during calls of the file, and never beside them."""

import contextlib
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from build_tree import build_folder  # noqa: E402
from promises.program_without_python import Program  # noqa: E402

from ftn_pytorch import load_recording, recorded, save_recording  # noqa: E402
from ftn_pytorch.errors import FtnPytorchError  # noqa: E402
from ftn_pytorch.saved import kernel_settings  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

OTHERS = {
    "default_dtype": torch.float64,
    "deterministic": True,
    "deterministic_warn_only": True,
    "mkldnn": False,
    "mkldnn_deterministic": True,
    "mkldnn_matmul_fp32": "bf16",
    "mkldnn_conv_fp32": "tf32",
    "mkldnn_rnn_fp32": "bf16",
    "cuda_matmul_fp32": "tf32",
    "cuda_conv_fp32": "ieee",
    "cuda_rnn_fp32": "ieee",
    "fp16_reduction": False,
    "bf16_reduction": False,
    "fp16_accumulation": True,
    "cudnn": False,
    "cudnn_benchmark": True,
    "cudnn_deterministic": True,
}
"""What is not so where torch starts."""


def state():
    attributes = {name: getattr(*place) for name, place in kernel_settings._PLACES.items()}
    return {**kernel_settings.current(), **attributes, "default_dtype": torch.get_default_dtype()}


def put(wanted):
    if "default_dtype" in wanted:
        torch.set_default_dtype(wanted["default_dtype"])
    if "deterministic" in wanted:
        torch.use_deterministic_algorithms(wanted["deterministic"], warn_only=wanted["deterministic_warn_only"])
    for name in kernel_settings._PLACES.keys() & wanted:
        setattr(*kernel_settings._PLACES[name], wanted[name])


@contextlib.contextmanager
def held(wanted):
    """The process has these settings."""
    before = state()
    put(wanted)
    yield
    put(before)


def saved(path):
    """A file of a function that makes numbers of the default type."""

    @recorded
    def step(x):
        return x + torch.full((4,), 0.1)

    for _ in range(9):
        step(torch.ones(4, dtype=torch.float64))
    return save_recording(str(path), {"step": step}, names={})


def test_settings_of_a_script_hold_in_calls_of_its_file_alone(tmp_path):
    """What holds during a call: tests/cpp/ftr/test_call_settings.cpp."""
    before, x = state(), torch.ones(4, dtype=torch.float64)
    with held(OTHERS):
        opened = load_recording(saved(tmp_path / "step.ftr"))
    assert torch.equal(opened.call("step", x), x + torch.full((4,), 0.1, dtype=torch.float64))
    with pytest.raises(FtnPytorchError):
        opened.call("step", x.float())
    assert state() == before


@pytest.mark.parametrize(
    ("older", "convolutions", "wanted"),
    [("highest", True, ("ieee", "ieee", "tf32")), ("high", True, ("tf32", "tf32", "tf32")),
     ("medium", False, ("bf16", "tf32", "ieee"))],
)  # fmt: skip
def test_an_earlier_version_finds_what_it_knows(older, convolutions, wanted):
    names = [f"{each}_fp32" for each in ("mkldnn_matmul", "cuda_matmul", "cuda_conv")]
    with held(dict(zip(names, wanted, strict=True))):
        now = kernel_settings.current()
    assert (now["matmul_precision"], now["cudnn_tf32"]) == (older, convolutions)


def test_without_python_one_file_does_not_change_the_numbers_of_another(tmp_path):
    build = build_folder()
    if not next(build.glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("there is no build with a direct path")
    files = []
    for dtype in (torch.float64, torch.float32):
        with held({"default_dtype": dtype}):
            files.append(saved(tmp_path / f"{dtype}.ftr"))
    x = torch.ones(4, dtype=torch.float64)
    program = Program(build)
    for file, dtype in zip(files, (torch.float64, torch.float32), strict=True):
        program.tell("load", file)
        (found,) = program.call("step", (x,), {}, [x], set(), tmp_path)
        assert torch.equal(found, x + torch.full((4,), 0.1, dtype=dtype))
    assert program.end() == 0


def test_both_languages_have_the_same_settings():
    text = (Path(__file__).parents[2] / "src/ftr/call_settings.cpp").read_text()
    table = text[text.index("constexpr std::array table") :]
    names = re.findall('"([a-z0-9_]+)"', table[: table.index("\n};")])
    assert sorted(names) == sorted(OTHERS) == sorted({*state()} - {"matmul_precision", "cudnn_tf32"})
