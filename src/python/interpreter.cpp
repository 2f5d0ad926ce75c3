// SPDX-License-Identifier: MIT
#include "python/interpreter.hpp"

#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/paths.hpp"
#include "base/rank.hpp"
#include "base/threads.hpp"
#include "base/visit.hpp"
#include "ftn_pytorch.h"
#include "observe/observe.hpp"
#include "python/crash.hpp"
#include "python/environment.hpp"
#include "python/forks.hpp"
#include "python/lock_keeper.hpp"
#include "python/own_parts.hpp"
#include "python/python_library.hpp"
#include "python/thread_ends.hpp"

namespace py = pybind11;

namespace fpt {
namespace {

InterpreterInfo& mutable_info() {
  static InterpreterInfo& info = *new InterpreterInfo;
  return info;
}

PyObject* embed_module = nullptr;
PyObject* (*make_core_module)() = nullptr;

std::string library_path() { return object_file_of(reinterpret_cast<const void*>(&Py_IsInitialized)); }

void require_ok(PyStatus status, PyConfig* config) {
  if (!PyStatus_Exception(status)) return;
  const std::string text = status.err_msg ? status.err_msg : "no reason given";
  if (config) PyConfig_Clear(config);
  const char* home = std::getenv("PYTHONHOME");
  const char* path = std::getenv("PYTHONPATH");
  fail(FPT_ERR_INTERPRETER, "Python could not be started: ", text, " (PYTHONHOME is ", home ? home : "not set",
       ", PYTHONPATH is ", path ? path : "not set", ")");
}

void start(const PythonChoice& choice) {
  PyPreConfig preconfig;
  PyPreConfig_InitPythonConfig(&preconfig);
  preconfig.configure_locale = 0;  // the locale belongs to the host program
  preconfig.coerce_c_locale = 0;
  preconfig.utf8_mode = 1;
  preconfig.parse_argv = 0;
  require_ok(Py_PreInitialize(&preconfig), nullptr);

  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.parse_argv = 0;
  config.configure_c_stdio = 0;        // PYTHONUNBUFFERED is about Python's output, not about the host's
  config.install_signal_handlers = 0;  // Ctrl-C and SIGPIPE stay the host's
  config.user_site_directory = 1;
#if PY_VERSION_HEX >= 0x030B0000
  config.safe_path = 1;  // the working directory is no place to import from
#endif
  std::string program = program_path();
  char* arguments[] = {program.data()};
  require_ok(PyConfig_SetBytesArgv(&config, 1, arguments), &config);
  // decides prefix, site-packages and sys.executable. The latter must be a Python: multiprocessing starts it again.
  require_ok(PyConfig_SetBytesString(&config, &config.executable, choice.executable.c_str()), &config);
  struct sigaction interrupt;
  sigaction(SIGINT, nullptr, &interrupt);
  const PyStatus status = Py_InitializeFromConfig(&config);
  require_ok(status, &config);
  PyConfig_Clear(&config);
  // the module installs a handler for Ctrl-C when it is first imported, whatever the configuration says
  Py_XDECREF(PyImport_ImportModule("_signal"));
  sigaction(SIGINT, &interrupt, nullptr);
}

/// Python is about to end, with its lock held: no call begins any more. Those of other threads get up to two seconds,
/// and those that wait for the lock just now get it at least once. Our own end of Python is none.
void let_calls_end() {
  if (lock_is_gone.load()) return;
  lock_is_limited = true;
  python_end.store(PythonEnd::ending, std::memory_order_relaxed);
  for (int i = 0; i < 5 || (calls_running > 0 && i < 2000); ++i) {
    const py::gil_scoped_release others;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Whoever embeds Python beside us may end it, also where we have started it.
void watch_for_the_end() {
  py::module_::import("atexit").attr("register")(py::cpp_function(let_calls_end));
  watch_for_forks();
  Py_AtExit([] {
    lock_is_limited = true;
    python_end.store(PythonEnd::ended, std::memory_order_relaxed);
  });
}

/// From here on modules come from the one file that the user has named, if they are in it.
void use_pack(bool is_adopted) {
  const char* file = std::getenv("FTN_PYTORCH_PACK");
  if (!file || !*file) return;
  // what such a program imports, and by which finders, is its own affair
  if (is_adopted) return log(LogLevel::info, "FTN_PYTORCH_PACK is not used: the program has started Python itself");
  const Ref path = text_object(file);
  py::module_::import("ftn_pytorch.system.pack").attr("use")(py::handle(path.get()));
}

/// The package that Python imports may be another one: PYTHONPATH and path files have a say, and a Python that the
/// program has started is its own.
void require_version_of_package() {
  const py::module_ module = py::module_::import("ftn_pytorch._version");
  const auto version = module.attr("__version__").cast<std::string>();
  if (version != FPT_VERSION)
    fail(FPT_ERR_VERSION, "the Python part of ftn_pytorch is ", version, " in ",
         module.attr("__file__").cast<std::string>(), ", and this library is ", FPT_VERSION, ": install both together");
}

/// With the lock held: our Python package, and what it does at the start.
void prepare(const InterpreterInfo& info) {
  try {
    const std::string folder = python_package_folder();
    if (!folder.empty()) {
      py::list path = py::module_::import("sys").attr("path");
      if (!path.contains(folder)) path.insert(0, folder);
    }
    if (make_core_module) checked(make_core_module(), "making the module of the core");
    require_version_of_package();
    use_pack(info.adopted);
    py::module_ module = py::module_::import("ftn_pytorch._embed");
    py::dict facts;
    facts["executable"] = info.executable;
    facts["reason"] = info.reason;
    facts["library"] = info.library;
    facts["core"] = own_file().string();
    facts["adopted"] = info.adopted ? "1" : "0";
    module.attr("on_start")(facts);
    if (const int64_t threads = wanted_threads()) module.attr("set_threads")(threads);
    watch_for_the_end();
    embed_module = module.release().ptr();
  } catch (py::error_already_set& error) {
    if (py::hasattr(error.value(), "status"))
      fail(status_of_name(error.value().attr("status").cast<std::string>()),
           error.value().attr("text").attr("encode")("utf-8", "backslashreplace").cast<std::string>());
    fail(FPT_ERR_IMPORT, "the Python part of ftn_pytorch could not be imported by ", info.executable, ": ",
         error.what());
  }
}

/// Python's exit functions and buffered output would be lost, because the interpreter is never finalized. Keeps the
/// lock: Python threads that still run must not enter libraries whose static objects are being destroyed.
void end_python() {
  // where others have ended Python, one that runs now is another one
  if (is_idle_child || !is_started() || python_end.load() == PythonEnd::ended || !Py_IsInitialized()) return;
  if (is_kept_elsewhere())
    return warn(
        "the program ends on another thread than the one that keeps Python's lock (keep_lock): exit functions "
        "of Python do not run, and what it has not written yet is lost");
  const bool first = !lock_is_gone.exchange(true);
  const Visit visit;
  if (first) wait_for_leaving_threads();
  PyGILState_Ensure();
  PyObject* result = PyObject_CallMethod(embed_module, "at_exit", nullptr);
  if (!result) PyErr_Clear();
  Py_XDECREF(result);
}

/// exit() destroys the thread_local objects of its thread before anything else. atexit() alone would be late: objects
/// that torch makes when a function of it is first used are destroyed before a handler that was registered earlier
/// runs.
void at_exit_of_first_thread(void*) {
  static bool done = false;
  if (!std::exchange(done, true)) end_python();
}

/// For exit() in another thread, and for what the program's own exit handlers have called since.
void at_exit() {
  static bool done = false;
  if (!std::exchange(done, true)) end_python();
}

/// Take a mutex that another thread may hold while it waits for the interpreter lock.
std::unique_lock<std::mutex> lock_without_interpreter(std::mutex& mutex) {
  if (!Py_IsInitialized() || !PyGILState_Check()) return std::unique_lock<std::mutex>(mutex);
  const InterpreterPause others;
  return std::unique_lock<std::mutex>(mutex);
}

}  // namespace

std::atomic<bool> interpreter_started{false};
std::atomic<PythonEnd> python_end{PythonEnd::none};
std::atomic<bool> lock_is_limited{false};
int calls_running = 0;
__thread PyThreadState* own_state = nullptr;

bool provide_core_module(PyObject* (*make)()) noexcept {
  make_core_module = make;
  return true;
}

int other_threads() noexcept { return threads_that_called.load() - (own_state ? 1 : 0); }

const InterpreterInfo& interpreter_info() { return mutable_info(); }

void ensure_started(const std::string& python) {
  if (is_started()) return;
  static std::mutex& mutex = *new std::mutex;
  const std::unique_lock<std::mutex> lock = lock_without_interpreter(mutex);
  if (is_started()) return;

  InterpreterInfo& info = mutable_info();
  info.library = library_path();
  start_observing();
  const bool running = Py_IsInitialized() != 0;
  if (!running) {
    const PythonChoice choice = python_to_start(python);
    info.executable = choice.executable;
    info.reason = choice.reason;
    start(choice);
    if (!choice.warning.empty()) warn_of_job(choice.warning);
    own_state = PyEval_SaveThread();
    ++threads_that_called;
  } else if (info.executable.empty()) {
    if (std::strstr(Py_GetVersion(), "free-threading")) fail_free_threaded("the program is a Python");
    info.adopted = true;
    info.executable = "the Python that runs in this process";
    info.reason = "adopted";
  }
  const InterpreterLock gil;
  if (!info.adopted) show_traceback_on_crash();
  prepare(info);
  register_exit_handler();
  log(LogLevel::info,
      concat("Python ", PY_VERSION, ": ", info.executable, ", chosen by ", info.reason, ", library ", info.library));
  interpreter_started.store(true, std::memory_order_release);
}

void sleep_for_ever() noexcept {
  for (;;) pause();
}

bool may_use_python() noexcept {
  const PythonEnd end = python_end.load();
  if (end == PythonEnd::ended || !Py_IsInitialized()) return false;
  return end == PythonEnd::none || PyGILState_Check();
}

void require_python() {
  if (!may_use_python())
    fail(FPT_ERR_INTERPRETER, "a part of this program has ended the Python of the process (Py_Finalize): ",
         "nothing that runs in Python can be called any more");
}

void InterpreterLock::require_lock() {
  if (is_idle_child) note_call_of_child();
  require_python();
  if (is_kept_elsewhere())
    fail(FPT_ERR_INTERPRETER, "another thread of the program keeps Python's lock (keep_lock of ftn_pytorch_init), ",
         "so this one would never end: call from that thread, or do not keep the lock");
}

void InterpreterLock::acquire_elsewhere() noexcept {
  if (PyGILState_Check()) {
    held_ = Held::before;
  } else if (PyGILState_GetThisThreadState()) {
    // a thread that Python or somebody else has registered: its state is theirs to delete
    held_ = Held::foreign_state;
    foreign_ = or_sleep(PyGILState_Ensure);
  } else {
    held_ = Held::own_state;
    or_sleep(PyGILState_Ensure);
    own_state = PyThreadState_Get();
    ++threads_that_called;
    leave_at_end_of_thread(own_state);
  }
}

void release_with_lock(void (*body)(void* objects), void* objects) noexcept {
  if (is_idle_child || !may_use_python()) return;
  if (own_state && current_state() == own_state) return body(objects);
  if (is_kept_elsewhere()) return leave_to_keeper(body, objects);
  try {
    const Visit visit;
    const InterpreterLock gil;
    body(objects);
  } catch (const Error&) {
    // Python has ended meanwhile, and what it owned leaks
    return;
  }
}

Ref checked(PyObject* object, const std::string& context) {
  if (!object) throw_python_error(context);
  return Ref(object);
}

Ref text_object(std::string_view text) {
  return checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"), "text");
}

PyObject* embed(const char* function) {
  PyObject* result = PyObject_GetAttrString(embed_module, function);
  if (!result) throw_python_error(concat("the Python part of ftn_pytorch has no ", function));
  Py_DECREF(result);  // the module keeps it
  return result;
}

void throw_python_error(const std::string& context) {
  if (!PyErr_Occurred()) fail(FPT_ERR_INTERNAL, context, ": Python reported a failure without an exception");
  const Ref failure = take_exception();
  const Ref where(PyUnicode_DecodeUTF8(context.data(), static_cast<Py_ssize_t>(context.size()), "backslashreplace"));
  const Ref description(
      PyObject_CallMethod(embed_module, "describe_error", "OO", failure.get(), where ? where.get() : Py_None));
  const char* status = nullptr;
  PyObject* text = nullptr;
  if (description && PyArg_ParseTuple(description.get(), "sU", &status, &text)) {
    // messages may hold lone surrogates (names of files, say), which strict UTF-8 refuses
    const Ref bytes(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
    if (bytes)
      throw Error(status_of_name(status), std::string(PyBytes_AS_STRING(bytes.get()), PyBytes_GET_SIZE(bytes.get())));
  }
  PyErr_Clear();  // the description failed (no memory, say): the type alone must do
  fail(FPT_ERR_PYTHON, context, ": ", Py_TYPE(failure.get())->tp_name);
}

void register_exit_handler() {
  static int64_t made = 0;  // a program may load for ever, and each handler is kept; written with the lock
  if (++made > 1000) return;
  // glibc runs handlers last in, first out: those of a library registered when it was loaded must come after ours
  std::atexit(at_exit);
  if (syscall(SYS_gettid) == getpid()) end_before_objects_until_now(at_exit_of_first_thread, nullptr);
}

}  // namespace fpt
