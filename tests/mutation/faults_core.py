# SPDX-License-Identifier: MIT
"""Faults in the core that tests must notice. Add one when a defect has got past the tests."""

from __future__ import annotations

from fault import Fault, ctest, gtest, pytest

CORE, EMBED = "test_core", "test_embed"
PROGRAM = "diagnosis_program"

CORE_FAULTS = [
    # ---- src/base
    Fault(
        "the file is not synced",
        "src/base/replaced_file.cpp",
        "if (fsync(descriptor.get()) != 0) fail_by_errno(path);",
        "",
        gtest(CORE, "ReplacedFile*"),
    ),
    Fault(
        "the folder is not synced",
        "src/base/replaced_file.cpp",
        "(void)fsync(descriptor.get());",
        "(void)0;",
        gtest(CORE, "ReplacedFile*"),
    ),
    Fault(
        "another name of the lock",
        "src/base/replaced_file.cpp",
        '.string() + ".lock")',
        '.string() + ".lck")',
        gtest(CORE, "ReplacedFile*"),
    ),
    Fault(
        "parts of killed writers stay",
        "src/base/replaced_file.cpp",
        "if (lock.is_held()) remove_parts(path);",
        "",
        gtest(CORE, "ReplacedFile*"),
    ),
    Fault(
        "a script is replaced",
        "src/base/replaced_file.cpp",
        'if (file.extension() == ".py") fail_to_write(file, "there is a script; name another file");',
        "",
        gtest(CORE, "ReplacedFile*"),
    ),
    Fault(
        "the first rank is none",
        "src/base/rank.cpp",
        "number_of(number) >= 0",
        "number_of(number) > 0",
        gtest(CORE, "RankTest*"),
    ),
    Fault(
        "a hidden file has an extension",
        "src/base/rank.cpp",
        "dot > slash + 1",
        "dot > slash",
        gtest(CORE, "RankTest*"),
    ),
    Fault("an overlong byte is UTF-8", "src/base/error.cpp", "first < 0xC2 ? 0", "first < 0xC0 ? 0", gtest(CORE, "*")),
    Fault(
        "workers get the state of the caller",
        "src/base/fpenv.cpp",
        "restore(worker_saved ? worker_state : *static_cast<const FloatingPoint*>(caller));",
        "restore(*static_cast<const FloatingPoint*>(caller));",
        ctest("^test_openmp|^test_core$", "test_openmp", CORE),
    ),
    # ---- src/arrays
    Fault("an overflow to -Inf", "src/arrays/fit.cpp", "std::abs(value) <=", "value <=", gtest(CORE, "Fit*")),
    Fault(
        "integers below the range",
        "src/arrays/fit.cpp",
        "value >= std::numeric_limits<Number>::min() &&",
        "",
        gtest(CORE, "Fit*"),
    ),
    Fault(
        "a result over its own output",
        "src/arrays/fit.cpp",
        "return this != &other || !is_in_place();",
        "return this != &other;",
        gtest(CORE, "*"),
    ),
    Fault(
        "the stride of one element counts",
        "src/arrays/arg.cpp",
        "stride % size != 0 && extents[i] > 1",
        "stride % size != 0",
        gtest(CORE, "*"),
    ),
    Fault(
        "the stride of one element is refused",
        "src/arrays/array.cpp",
        "if (leads_on && stride >= 0)",
        "if (stride >= 0)",
        gtest(EMBED, "CallTest*"),
    ),
    Fault(
        "arrays that touch overlap",
        "src/arrays/array.cpp",
        "one.begin < other.end &&",
        "one.begin <= other.end &&",
        gtest(CORE, "*"),
    ),
    # ---- src/observe
    Fault(
        "a full log is told for each line", "src/observe/log.cpp", "&& !told.exchange(true)", "", gtest(CORE, "Log*")
    ),
    Fault(
        "a full disk breaks the trace",
        "src/observe/events.cpp",
        "if (ftruncate(descriptor, kept().trace_end) == 0)",
        "if (false)",
        gtest(CORE, "Trace*"),
    ),
    Fault(
        "a child is observed",
        "src/observe/observe.cpp",
        "void in_child() { observing.store(false); }",
        "void in_child() {}",
        pytest("diagnosis/test_profile.py", PROGRAM),
    ),
    # ---- src/python
    Fault(
        "3.1 is the beginning of 3.11",
        "src/python/environment.cpp",
        'const std::size_t end = text.find_first_not_of("0123456789", 2);',
        "const std::size_t end = 4;",
        gtest(CORE, "Environment*"),
    ),
    Fault(
        "an environment without torch is taken",
        "src/python/environment.cpp",
        "if (has_torch(choice.executable) || !has_torch(ours)) return choice;",
        "return choice;",
        gtest(CORE, "Environment*"),
    ),
    Fault(
        "a libpython of another installation is taken",
        "src/python/environment.cpp",
        "(loaded.version != choice.version || !is_libpython_of(loaded.file, choice))",
        "loaded.version != choice.version",
        gtest(CORE, "Environment*"),
    ),
    Fault(
        "calls begin while Python ends",
        "src/python/interpreter.cpp",
        "python_end.store(PythonEnd::ending, std::memory_order_relaxed);",
        "",
        pytest("diagnosis/test_python_host.py", "ftn_pytorch_python"),
    ),
    # ---- src/torch
    Fault(
        "another version of torch is the same",
        "src/torch/torch_location.cpp",
        "a.folder == b.folder && a.version == b.version",
        "a.folder == b.folder",
        gtest(CORE, "*Torch*"),
    ),
    Fault(
        "a kept view of NumPy is not seen",
        "src/torch/framework.cpp",
        "if (!counts_are_proof() || holders_of(made.object.get()) != 1) return false;",
        "",
        gtest(EMBED, "NumPyMutation*"),
    ),
    # ---- src/calls
    Fault(
        "options of scripts are taken by the direct path",
        "src/calls/options.cpp",
        "!asks_for_nothing(option))",
        "false)",
        gtest(CORE, "*Option*"),
    ),
    Fault(
        "negative strides from a device",
        "src/calls/results.cpp",
        "copy.target.dtype && !has_negative_stride(copy.target) &&",
        "copy.target.dtype &&",
        gtest(EMBED, "*"),
    ),
    # ---- src/script
    Fault(
        "a cache that was changed meanwhile",
        "src/script/cache.cpp",
        "if (changes_ != changes) known = find(array, head, key);",
        "(void)changes;",
        gtest(EMBED, "*CacheReentry*"),
    ),
    Fault(
        "one name twice",
        "src/script/call.cpp",
        "if (std::find(keywords.begin(), keywords.end(), name) != keywords.end())",
        "if (false)",
        gtest(EMBED, "*"),
    ),
    Fault(
        "a reload while a function is looked up",
        "src/script/script_runner.cpp",
        "if (reloads_ != reloads) return this->function(name, flags);",
        "(void)reloads;",
        gtest(EMBED, "*ModuleTest*:*LoadTest*"),
    ),
    Fault(
        "memory of a script stays",
        "src/script/script_runner.cpp",
        "  has_garbage_ = true;\n  checked(",
        "  checked(",
        gtest(EMBED, "LoadTest*"),
    ),
    Fault(
        "inputs are not watched",
        "src/script/call.cpp",
        "if (!writable && !owned) watched_[count_] = &arg;",
        "",
        gtest(EMBED, "*"),
    ),
    # ---- src, the doors
    Fault(
        "no memory is a defect",
        "src/calls/guard.cpp",
        "remember_error(FPT_ERR_MEMORY,",
        "remember_error(FPT_ERR_INTERNAL,",
        gtest(CORE, "Guard*"),
    ),
    # ---- src/node
    Fault(
        "a rank that is gone before it joins is waited for",
        "src/node/server.cpp",
        "if (client.control) ++gone_;",
        "if (client.channel) ++gone_;",
        gtest(CORE, "*ServerTest*"),
    ),
    # ---- src/plugin
    Fault(
        "a rank replaces the recording of another",
        "src/plugin/file_owner.cpp",
        "if (writer != rank().number)",
        "if (writer < 0)",
        pytest("python/test_checkpoint_lock.py", "ftn_pytorch_direct", "ftn_pytorch_recording"),
    ),
]
