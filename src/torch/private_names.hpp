// SPDX-License-Identifier: MIT
/// The page of what this library uses of torch, of CPython and of the C library without a promise, what for, and what
/// happens where it is gone. Names that are texts stand here and nowhere else; the others are listed with their files.
/// torch_report() says which of torch's are missing. Knows nothing of Python.
///
/// CPython
/// - `PyGetSetDescrObject::d_getset` (torch_access.cpp): calls the getters of requires_grad and grad without looking
///   them up. An opaque struct does not compile; a descriptor of another type means a look-up in each call.
/// - `_PyObject_GetDictPtr` (python/ownership.hpp): whether a script has left attributes with an object that is kept.
/// - `_PyThreadState_UncheckedGet` (python/interpreter.hpp), up to Python 3.12: whether this thread holds the lock.
/// - counts of references (python/ownership.hpp): whether anybody else holds an object. A self-test; where it fails no
///   tensor is kept between calls.
/// - `_signal` (python/interpreter.cpp): imported early, because it takes Ctrl-C. Renamed: Ctrl-C goes to Python.
/// - pthread_exit() where Python takes its lock (python/interpreter.hpp), up to Python 3.13, caught as forced
/// unwinding.
///
/// C library and compilers
/// - `__cxa_thread_atexit_impl` (python/thread_ends.cpp): to end Python before static objects of torch, and what it
///   holds for a thread before those of the thread. Without glibc, atexit() alone, which may be late.
/// - `GOMP_parallel` (base/fpenv.cpp): floating-point state of worker threads. Other runtimes of OpenMP: they keep
/// theirs.
/// - the file name libgfortran.so (python/crash.cpp): whose signal handler may be replaced. Linked statically: no
///   traceback of Python after a crash.
///
/// torch, compiled against it: plugin/ and recording/ are of one version of torch, which is compared when they are
/// opened. What is gone there is an error of the build: passes and execution modes of torch::jit, autograd_meta(),
/// version_counter(), the fused optimizers, caffe2/serialize, aoti_package, THPVariable_*, states of the dispatcher.
/// Texts of torch are compared in plugin/failure.cpp and plugin/package/: another text gives a less precise status.
#pragma once

namespace fpt::private_names {

// Attributes of torch's Python package.
constexpr const char* inference_mode = "_InferenceMode";  ///< leaves inference mode; gone: cached tensors may be of it

}  // namespace fpt::private_names
