# SPDX-License-Identifier: MIT
# ruff: noqa: F821
"""HPCCM recipe: the compilers of the NVIDIA HPC SDK, torch for GPUs, and ftn_pytorch with its direct path.

    make wheel
    hpccm --recipe packaging/container/nvhpc.py --format docker >Dockerfile.nvhpc
    docker build -f Dockerfile.nvhpc -t ftn_pytorch:nvhpc .

    hpccm --recipe packaging/container/nvhpc.py --format singularity >nvhpc.def
    apptainer build nvhpc.sif nvhpc.def

Versions: --userarg sdk=25.11 torch=2.13.0 base=nvidia/cuda:... ; hpccm defines the names that nothing imports here.
The SDK comes under NVIDIA's licence, which eula=True accepts.
"""

Stage0 += baseimage(image=USERARG.get("base", "nvidia/cuda:12.8.1-base-ubuntu24.04"), _distro="ubuntu24")
Stage0 += comment("The shared libpython; for the direct path the headers of Python, g++ and Ninja")
Stage0 += apt_get(ospackages=["cmake", "g++", "make", "ninja-build", "pkg-config", "python3-dev", "python3-venv"])
sdk = USERARG.get("sdk", "25.11")
torch = f"torch=={USERARG['torch']}" if "torch" in USERARG else "torch"
# The folders of libraries that the SDK would put on LD_LIBRARY_PATH may hide those that torch brings.
Stage0 += nvhpc(eula=True, version=sdk, cuda_multi=False, environment=False)

Stage0 += copy(src="dist", dest="/opt/dist")
Stage0 += shell(
    commands=[
        "python3 -m venv /opt/ftn_pytorch",
        f"/opt/ftn_pytorch/bin/pip install --no-cache-dir {torch} numpy",
        "/opt/ftn_pytorch/bin/pip install --no-cache-dir --no-index --find-links /opt/dist ftn-pytorch",
        "CXX=g++ /opt/ftn_pytorch/bin/ftn_pytorch build-direct",
        "rm -rf /opt/dist",
    ]
)
# The core is C++ and C for gcc; only Fortran is compiled by the SDK.
Stage0 += environment(
    variables={
        "VIRTUAL_ENV": "/opt/ftn_pytorch",
        "PATH": f"/opt/ftn_pytorch/bin:/opt/nvidia/hpc_sdk/Linux_x86_64/{sdk}/compilers/bin:$PATH",
        "CC": "gcc",
        "CXX": "g++",
        "FC": "nvfortran",
    }
)
