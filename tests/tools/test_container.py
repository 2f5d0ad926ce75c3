# SPDX-License-Identifier: MIT
"""The Dockerfile without Docker: its own lines, run one after another in a chroot of Debian's packages.

The chroot is made of the packages that the image of Debian has. FROM is this chroot, ARG and ENV are variables, RUN is
run by root, and what the image is for by USER in WORKDIR. Needs root and mmdebstrap.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "packaging" / "container" / "Dockerfile"


def instructions(text: str) -> list[tuple[str, str]]:
    """Of a Dockerfile, in order, each with its continued lines joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", lines)
    return [(name, value.strip()) for name, value in re.findall(r"^([A-Z]+) (.+)$", joined, re.MULTILINE)]


def pip_settings() -> tuple[dict[str, str], dict[str, Path]]:
    """The configuration of pip on this machine as variables, and where the chroot finds what it names: below /host."""
    lines = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    settings = dict(re.findall(r"^[\w:]+\.([\w-]+)='(.*)'$", lines.stdout, re.MULTILINE))
    path = re.compile(r"(?:(?<=file://)|(?<![^ ]))/[^\s]+")
    named = {Path(found) for value in settings.values() for found in path.findall(value)}
    # An index refers to files beside it.
    places = {place.parent if place.name == "simple" else place for place in named if place.exists()}
    variables = {f"PIP_{name.upper().replace('-', '_')}": path.sub(r"/host\g<0>", it) for name, it in settings.items()}
    return variables, {f"/host{place}": place for place in places}


class Chroot(NamedTuple):
    folder: Path
    variables: dict[str, str]
    mounts: dict[str, Path]
    prelude: list[str]

    def run(self, command: str, *, user: str = "0", home: str = "/root", mounts: dict[str, Path] | None = None) -> str:
        """What a command says, which must succeed. The mounts are gone when it ends."""
        steps = ["set -e", f"cd {shlex.quote(str(self.folder))}", "mount -t proc proc proc", "mount --rbind /dev dev"]
        for target, source in (self.mounts | (mounts or {})).items():
            place = self.folder / target.lstrip("/")
            if source.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()
            steps += [f"mount --rbind {shlex.quote(str(source))} {shlex.quote(str(place))}"]
        inner = "\n".join(["set -e", *self.prelude, f"cd {home}", command])
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "DEBIAN_FRONTEND": "noninteractive"}
        steps += [f"exec chroot --userspec={user}:{user} . /bin/sh -c {shlex.quote(inner)}"]
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", "\n".join(steps)],
            env=environment | self.variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def wheels() -> Path:
    """The wheels that `make wheel` has made, of the version at hand."""
    version = re.search(r'FPT_VERSION "(.+)"', (ROOT / "src" / "ftn_pytorch.h").read_text())[1]
    folder = Path(os.environ.get("FTN_PYTORCH_WHEELS") or ROOT / "dist")
    if not list(folder.glob(f"ftn_pytorch-{version}-*.whl")):
        pytest.skip(f"no wheel of ftn_pytorch {version} in {folder}: make wheel builds it")
    return folder


@pytest.fixture(scope="module")
def image(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chroot, str, str]]:
    """What the Dockerfile builds, its user and its working directory."""
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip("a chroot of Debian's packages needs root and mmdebstrap: apt-get install mmdebstrap")
    steps = instructions(DOCKERFILE.read_text())
    arguments = dict(value.split("=", 1) for name, value in steps if name == "ARG" and "=" in value)
    suite = re.fullmatch(r"debian:(\w+)-slim", arguments["BASE"])[1]
    # `docker build --build-arg TORCH=...`: the torch of the tests.
    arguments["TORCH"] = re.search(r"^torch==.+$", (ROOT / "cmake" / "requirements.txt").read_text(), re.MULTILINE)[0]

    folder = tmp_path_factory.mktemp("image") / "root"
    made = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", suite, folder], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    settings, places = pip_settings()
    built = Chroot(folder, settings | arguments, places | {"/etc/resolv.conf": Path("/etc/resolv.conf")}, [])
    user, workdir = "0", "/"
    for name, value in steps:
        if name == "RUN":
            bound = dict(re.findall(r"--mount=type=bind,source=(\S+),target=(\S+)", value))
            command = re.sub(r"--mount=\S+ ", "", value)
            built.run(command, mounts={target: {"dist": wheels}[source] for source, target in bound.items()})
        elif name == "ENV":
            built.prelude.append(f"export {value}")
        elif name == "USER":
            user = value
        elif name == "WORKDIR":
            workdir = value
        else:
            assert name in ("ARG", "FROM", "CMD"), f"the test does not know {name}"
    yield built, user, workdir
    shutil.rmtree(folder)


def test_the_first_program_in_the_image(image: tuple[Chroot, str, str]) -> None:
    """Built and run by the user of the image, who is not root, in a folder of theirs."""
    built, user, workdir = image
    build = "cp -r /mnt/first . && cmake -S first -B build && cmake --build build"
    said = built.run(
        f"{build} && cd first && ../build/first && id -u",
        user=user,
        home=workdir,
        mounts={"/mnt/first": ROOT / "examples" / "first"},
    )
    assert re.search(r"loss +[0-9.]+E-", said)
    assert said.splitlines()[-1] == user != "0"


def test_the_image_has_what_make_needs(image: tuple[Chroot, str, str]) -> None:
    built, user, workdir = image
    command = "PKG_CONFIG_PATH=$(ftn_pytorch --pkgconfigdir) pkg-config --libs ftn_pytorch"
    said = built.run(command, user=user, home=workdir)
    assert "-lftn_pytorch" in said


def test_what_was_installed_belongs_to_root(image: tuple[Chroot, str, str]) -> None:
    built, user, workdir = image
    said = built.run("touch /opt/ftn_pytorch/x 2>&1 || echo refused", user=user, home=workdir)
    assert "refused" in said


def test_the_direct_path_is_compiled_in_the_image(image: tuple[Chroot, str, str]) -> None:
    """With the packages that packaging/README.md names."""
    built, _, _ = image
    page = (ROOT / "packaging" / "README.md").read_text()
    packages = re.search(r"recorded steps, add `(.+?)`, `(.+?)` and `(.+?)`, and run\n`(.+?)`", page)
    built.run(f"apt-get update && apt-get install -y --no-install-recommends {' '.join(packages.groups()[:3])}")
    assert re.search(r"built for torch 2\.\d+", built.run(packages[4]))
