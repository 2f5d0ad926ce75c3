# SPDX-License-Identifier: MIT
"""What is recorded gives the numbers of the script from a file, too, in Python and in a process without Python.

The cases are those of the modules test_recorded*. For scripts of the corpus it is a promise.
"""

import pytest

torch = pytest.importorskip("torch")

from build_tree import build_folder  # noqa: E402
from promises import saved  # noqa: E402
from promises.through_a_file import Watcher  # noqa: E402

from recorded_cases import of_tests  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def build_with_direct_path():
    if not next(build_folder().glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("there is no build with a direct path")


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


OF_NUMBERS = "goes on only where a number in a tensor is the same one"
"""What a file does not hold, and a recording does."""


@pytest.mark.parametrize("case", params(of_tests()))
def test_the_numbers_of_the_script(case, request, tmp_path):
    watcher = Watcher(tmp_path / "files")
    with watcher:
        case.run(request.getfixturevalue)
    assert not [each for each in watcher.refused if OF_NUMBERS not in each]
    saved.again_from_files(watcher, tmp_path)


def test_the_process_has_no_python():
    assert not saved.program().has_python()
