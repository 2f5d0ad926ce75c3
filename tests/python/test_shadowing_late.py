# SPDX-License-Identifier: MIT
"""Modules of Python that this package imports after a script was loaded, and files beside the script of their names."""

import pytest


@pytest.mark.parametrize("name", ["traceback", "difflib", "json", "zipfile", "hashlib", "base64"])
def test_neighbour_does_not_hide_what_this_package_imports_later(python, tmp_path, name):
    """Messages and checkpoints work, though Python's module was not imported when the script was loaded."""
    (tmp_path / f"{name}.py").write_text("raise SystemExit('the neighbour ran')")
    (tmp_path / "closure.py").write_text("steps = 0\ndef advance(x):\n    global steps\n    steps += 1\n    fail()\n")
    code = f"""
        from ftn_pytorch import _embed, errors
        _embed.on_start({{"adopted": "0"}})
        runner = _embed.load(0, {str(tmp_path / "closure.py")!r}, {{}}, {{}})
        try:
            runner.require("advance")(1)
        except NameError as failure:
            print("NameError" in errors.describe(failure, "here")[1])
        try:
            runner.require("advanec")
        except errors.FtnPytorchError as failure:
            print("did you mean 'advance'?" in failure.text)
        _embed.checkpoint(runner, {str(tmp_path / "kept")!r})
        print(_embed.restore(runner, {str(tmp_path / "kept")!r}))
    """
    assert python(code).split() == ["True", "True", "1"]
