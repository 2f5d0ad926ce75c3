# SPDX-License-Identifier: MIT
"""What is recorded gives the numbers of the script from a file, too, in Python and in a process without Python.

The cases are those of the modules test_recorded*, and the scripts of recorded_attack.
"""

import copy
import glob
import os
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import load_recording  # noqa: E402
from program_without_python import Failed, Program, lacks  # noqa: E402
from recorded_cases import of_changes, of_scripts, of_tests  # noqa: E402
from test_recorded_watched import restored  # noqa: E402, F401
from through_a_file import Watcher, is_same, plain  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning"),
]
GRADIENT = " (its gradient)"

NO_NAME = r"RESULT_TYPE: .* is not written: a restart would lose .*which no name of .* leads to"
# What can be recorded and not saved, and what is said
UNSAVABLE = {
    "recordable-own generator": "HOOK: step cannot be saved: it draws numbers from a generator of its own",
    "recordable-optimizer given by its option": NO_NAME,
    "recorded-what_is_replaced_is_noticed-parameter": NO_NAME,
    "recorded-what_is_replaced_is_noticed-assigned": NO_NAME,
    "recorded_known-a_change_is_seen-defaults of an optimizer": NO_NAME,
    "recorded_known-a_change_is_seen-field of an optimizer": NO_NAME,
    "recorded_known-a_change_is_seen-count of a schedule": NO_NAME,
    "recorded_watched-a_change_is_seen-learning rate": NO_NAME,
    "recorded_watched-a_change_is_seen-learning rate of a schedule": NO_NAME,
    "recorded_watched-a_change_is_seen-field of an argument": "its argument batch is of type Batch",
    "recorded_watched-a_change_is_seen-network as argument": "its argument net is of type Linear",
}
# The same of scripts whose state changes late
UNSAVABLE_CHANGES = [
    NO_NAME,
    "it draws numbers from a generator of its own",
    "its argument .* is of type",
    r"it changes a tensor of shape .* that no checkpoint keeps: give it a name",
    "it was recorded with the default type",
    "cannot be written: .* is of type .* which no checkpoint can hold",
    "cannot be written: .* is an attribute of a tensor, and .* writes to it",
    "cannot be written: .* nothing finds it by this name",
]


@pytest.fixture(scope="module")
def program():
    """A process without Python that lasts for all cases."""
    build = Path(os.environ.get("FTN_PYTORCH_BUILD_DIR", Path(__file__).parents[2] / "build" / "dev"))
    if not next(build.glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("there is no build with a direct path")
    made = Program(build)
    yield made
    assert made.end() == 0


@pytest.fixture(autouse=True)
def one_thread():
    """Kernels may add up in another order with more threads, and the process without Python has as many."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    torch.use_deterministic_algorithms(False)


def params(cases):
    return [pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.is_slow else []) for case in cases]


@pytest.mark.parametrize("case", params([*of_tests(), *of_scripts(), *of_changes()]))
def test_the_numbers_of_the_script(case, request, tmp_path, program):
    watcher = Watcher(tmp_path / "files")
    with watcher:
        case.run(request.getfixturevalue)
    wanted = UNSAVABLE.get(case.name)
    texts = [wanted] if wanted else UNSAVABLE_CHANGES if case.is_slow else []
    said = [each for each in watcher.refused if not any(re.search(text, each) for text in texts)]
    assert not said and (watcher.refused or not wanted), said
    assert not any(Path(each).exists() for each in watcher.unwritten)
    # a function that is not recorded cannot be saved
    assert watcher.runs or watcher.refused or not any(each.was_ready for each in watcher.made)
    for run in watcher.runs:
        in_python(run)
        without_python(run, program, tmp_path)


def in_python(run):
    saved = load_recording(run.file)
    for call in run.calls:
        if call.restore:
            saved.restore(call.restore)
        for name, value in call.numbers.items():
            saved.set_number(name, value)
        args, named = copy.deepcopy((call.args, call.named))
        compare(call, plain(saved.call("step", *args, **named)), args, named)
    saved.save(f"{run.file}.ckpt")
    compare_state(run, f"{run.file}.ckpt")


def without_python(run, program, folder):
    saved = torch.load(run.file, weights_only=True)["recording"]["functions"]["step"]
    written = {place for tape in saved for place in tape["written_inputs"]}
    program.tell("load", run.file)
    for call in run.calls:
        if any(lacks(each) for each in (call.args, call.named)):
            return
        if call.restore:
            program.tell("restore", call.restore)
        for name, value in call.numbers.items():
            program.tell("set", name, repr(value))
        args, named = copy.deepcopy((call.args, call.named))
        wanted = [] if call.result is None else call.result if isinstance(call.result, list) else [call.result]
        if any(isinstance(each, list) or each is None for each in wanted):
            with pytest.raises(Failed, match="results may not be nested|is None"):
                program.call("step", args, named, wanted, written, folder)
            return
        result = program.call("step", args, named, wanted, written, folder)
        compare(call, result if isinstance(call.result, list) else result[0] if result else None, args, named)
    program.tell("checkpoint", f"{run.file}.folder")
    compare_state(run, glob.glob(f"{run.file}.folder/*.ckpt")[0])


def compare(call, result, args, named):
    assert is_same(call.result, result), (call.result, result)
    assert is_same(list(call.after), [args, named])


def compare_state(run, path):
    there = torch.load(path, weights_only=True)
    arrays = there["arrays"]
    gone = [name for name in run.arrays if name not in arrays]
    more = [name for name in arrays if name.endswith(GRADIENT) and name not in run.arrays]
    assert not gone and not more, (gone, more)
    for name, array in run.arrays.items():
        assert is_same(array, arrays[name]), (name, array, arrays[name])
    assert torch.equal(there["generator"], run.generator)
    assert there["numbers"] == run.numbers


def test_the_process_has_no_python(program):
    assert not program.has_python()
