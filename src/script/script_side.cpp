// SPDX-License-Identifier: MIT
/// The Python side of this library: what it offers, and its announcement when it is opened.
#include <filesystem>

#include "base/paths.hpp"
#include "calls/python_side.hpp"
#include "python/interpreter.hpp"
#include "python/lock_keeper.hpp"
#include "python/python_library.hpp"
#include "script/call.hpp"
#include "script/script_answer.hpp"
#include "script/script_runner.hpp"
#include "values/object_tensor.hpp"

namespace fpt {
namespace {

constexpr const char* for_a_node = "loading for the ranks of a node";

class ScriptSide : public PythonSide {
 public:
  void start(const std::string& python) override {
    ensure_started(python);
    require_python();
  }
  void keep_lock(bool keeps) override { fpt::keep_lock(keeps); }
  bool is_started() const noexcept override { return fpt::is_started(); }

  bool is_own() const noexcept override { return fpt::is_started() && !interpreter_info().adopted; }

  void set_threads(int64_t n) override {
    ensure_started();
    const InterpreterLock gil;
    checked(PyObject_CallFunction(embed("set_threads"), "L", static_cast<long long>(n)),
            "setting the number of threads");
  }

  void set_host(Args values) override {
    ensure_started();
    const InterpreterLock gil;
    const Ref named = named_values(values, /*same_layout=*/false, "host value");
    checked(PyObject_CallFunctionObjArgs(embed("set_values"), named.get(), nullptr), "telling scripts of the host");
  }

  Diagnosis diagnose(const DiagnosedFacts& facts) override {
    ensure_started();
    const InterpreterLock gil;
    const InterpreterInfo& info = interpreter_info();
    const Ref answer =
        checked(PyObject_CallFunction(embed("diagnose"), "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i}", "executable",
                                      info.executable.c_str(), "reason", info.reason.c_str(), "library",
                                      info.library.c_str(), "floating_point", facts.floating_point.c_str(), "core",
                                      facts.core.c_str(), "direct_torch", facts.direct_torch.c_str(), "direct_obstacle",
                                      facts.direct_obstacle.c_str(), "openmp_threads", facts.openmp_threads),
                "diagnosing");
    const char *wrong = nullptr, *sentence = nullptr, *lines = nullptr;
    if (!PyArg_ParseTuple(answer.get(), "sss", &wrong, &sentence, &lines)) throw_python_error("diagnosing");
    return {*wrong ? status_of_name(wrong) : FPT_OK, sentence, lines};
  }

  TorchLocation torch() override {
    const InterpreterLock gil;
    const Ref util(PyImport_ImportModule("importlib.util"));
    const Ref spec(util ? PyObject_CallMethod(util.get(), "find_spec", "s", "torch") : nullptr);
    const Ref origin(spec && spec.get() != Py_None ? PyObject_GetAttrString(spec.get(), "origin") : nullptr);
    const char* file = origin && PyUnicode_Check(origin.get()) ? PyUnicode_AsUTF8(origin.get()) : nullptr;
    PyErr_Clear();
    return file ? torch_in(std::filesystem::path(file).parent_path().string()) : TorchLocation();
  }

  std::unique_ptr<Runner> load(int32_t kind, const std::string& file, const Options& options, Args given,
                               Args config) override {
    return ScriptRunner::load(kind, file, options, given, config);
  }

  void join_node(int32_t communicator, int32_t size) override {
    ensure_started();
    const InterpreterLock gil;
    checked(PyObject_CallFunction(embed("join_node"), "ii", communicator, size), for_a_node);
  }

  void throw_raised() override {
    const InterpreterLock gil;
    if (PyErr_Occurred()) throw_python_error("");
  }

  void serve_ranks() override {
    ensure_started();
    const InterpreterLock gil;
    checked(PyObject_CallNoArgs(embed("serve_ranks")), "loading for the ranks of a GPU");
  }

  void prepare_fork() override {
    const InterpreterLock gil;
    checked(PyObject_CallFunction(embed("prepare_fork"), nullptr), for_a_node);
  }

  int fork_process() override {
    const InterpreterLock gil;
    const Ref process = checked(PyObject_CallFunction(embed("fork"), nullptr), "making a worker");
    return static_cast<int>(PyLong_AsLong(process.get()));
  }

  void become_worker(const std::vector<std::string>& variables, int32_t rank, int64_t threads,
                     int64_t parent) override {
    const InterpreterLock gil;
    const Ref list = checked(PyList_New(0), "variables");
    for (const std::string& each : variables) {
      const Ref text =
          checked(PyUnicode_DecodeFSDefaultAndSize(each.data(), static_cast<Py_ssize_t>(each.size())), each);
      if (PyList_Append(list.get(), text.get()) != 0) throw_python_error("variables");
    }
    checked(PyObject_CallFunction(embed("become_worker"), "OiLL", list.get(), rank, static_cast<long long>(threads),
                                  static_cast<long long>(parent)),
            "making a worker");
  }

  std::unique_ptr<Runner> torch_functions(bool same_layout) override {
    return ScriptRunner::torch_functions(same_layout);
  }

  std::shared_ptr<Answer> answer_of(Tensor& tensor, const CallName& call) override {
    ensure_started();
    const InterpreterLock gil;
    return share_references(new ScriptAnswer(torch_object_of(tensor).get(), call, /*copied_at_once=*/false));
  }
};

[[maybe_unused]] const bool announced =
    announce_python_library(FPT_VERSION, FPT_ABI) && (provide_python_side(*new ScriptSide), true);

}  // namespace
}  // namespace fpt
