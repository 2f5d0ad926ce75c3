# SPDX-License-Identifier: MIT
"""The recipes of packaging/, read and resolved by the tools that they are for. Nothing is built."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
VERSION = re.search(r'FPT_VERSION "(.+)"', (ROOT / "src" / "ftn_pytorch.h").read_text())[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def run(*command: object, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(list(map(str, command)), env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# ---- containers --------------------------------------------------------------------------------------------------


def test_linter_of_dockerfiles(tools: Path) -> None:
    run(tools / "bin" / "hadolint", PACKAGING / "container" / "Dockerfile")


@pytest.fixture(scope="module")
def recipes(tools: Path) -> dict[str, str]:
    """What HPCCM makes of the recipe, for Docker and for Apptainer."""
    recipe = PACKAGING / "container" / "nvhpc.py"
    options = ("--userarg", "sdk=25.9", "torch=2.12.0")
    command = (tools / "bin" / "hpccm", "--recipe", recipe, *options, "--format")
    return {name: run(*command, name) for name in ("docker", "singularity")}


def test_hpccm_writes_both_forms(recipes: dict[str, str]) -> None:
    assert recipes["docker"].startswith("FROM nvidia/cuda:")
    assert re.match(r"BootStrap: docker\nFrom: nvidia/cuda:", recipes["singularity"])
    for text in recipes.values():
        assert "nvhpc-25-9" in text and "torch==2.12.0 numpy" in text
        assert "FC=nvfortran" in text and "/Linux_x86_64/25.9/compilers/bin:" in text
        assert "LD_LIBRARY_PATH" not in text
        steps = ["-m venv /opt/ftn_pytorch", "numpy", "--no-index --find-links /opt/dist ftn-pytorch", "build-direct"]
        assert [text.index(step) for step in steps] == sorted(text.index(step) for step in steps)


def test_dockerfile_of_hpccm_has_no_errors(tools: Path, recipes: dict[str, str], tmp_path: Path) -> None:
    """HPCCM itself pins no packages, and pipes without pipefail."""
    (tmp_path / "Dockerfile").write_text(recipes["docker"])
    run(tools / "bin" / "hadolint", "--ignore=DL3008", "--ignore=DL4006", tmp_path / "Dockerfile")


# ---- shell scripts and workflows ---------------------------------------------------------------------------------


def test_shellcheck(tools: Path) -> None:
    scripts = sorted(PACKAGING.glob("*.sh"))
    assert len(scripts) == 6
    run(tools / "bin" / "shellcheck", *scripts)


def test_workflows_fit_their_schema(tools: Path) -> None:
    assert len(WORKFLOWS) > 1
    run(tools / "bin" / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


def test_workflows_are_not_open_to_attacks(tools: Path, tmp_path: Path) -> None:
    """Actions are named by version, which is what their own pages show."""
    rules = tmp_path / "rules.yml"
    rules.write_text("rules:\n  unpinned-uses:\n    config:\n      policies:\n        '*': ref-pin\n")
    run(tools / "bin" / "zizmor", "--offline", "--no-progress", "--config", rules, *WORKFLOWS)


def test_no_workflow_publishes() -> None:
    for path in WORKFLOWS:
        text = path.read_text()
        assert "permissions:\n  contents: read\n" in text
        assert not re.search(r"twine|pypi-publish|login-action|: write|id-token|--push|push: true|docker push", text)


# ---- conda -------------------------------------------------------------------------------------------------------

RENDER = """
import json, sys
from rattler_build import MultiOutputRecipe, PlatformConfig, RenderConfig, VariantConfig
folder = sys.argv[1]
recipe = MultiOutputRecipe.from_file(folder + "/recipe.yaml")
variants = VariantConfig.from_file(folder + "/variants.yaml")
rendered = recipe.render(variants, RenderConfig(platform=PlatformConfig(target_platform="linux-64")))
print(json.dumps([[str(one.recipe.package.name), str(one.recipe.package.version), one.variant,
                   one.recipe.requirements.to_dict()] for one in rendered], default=str))
