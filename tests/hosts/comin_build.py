# SPDX-License-Identifier: MIT
"""ComIn from a checkout of the user, with its minimal host, replay tool, recorders and Python adapter; and our plug-in.

Two more hosts are made of copies of the minimal one, by changes of a few lines. One reaches the entry point at which
checkpoints are written, can restart, and prints what it finds in the tracer of the script. The other has two domains.
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
# What is replaced in the minimal host, each once, by file.
RESTARTING = {
    "minimal_example": {
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
}
# The second domain has the grid of the first one, and fields of its own that are larger by 1000.
NESTED = {
    "minimal_example": {
        "    CALL comin_callback_context_call(EP_ATM_PHYSICS_BEFORE, jg, .FALSE.)\n": (
            "    CALL comin_callback_context_call(EP_ATM_PHYSICS_BEFORE, 1, .FALSE.)\n"
            "    CALL comin_callback_context_call(EP_ATM_PHYSICS_BEFORE, 2, .FALSE.)\n"
        ),
    },
    "descr_data": {
        "    n_dom = 1\n": "    n_dom = 2\n",
        "    ! in mock-up only rudimentary setup of p_patch for tests\n": "    p_patch(2) = p_patch(1)\n",
    },
    "vars": {
        "    INTEGER :: zaxis_id, pos_jcjkjb(3)\n": "    INTEGER :: zaxis_id, pos_jcjkjb(3), number\n",
        "    vn => varlist\n    DO WHILE (ASSOCIATED(vn))\n      ! for time-level": (
            "    DO number = 1, 2\n    vn => varlist\n    DO WHILE (ASSOCIATED(vn))\n      ! for time-level"
        ),
        "name=get_var_name(vn%this%name), id=1)": "name=get_var_name(vn%this%name), id=number)",
        "        dataptr => get_var_ptr(vn%this)\n        comin_var_ptr = t_comin_var_ptr": (
            "        dataptr => get_var_ptr(vn%this)\n"
            "        IF (number == 2) ALLOCATE(dataptr, SOURCE=1000 + get_var_ptr(vn%this))\n"
            "        comin_var_ptr = t_comin_var_ptr"
        ),
        "    END DO\n  END SUBROUTINE expose_variables": "    END DO\n    END DO\n  END SUBROUTINE expose_variables",
    },
}


@dataclass
class Hosts:
    """What was built."""

    minimal: Path
    restarting: Path
    nested: Path
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
        restarting=_changed(RESTARTING, source, comin, folder / "restarting"),
        nested=_changed(NESTED, source, comin, folder / "nested"),
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


def _changed(changes: dict[str, dict[str, str]], source: Path, comin: Path, folder: Path) -> Path:
    """The minimal host with changes, in a folder whose name it gets."""
    example, name = source / "test" / "minimal_example", folder.name
    folder.mkdir(exist_ok=True)
    for file in ("descr_data", "vars", "mo_utilities", "minimal_example"):
        text = (example / f"{file}.F90").read_text()
        for old, new in changes.get(file, {}).items():
            assert text.count(old) == 1, f"the minimal host of this ComIn has no line {old!r}"
            text = text.replace(old, new)
        (folder / f"{file}.F90").write_text(text)
    (folder / "CMakeLists.txt").write_text(
        f"""cmake_minimum_required(VERSION 3.21)
project({name} LANGUAGES C CXX Fortran)
set(CMAKE_MODULE_PATH "{source / "cmake" / "Modules"}" "{source / "cmake"}")
find_package(MPI REQUIRED COMPONENTS Fortran)
find_package(OpenMP REQUIRED COMPONENTS Fortran)
find_package(ComIn REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(netcdf REQUIRED IMPORTED_TARGET netcdf-fortran)
add_executable({name} minimal_example.F90 descr_data.F90 vars.F90 mo_utilities.F90)
target_link_libraries({name} ComIn::ComIn MPI::MPI_Fortran OpenMP::OpenMP_Fortran PkgConfig::netcdf)
"""
    )
    run("cmake", "-S", folder, "-B", folder / "build", f"-DComIn_DIR={comin}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder / "build")
    return folder / "build" / name
