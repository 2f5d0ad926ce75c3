# SPDX-License-Identifier: MIT
"""ComIn from a checkout of the user, with its host, replay tool, recorders and Python adapter; and our plug-in.

ComIn 0.2 has a minimal host. From 0.3 on the only host is the replay tool, and make_run.py of the example makes what it
reads. Two more hosts are made of copies of the minimal one, by changes of a few lines. One reaches the entry point at
which checkpoints are written, can restart, and prints what it finds in the tracer of the script. The other has two
domains. A copy of either host prints which fields it would copy between a GPU and the host.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hosts_run import ROOT, run, start

sys.path.insert(0, str(ROOT / "hosts" / "comin" / "example"))
import make_run  # noqa: E402

LIBRARIES = {
    "plugin": "plugin/libcomin_ftn_pytorch.so",
    "adapter": "comin/plugins/python_adapter/libpython_adapter.so",
    "run_recorder": "comin/replay_tool/libcomin_run_recorder_plugin.so",
    "var_recorder": "comin/replay_tool/libcomin_var_recorder_plugin.so",
    "var_replay": "comin/replay_tool/libcomin_var_replay_plugin.so",
}
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
# It copies nothing, since there is no GPU; it prints what ComIn asks it to copy.
ACCELERATED = {
    "minimal_example": {
        "CALL comin_callback_context_call(EP_ATM_PHYSICS_BEFORE, jg, .FALSE.)": (
            "CALL comin_callback_context_call(EP_ATM_PHYSICS_BEFORE, jg, .TRUE.)"
        ),
        "  USE OMP_LIB\n": (
            "  USE OMP_LIB\n  USE comin_host_interface, ONLY: comin_var_set_sync_device_mem, t_comin_var_ptr\n"
        ),
        "  CALL comin_setup_set_verbosity_level(iverbosity=13)\n": (
            "  CALL comin_setup_set_verbosity_level(iverbosity=13)\n  CALL comin_var_set_sync_device_mem(copy)\n"
        ),
        "  !> Initialize MPI, this should always be the first call\n": (
            "  SUBROUTINE copy(var_ptr, direction)\n"
            "    TYPE(t_comin_var_ptr), POINTER, INTENT(IN) :: var_ptr\n"
            "    LOGICAL, INTENT(IN) :: direction\n"
            '    WRITE (0,"(3a)") "copied: ", TRIM(var_ptr%descriptor%name), &\n'
            '      & MERGE(" to the GPU  ", " to the host ", direction)\n'
            "  END SUBROUTINE copy\n\n"
        ),
    }
}
ACCELERATED_REPLAY = {
    "comin_replay": {
        "CALL comin_callback_context_call(current_ep(i), current_domain_id(i), .FALSE.)": (
            "CALL comin_callback_context_call(current_ep(i), current_domain_id(i), .TRUE.)"
        ),
        "comin_var_set_sync_halo, comin_var_list_finalize,": (
            "comin_var_set_sync_halo, comin_var_set_sync_device_mem, comin_var_list_finalize,"
        ),
        "    CALL comin_setup_set_verbosity_level(iverbosity=msg_level)\n": (
            "    CALL comin_setup_set_verbosity_level(iverbosity=msg_level)\n"
            "    CALL comin_var_set_sync_device_mem(copy)\n"
        ),
        "    SUBROUTINE start_mpi()\n": (
            "    SUBROUTINE copy(var_ptr, direction)\n"
            "      TYPE(t_comin_var_handle), INTENT(IN) :: var_ptr\n"
            "      LOGICAL, INTENT(IN) :: direction\n"
            "      TYPE(t_comin_var_descriptor) :: descr\n"
            "      descr = var_ptr%descriptor()\n"
            '      WRITE (0,"(3a)") "copied: ", TRIM(descr%name), MERGE(" to the GPU  ", " to the host ", direction)\n'
            "    END SUBROUTINE copy\n\n"
            "    SUBROUTINE start_mpi()\n"
        ),
    }
}


@dataclass
class Hosts:
    """What was built of one ComIn. programs: paths by names of the hosts; arguments: what follows them."""

    source: Path
    folder: Path
    programs: dict[str, Path]

    @property
    def is_replay(self) -> bool:
        """Whether all hosts are the replay tool."""
        return "minimal" not in self.programs

    def start(self, name: str, ranks: int, folder: Path, entries, grids: Path, *, restart=False, expect=0):
        """Standard output and error of a host in a folder. name: minimal, restarting, nested, accelerated, or replay,
        of what recorders have written there. entries: name, library of `LIBRARIES` and options of each plug-in."""
        replays = self.is_replay or name == "replay"
        data = folder if name == "replay" else folder / f"data_{name}_{ranks}_{restart}"
        if self.is_replay and name != "replay":
            domains, checkpoint = 1 + (name == "nested"), name == "restarting"
            make_run.write(data, self.source, ranks, domains, restart, checkpoint)
        if replays:
            entries = [("variables", "var_replay", f"{data}/vars_"), *entries]
        text, arguments = "&comin_nml\n", [f"{data}/"] if replays else [grids, *["restart"] * restart]
        if self.is_replay:
            text = f'&replay_tool_nml\n  replay_data_path = "{data}/"\n/\n{text}'
            arguments = ["master.nml"]
        for number, (called, library, options) in enumerate(entries, 1):
            values = {"name": called, "plugin_library": self.folder / LIBRARIES[library], "options": options}
            text += "".join(f'  plugin_list({number})%{key} = "{value}"\n' for key, value in values.items())
        (folder / "master.nml").write_text(text + "/\n")
        return start(ranks, folder, self.programs.get(name, self.programs["replay"]), *arguments, expect=expect)

    def read_back(self, output: str, folder: Path, rank: int) -> list[float]:
        """Least and largest value of the tracer qnn at the end of a run of "restarting" whose last plug-in was the
        variable recorder: what the host has."""
        if not self.is_replay:
            found = re.findall(rf"the host reads on rank {rank}\s+(\S+)\s+(\S+)", output)[0]
            return [*map(float, found)]
        command = ["ncdump", "-p", "17,17", "-v", "qnn", folder / f"vars_{rank}.nc"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        values = [float(each) for each in done.stdout.split("qnn =")[1].split(";")[0].split(",")]
        last = values[-len(values) // make_run.STEPS :]
        return [min(last), max(last)]


def build(source: Path, library: Path, folder: Path) -> Hosts:
    """Build all of it in ``folder``. source: checkout of ComIn. library: where ftn_pytorch is installed."""
    example = source / "test" / "minimal_example"
    targets = ["comin_replay", "python_adapter", *(f"comin_{name}_plugin" for name in ("run_recorder", "var_recorder"))]
    targets += ["comin_var_replay_plugin", *["minimal_example"] * example.exists()]
    comin, plugin = folder / "comin", folder / "plugin"
    run("cmake", "-S", source, "-B", comin, *_options(f"-DPython3_EXECUTABLE={sys.executable}", example.exists()))
    run("cmake", "--build", comin, "--parallel", "--target", *targets)
    run(
        *("cmake", "-S", ROOT / "hosts" / "comin", "-B", plugin, f"-DComIn_DIR={comin}"),
        *(f"-Dftn_pytorch_ROOT={library}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_Fortran_FLAGS=-Wall -fcheck=all"),
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror",
    )
    run("cmake", "--build", plugin)
    programs = {"replay": comin / "replay_tool" / "comin_replay"}
    if example.exists():
        changed = {"restarting": RESTARTING, "nested": NESTED, "accelerated": ACCELERATED}
        programs["minimal"] = comin / "test" / "minimal_example" / "minimal_example"
    else:
        changed, example = {"accelerated": ACCELERATED_REPLAY}, source / "replay_tool"
    for name, changes in changed.items():
        programs[name] = _changed(changes, example, source, comin, folder / name)
    return Hosts(source, folder, programs)


def _options(python: str, has_minimal: bool) -> list[str]:
    # the tests of later ones load their data from elsewhere
    wanted = ["COMIN_ENABLE_PYTHON_ADAPTER", "COMIN_ENABLE_REPLAY_TOOL", *["BUILD_TESTING"] * has_minimal]
    return [*(f"-D{name}=ON" for name in wanted), "-DCOMIN_ENABLE_EXAMPLES=OFF", "-DCMAKE_BUILD_TYPE=Release", python]


def _changed(changes: dict[str, dict[str, str]], host: Path, source: Path, comin: Path, folder: Path) -> Path:
    """A host of ComIn with changes, in a folder whose name it gets. host: the folder of its files."""
    name, files = folder.name, []
    folder.mkdir(exist_ok=True)
    for path in [*host.glob("*.F90"), *host.glob("src/*.F90")]:
        if "plugin" in path.name or "save" in path.name:
            continue
        text = path.read_text()
        for old, new in changes.get(path.stem, {}).items():
            assert text.count(old) == 1, f"{path.name} of this ComIn has no line {old!r}"
            text = text.replace(old, new)
        (folder / path.name).write_text(text)
        files.append(path.name)
    (folder / "CMakeLists.txt").write_text(
        f"""cmake_minimum_required(VERSION 3.21)
project({name} LANGUAGES C CXX Fortran)
set(CMAKE_MODULE_PATH "{source / "cmake" / "Modules"}" "{source / "cmake"}")
find_package(MPI REQUIRED COMPONENTS Fortran)
find_package(OpenMP REQUIRED COMPONENTS Fortran)
find_package(ComIn REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(netcdf REQUIRED IMPORTED_TARGET netcdf-fortran)
add_executable({name} {" ".join(files)})
target_link_libraries({name} ComIn::ComIn MPI::MPI_Fortran OpenMP::OpenMP_Fortran PkgConfig::netcdf)
"""
    )
    run("cmake", "-S", folder, "-B", folder / "build", f"-DComIn_DIR={comin}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder / "build")
    return folder / "build" / name