"""


def test_conda_recipe_renders(tools: Path) -> None:
    """Two packages for each Python; the second one is pinned to the torch, and to the build of the first one."""
    rendered = json.loads(run(tools / "bin" / "python", "-c", RENDER, PACKAGING / "conda"))
    assert {version for _, version, _, _ in rendered} == {VERSION}
    library = [(variant, needs) for name, _, variant, needs in rendered if name == "ftn-pytorch"]
    direct = [(variant, needs) for name, _, variant, needs in rendered if name == "ftn-pytorch-direct"]
    assert len(library) == len(direct) == 3
    for variant, needs in library:
        assert not [need for need in needs["host"] + needs["run"] if "torch" in str(need)] and "libtorch" not in variant
    for variant, needs in direct:
        assert variant["pytorch"] == variant["libtorch"]
        assert {f"{name} {variant[name]}.*" for name in ("pytorch", "libtorch")} <= set(map(str, needs["run"]))
        pins = [need for need in needs["run"] if isinstance(need, dict)]
        assert pins == [{"pin_subpackage": {"name": "ftn-pytorch", "exact": True}}]


# ---- EasyBuild ---------------------------------------------------------------------------------------------------


def test_easybuild_finds_all_dependencies(tools: Path, tmp_path: Path) -> None:
    """A dry run reads the easyconfig and resolves it, down to the compilers, among those that EasyBuild has."""
    modules = shutil.which("modulecmd.tcl") or next(map(str, Path("/usr/lib").rglob("modulecmd.tcl")), None)
    if not modules:
        pytest.skip("EasyBuild needs a module system: apt-get install environment-modules")
    folder = PACKAGING / "easybuild"
    said = run(
        tools / "bin" / "eb",
        "--dry-run",
        f"--robot={folder}:",
        "--modules-tool=EnvironmentModules",
        "--module-syntax=Tcl",
        f"--prefix={tmp_path}",
        *(["--allow-use-as-root-and-accept-consequences"] if os.geteuid() == 0 else []),
        folder / f"ftn_pytorch-{VERSION}-foss-2025b.eb",
        MODULES_CMD=modules,
        PATH=f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}",
    )
    found = re.findall(r"^ \* \[ \] (\S+) \(module: (\S+)\)", said, re.MULTILINE)
    names = [module for _, module in found]
    assert names[-1] == f"ftn_pytorch/{VERSION}-foss-2025b"
    assert {"fypp/3.2-GCCcore-14.3.0", "pybind11/3.0.0-GCCcore-14.3.0", "PyTorch/2.9.1-foss-2025b"} <= set(names)
    ours = {Path(file).name for file, _ in found if Path(file).parent == folder}
    assert ours == {path.name for path in folder.iterdir()}


# ---- Spack -------------------------------------------------------------------------------------------------------


def test_spack_concretizes(tmp_path: Path) -> None:
    """With the Spack that is on the path or in SPACK_ROOT, as it is configured; takes minutes, and more with torch."""
    spack = shutil.which("spack") or shutil.which("spack", path=f"{os.environ.get('SPACK_ROOT', '')}/bin")
    if not spack:
        pytest.skip("there is no spack on the path, and none in SPACK_ROOT")
    repository = PACKAGING / "spack" / "spack_repo" / "ftn_pytorch"
    (tmp_path / "repos.yaml").write_text(f"repos:\n  ftn_pytorch: {repository}\n")
    answer = json.loads(run(spack, "-C", tmp_path, "spec", "--json", "ftn-pytorch ~torch"))
    nodes = {node["name"]: node for node in answer["spec"]["nodes"]} if isinstance(answer, dict) else None
    nodes = nodes or {node["name"]: node for node in answer[0]["spec"]["nodes"]}
    assert nodes["ftn-pytorch"]["version"] == VERSION
    assert nodes["ftn-pytorch"]["parameters"]["build_system"] == "cmake"
    assert nodes["python"]["parameters"]["shared"] is True
    assert {"cmake", "ninja", "py-fypp", "py-pybind11", "py-numpy"} <= set(nodes)
    assert "py-torch" not in nodes


# ---- fpm ---------------------------------------------------------------------------------------------------------


def test_fpm_builds_and_runs_the_first_program(tools: Path, build_dir: Path, tmp_path: Path) -> None:
    """With the sources of an installed copy, as a package that fpm.sh has written."""
    prefix = tmp_path / "prefix"
    run("cmake", "--install", build_dir, "--prefix", prefix)
    configured = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    said = run(PACKAGING / "fpm.sh", tmp_path / "modules", **configured)
    flags = dict(re.findall(r'--(flag|link-flag) "(.+?)"', said))
    project = tmp_path / "first"
    (project / "app").mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "first" / "first.f90", project / "app" / "main.f90")
    shutil.copy(ROOT / "examples" / "first" / "first.py", project)
    (project / "fpm.toml").write_text('name = "first"\n[dependencies]\nftn_pytorch = {path = "../modules"}\n')
    options = [f"--{name}={value}" for name, value in flags.items()]
    said = run(tools / "bin" / "fpm", "run", "--directory", project, "--compiler", "gfortran", *options, VIRTUAL_ENV="")
    assert re.search(r"loss +[0-9.]+E-", said)
