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
/// - `__cxa_thread_atexit_impl` (python/interpreter.cpp): to end Python before static objects of torch. Without glibc,
///   atexit() alone, which may be late.
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

// Functions of torch's libraries in C++. Looked up, tried, and replaced by calls of Python, 26 to 80 ns each.
constexpr const char* autograd_meta = "_ZNK3c1010TensorImpl13autograd_metaEv";     ///< anything of autograd
constexpr const char* version = "_ZNK2at10TensorBase8_versionEv";                  ///< changes in place
constexpr const char* is_negative = "_ZN2at6native6is_negERKNS_6TensorE";          ///< the negative bit
constexpr const char* is_inference_mode = "_ZN3c1013InferenceMode10is_enabledEv";  ///< of this thread

// The same for the modes that a script may leave behind (torch_modes.cpp): all of them, or Python is asked, 5 us.
constexpr const char* gradient_mode = "_ZN3c108GradMode10is_enabledEv";
constexpr const char* default_type = "_ZN3c1031get_default_dtype_as_scalartypeEv";
constexpr const char* autocast = "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE";
constexpr const char* context = "_ZN2at13globalContextEv";
constexpr const char* deterministic = "_ZNK2at7Context23deterministicAlgorithmsEv";
constexpr const char* function_modes = "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv";

// Attributes of torch's Python package.
constexpr const char* implementation = "_cdata";          ///< finds the TensorImpl in the object; gone: no C functions
constexpr const char* inference_mode = "_InferenceMode";  ///< leaves inference mode; gone: cached tensors may be of it
constexpr const char* negative_view = "_neg_view";        ///< for the test of is_negative; gone: asked of Python

}  // namespace fpt::private_names
