# SPDX-License-Identifier: MIT
"""ComIn from a checkout of the user, with its minimal host, replay tool, recorders and Python adapter; and our plug-in.

A second host is made of a copy of the minimal one, by changes of a few lines: it reaches the entry point at which
checkpoints are written, can restart, and prints what it finds in the tracer of the script.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from hosts_run import ROOT, run

TARGETS = [
    *("minimal_example", "comin_replay", "python_adapter"),
    *("comin_run_recorder_plugin", "comin_var_recorder_plugin", "comin_var_replay_plugin"),
]
# What is replaced in the minimal host, each once.
CHANGES = {
    "LOGICAL, PARAMETER :: lrestart = .FALSE. !< flag: simulation restart?": (
        "LOGICAL :: lrestart\n  CHARACTER(LEN=16) :: mode"
    ),
    "  CALL start_mpi()\n\n": (
        '  CALL start_mpi()\n  CALL GET_COMMAND_ARGUMENT(2, mode)\n  lrestart = mode == "restart"\n'
    ),
    "    CALL comin_callback_context_call(EP_ATM_TIMELOOP_END, COMIN_DOMAIN_OUTSIDE_LOOP, .FALSE.)\n  END DO\n": (
        "    CALL comin_callback_context_call(EP_ATM_TIMELOOP_END, COMIN_DOMAIN_OUTSIDE_LOOP, .FALSE.)\n  END DO\n"
        "  CALL comin_callback_context_call(EP_ATM_CHECKPOINT_BEFORE, COMIN_DOMAIN_OUTSIDE_LOOP, .FALSE.)\n"
        '  vn => find_list_element("qnn", 1)\n'
        "  IF (ASSOCIATED(vn)) WRITE (*,'(a,i0,2es25.16)') \"the host reads on rank \", mpi_rank, &\n"
        "    & MINVAL(vn%this%dataarray(:,:,:,vn%this%metadata%ncontained,1)), &\n"
        "    & MAXVAL(vn%this%dataarray(:,:,:,vn%this%metadata%ncontained,1))\n"
    ),
    "&                                EP_SECONDARY_CONSTRUCTOR, EP_DESTRUCTOR,": (
        "&                                EP_ATM_CHECKPOINT_BEFORE, EP_DESTRUCTOR,"
    ),
}


@dataclass
class Hosts:
    """What was built."""

    minimal: Path
    restarting: Path
    replay: Path
    plugin: Path
    adapter: Path
    run_recorder: Path
    var_recorder: Path
    var_replay: Path


def build(source: Path, library: Path, folder: Path) -> Hosts:
    """Build all of it in ``folder``. source: checkout of ComIn. library: where ftn_pytorch is installed."""
    comin = folder / "comin"
    run("cmake", "-S", source, "-B", comin, *_options(f"-DPython3_EXECUTABLE={sys.executable}"))
    run("cmake", "--build", comin, "--parallel", "--target", *TARGETS)
    plugin = folder / "plugin"
    run(
        *("cmake", "-S", ROOT / "hosts" / "comin", "-B", plugin, f"-DComIn_DIR={comin}"),
        *(f"-Dftn_pytorch_ROOT={library}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_Fortran_FLAGS=-Wall -fcheck=all"),
    )
    run("cmake", "--build", plugin)
    return Hosts(
        minimal=comin / "test" / "minimal_example" / "minimal_example",
        restarting=_restarting(source, comin, folder / "restarting"),
        replay=comin / "replay_tool" / "comin_replay",
        plugin=plugin / "libcomin_ftn_pytorch.so",
        adapter=comin / "plugins" / "python_adapter" / "libpython_adapter.so",
        run_recorder=comin / "replay_tool" / "libcomin_run_recorder_plugin.so",
        var_recorder=comin / "replay_tool" / "libcomin_var_recorder_plugin.so",
        var_replay=comin / "replay_tool" / "libcomin_var_replay_plugin.so",
    )


def _options(python: str) -> list[str]:
    wanted = ["BUILD_TESTING", "COMIN_ENABLE_PYTHON_ADAPTER", "COMIN_ENABLE_REPLAY_TOOL"]
    return [*(f"-D{name}=ON" for name in wanted), "-DCOMIN_ENABLE_EXAMPLES=OFF", "-DCMAKE_BUILD_TYPE=Release", python]


def _restarting(source: Path, comin: Path, folder: Path) -> Path:
    example = source / "test" / "minimal_example"
    text = (example / "minimal_example.F90").read_text()
    for old, new in CHANGES.items():
        assert text.count(old) == 1, f"the minimal host of this ComIn has no line {old!r}"
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True)
    (folder / "restarting.F90").write_text(text)
    others = " ".join(f'"{example / name}.F90"' for name in ("descr_data", "vars", "mo_utilities"))
    (folder / "CMakeLists.txt").write_text(
        f"""cmake_minimum_required(VERSION 3.21)
project(restarting LANGUAGES C CXX Fortran)
set(CMAKE_MODULE_PATH "{source / "cmake" / "Modules"}" "{source / "cmake"}")
find_package(MPI REQUIRED COMPONENTS Fortran)
find_package(OpenMP REQUIRED COMPONENTS Fortran)
find_package(ComIn REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(netcdf REQUIRED IMPORTED_TARGET netcdf-fortran)
add_executable(restarting restarting.F90 {others})
target_link_libraries(restarting ComIn::ComIn MPI::MPI_Fortran OpenMP::OpenMP_Fortran PkgConfig::netcdf)
"""
    )
    run("cmake", "-S", folder, "-B", folder / "build", f"-DComIn_DIR={comin}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder / "build")
    return folder / "build" / "restarting"
