# SPDX-License-Identifier: MIT
"""Write a package of AOTInductor and damaged copies of it into the current folder, for the tests of the direct path."""

import platform
import warnings
import zipfile

import torch

warnings.simplefilter("ignore")


class Blend(torch.nn.Module):
    """Of a dictionary of indices and a mask, of a keyword, and with a dictionary as result."""

    def forward(self, x, fields, *, shift):
        return {
            "weighted": x * torch.arange(1.0, 4.0),  # by the place on the last axis
            "moved": x + shift,
            "picked": torch.where(fields["mask"], x[fields["index"]], -x),
        }


def copy_with(name: str, end: str, change) -> None:
    """A copy of the package in which entries whose name has that end are changed."""
    with zipfile.ZipFile("package.pt2") as intact, zipfile.ZipFile(name, "w") as copy:
        for entry in intact.namelist():
            content = intact.read(entry)
            copy.writestr(entry, change(content) if entry.endswith(end) else content)


def replaced(old: bytes, new: bytes):
    """A change that must find what it replaces."""

    def change(content: bytes) -> bytes:
        assert old in content
        return content.replace(old, new)

    return change


def write_packages():
    batch = torch.export.Dim("batch", min=1, max=1024)
    fields = {"index": torch.zeros(4, dtype=torch.int64), "mask": torch.ones(4, 3, dtype=torch.bool)}
    # Without this a package refuses one row, whatever the minimum.
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):
        program = torch.export.export(
            Blend(),
            (torch.ones(4, 3), fields),
            {"shift": torch.ones(3)},
            dynamic_shapes={"x": {0: batch}, "fields": {"index": {0: batch}, "mask": {0: batch}}, "shift": None},
        )
        torch._inductor.aoti_compile_and_package(
            program,
            package_path="package.pt2",
            inductor_configs={"aot_inductor.metadata": {"torch_version": torch.__version__}},
        )
    facts = "wrapper_metadata.json"
    copy_with("package_instructions.pt2", facts, replaced(b'AOTI_CPU_ISA": "', b'AOTI_CPU_ISA": "AVX4096 '))
    copy_with("package_processor.pt2", facts, replaced(platform.machine().encode(), b"riscv128"))
    # a device that no machine with these tests has
    copy_with("package_device.pt2", facts, replaced(b'KEY": "cpu"', b'KEY": "mps"'))
    copy_with("package_torch.pt2", facts, replaced(torch.__version__.encode(), b"1.99.0"))
    copy_with("package_archive.pt2", "archive_version", replaced(b"0", b"99"))
    copy_with("package_library.pt2", ".so", lambda library: b"no library")
    with open("package.pt2", "rb") as whole, open("package_truncated.pt2", "wb") as part:
        part.write(whole.read()[:-200])
    for name, models in (("renamed", ["net"]), ("several", ["net", "other"])):
        with zipfile.ZipFile("package.pt2") as intact, zipfile.ZipFile(f"package_{name}.pt2", "w") as copy:
            for entry in intact.namelist():
                for target in {entry.replace("/model/", f"/{model}/") for model in models}:
                    copy.writestr(target, intact.read(entry))


if __name__ == "__main__":
    write_packages()
