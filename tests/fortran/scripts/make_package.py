# SPDX-License-Identifier: MIT
"""Write a package of AOTInductor and damaged copies of it into the current folder, for the tests of the direct path."""

import warnings
import zipfile

import torch

warnings.simplefilter("ignore")


class Pair(torch.nn.Module):
    """A dictionary of x weighted by the place on its last axis, and x + shift."""

    def forward(self, x, *, shift):
        return {"weighted": x * torch.arange(1.0, 4.0), "moved": x + shift}


def copy_with(name: str, end: str, change) -> None:
    """A copy of the package in which entries whose name has that end are changed."""
    with zipfile.ZipFile("package.pt2") as intact, zipfile.ZipFile(name, "w") as copy:
        for entry in intact.namelist():
            content = intact.read(entry)
            copy.writestr(entry, change(content) if entry.endswith(end) else content)


def write_packages():
    batch = torch.export.Dim("batch", min=1, max=1024)
    program = torch.export.export(
        Pair(), (torch.ones(4, 3),), {"shift": torch.ones(3)}, dynamic_shapes={"x": {0: batch}, "shift": None}
    )
    torch._inductor.aoti_compile_and_package(program, package_path="package.pt2")
    copy_with("package_processor.pt2", "metadata.json", lambda text: text.replace(b'AOTI_CPU_ISA": "', b'AOTI_CPU_ISA": "AVX4096 '))
    copy_with("package_library.pt2", ".so", lambda library: b"no library")
    copy_with("package_device.pt2", "metadata.json", lambda text: text.replace(b'KEY": "cpu"', b'KEY": "cuda"'))


if __name__ == "__main__":
    write_packages()
