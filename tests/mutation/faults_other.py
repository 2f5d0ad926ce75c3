# SPDX-License-Identifier: MIT
"""Faults in the plug-in, the Fortran modules and the Python package that tests must notice.

Add one when a defect has got past the tests.
"""

from __future__ import annotations

from fault import Fault, ctest, pytest

PLUGIN = ctest("^test_plugin$", "test_plugin", "ftn_pytorch_direct")

OTHER_FAULTS = [
    # ---- src/direct and src/plugin
    Fault(
        "steps without a gradient count",
        "src/plugin/training/optimizer.cpp",
        "    if (!moments.parameter.grad().defined()) continue;\n    ++moments.steps;",
        "    ++moments.steps;",
        PLUGIN,
    ),
    Fault(
        "memory that was pointed elsewhere is copied",
        "src/plugin/frame.cpp",
        "if (is_there) copy_back",
        "(void)is_there, copy_back",
        PLUGIN,
    ),
    Fault("a returned input is kept", "src/plugin/frame.cpp", "|| returned ||", "|| (false && returned) ||", PLUGIN),
    # ---- fortran
    Fault(
        "a status without a sign",
        "fortran/fpt_kinds.fypp",
        "if (present(stat)) stat = int(abs(status))",
        "if (present(stat)) stat = int(status)",
        ctest("^test_(results|tensor)_checked$", "test_results_checked", "test_tensor_checked"),
    ),
    Fault(
        "a failure goes on",
        "fortran/fpt_kinds.fypp",
        "if (.not. present(stat)) call give_up(status)",
        "",
        ctest("^test_stop_plain_checked$", "test_stop_checked"),
    ),
    Fault(
        "a failed step says whether it is complete",
        "fortran/fpt_callable.fypp",
        "         if (present(completed)) completed = flag /= 0\n      end if",
        "      end if\n      if (present(completed)) completed = flag /= 0",
        ctest(
            "^test_(pymodule|module|refused)_checked$",
            "test_pymodule_checked",
            "test_module_checked",
            "test_refused_checked",
        ),
    ),
    Fault(
        "complex numbers of the other width",
        "fortran/fpt_descriptor.c",
        "CFI_type_float_Complex, FPT_COMPLEX64)",
        "CFI_type_float_Complex, FPT_COMPLEX128)",
        ctest("^test_kinds_checked$", "test_kinds_checked"),
    ),
    # ---- python
    Fault(
        "a single rank shares its cores",
        "python/ftn_pytorch/system/process.py",
        " or launcher.local_ranks(os.environ) < 2):",
        "):",
        pytest("python/test_process.py"),
    ),
    Fault(
        "ranks of MVAPICH2 on a node",
        "python/ftn_pytorch/system/launcher.py",
        '    "MV2_COMM_WORLD_LOCAL_SIZE",\n',
        "",
        pytest("python/test_process.py"),
    ),
    Fault(
        "nodes of Slurm are counted once",
        "python/ftn_pytorch/system/launcher.py",
        "range(int(part[2] or 1))",
        "range(1)",
        pytest("python/test_process.py"),
    ),
    Fault(
        "sys.path after a failed load",
        "python/ftn_pytorch/script/loading.py",
        "        sys.path[:] = paths\n",
        "",
        pytest("python/test_loading.py"),
    ),
    Fault(
        "the name of a failed reload",
        "python/ftn_pytorch/script/loading.py",
        "        restore_module(name, previous)\n        for new",
        "        for new",
        pytest("python/test_loading.py"),
    ),
    Fault(
        "byte code on disk",
        "python/ftn_pytorch/script/loading.py",
        "loader.source_to_code(loader.get_data(path), path)",
        "loader.get_code(loader.name)",
        pytest("python/test_loading.py"),
    ),
    Fault(
        "undone first to last",
        "python/ftn_pytorch/checkpoint/restoring.py",
        "in reversed(done)",
        "in done",
        pytest("python/test_checkpoint_refused.py"),
    ),
    Fault(
        "a damaged checkpoint is read",
        "python/ftn_pytorch/checkpoint/file.py",
        "!= digest.digest():",
        "!= digest.digest() and False:",
        pytest("python/test_checkpoint_files.py"),
    ),
    Fault(
        "a checkpoint is not synced",
        "python/ftn_pytorch/system/files.py",
        "raw.flush()\n                os.fsync(descriptor)",
        "raw.flush()",
        pytest("python/test_checkpoint_files.py"),
    ),
    Fault(
        "one checkpoint too many",
        "python/ftn_pytorch/checkpoint/folder.py",
        "listed(folder)[keep:]",
        "listed(folder)[keep + 1:]",
        pytest("python/test_checkpoint_files.py"),
    ),
    Fault(
        "the step that was reached is written again",
        "python/ftn_pytorch/checkpoint/folder.py",
        "entry.step <= reached",
        "entry.step < reached",
        pytest("python/test_checkpoint_files.py"),
    ),
    Fault(
        "the conjugate bit of a result",
        "python/ftn_pytorch/script/results.py",
        "value.resolve_conj().resolve_neg()",
        "value.resolve_neg()",
        pytest("python/test_results.py"),
    ),
    Fault(
        "misspelt variables of others",
        "python/ftn_pytorch/system/variables.py",
        "name.startswith(PREFIX) and name not in KNOWN",
        "name not in KNOWN",
        pytest("python/test_doctor.py"),
    ),
]
