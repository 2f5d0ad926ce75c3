# SPDX-License-Identifier: MIT
"""What the environment of a program does to it: another project's Python that happens to be active."""

import pytest


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_unrelated_environment_does_not_stop_the_program(run, script, tmp_path, variable) -> None:
    active = {"FTN_PYTORCH_PYTHON": "", "VIRTUAL_ENV": "", "CONDA_PREFIX": "", variable: str(tmp_path / "other")}
    done = run("warnings", f"load={script}", "forward", "diagnose", environment=active)
    assert "forward FTN_PYTORCH_OK 12" in done.stdout
    assert "chosen by: the Python this library was built with" in done.stdout
    assert done.stderr.count("warning: ") == 1
    assert f'{variable} is "{tmp_path}/other"' in done.stderr
    assert "FTN_PYTORCH_PYTHON chooses one without this warning" in done.stderr
