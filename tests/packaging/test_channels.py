# SPDX-License-Identifier: MIT
"""The files of packaging/: what their page says of them, and what two of them say alike.

The tools that they are for read them in tests/tools.
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PAGE = (PACKAGING / "README.md").read_text()
VERSION = re.search(r'FPT_VERSION "(.+)"', (ROOT / "src" / "ftn_pytorch.h").read_text())[1]
SCRIPTS = sorted(path.name for path in PACKAGING.glob("make_*.sh"))


def test_the_table_has_each_file() -> None:
    rows = re.findall(r"^\| .+ \| (\[.+?) \| (.*) \| ?(.*) \|$", PAGE, re.MULTILINE)
    listed = [file for files, _, _ in rows for file in re.findall(r"\]\((.+?)\)", files)]
    there = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "."], cwd=PACKAGING, capture_output=True, text=True, check=True
    )
    assert sorted([*listed, "README.md"]) == sorted(
        file for file in there.stdout.split() if (PACKAGING / file).exists()
    )


def test_the_table_names_tests_that_exist() -> None:
    named = set(re.findall(r"`(tests/\S+\.py)`", PAGE))
    assert len(named) == 4 and all((ROOT / test).is_file() for test in named)


def test_recipes_have_the_version_of_the_library() -> None:
    files = [path for path in PACKAGING.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    texts = [path.name + path.read_text() for path in files]
    assert {version for text in texts for version in re.findall(r"ftn_pytorch-(\d+\.\d+\.\d+)", text)} == {VERSION}
    recipe = (PACKAGING / "conda" / "recipe.yaml").read_text()
    package = next(PACKAGING.glob("spack/**/package.py")).read_text()
    easyconfig = (PACKAGING / "easybuild" / f"ftn_pytorch-{VERSION}-foss-2025b.eb").read_text()
    assert f'\n  version: "{VERSION}"\n' in recipe
    assert f'version("{VERSION}")' in package
    assert f"\nversion = '{VERSION}'\n" in easyconfig


def commands_of_dockerfile(text: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    runs = re.findall(r"^RUN (?:--mount=\S+ )?(.+)$", joined, re.MULTILINE)
    return [command for run in runs for command in run.split(" && ")]


def test_apptainer_takes_the_steps_of_the_dockerfile() -> None:
    """But for the user, whom Apptainer takes from outside, and the folder of wheels, which is not mounted."""
    docker = (PACKAGING / "container" / "Dockerfile").read_text()
    text = (PACKAGING / "container" / "ftn_pytorch.def").read_text()
    sections = dict(re.findall(r"^%(\w+)\n((?:    .+\n)+)", text, re.MULTILINE))
    steps = [line.strip() for line in (sections["post"] + sections["test"]).splitlines()]
    expected = [command for command in commands_of_dockerfile(docker) if not command.startswith("useradd ")]
    expected = [command.replace("${TORCH}", "{{ TORCH }}") for command in expected]
    assert [step for step in steps if step != "rm -rf /opt/dist"] == expected
    assert len(expected) > 6
    assert sections["environment"].split("export ")[1].strip() == re.search(r"^ENV (.+)$", docker, re.MULTILINE)[1]
    assert re.search(r"^From: (.+)$", text, re.MULTILINE)[1] == re.search(r"^ARG BASE=(.+)$", docker, re.MULTILINE)[1]


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_leave_the_work_to_one(script: str) -> None:
    name = script.removeprefix("make_").removesuffix(".sh")
    lines = (PACKAGING / script).read_text().splitlines()
    assert lines[-1] == f'exec "$(dirname "$0")/build.sh" {name} "$@"'
    assert len(lines) < 12


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_missing_compiler_is_named_before_anything_is_made(script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [PACKAGING / script, tmp_path / "prefix"],
        env={"PATH": "/usr/bin:/bin", "FC": "no-such-fortran"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and f"{script}: there is no no-such-fortran." in done.stderr
    assert not list(tmp_path.iterdir())
