// SPDX-License-Identifier: MIT
#include "script/script_runner.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "observe/observe.hpp"
#include "python/interpreter.hpp"
#include "script/call.hpp"
#include "script/observed_function.hpp"
#include "script/script_answer.hpp"
#include "script/script_use.hpp"
#include "script/training.hpp"
#include "values/object_tensor.hpp"
#include "values/python_value.hpp"

namespace fpt {
namespace {

/// What was given, for runners/options.py, with what the core has completed.
Ref option_values(Args given, const Options& options) {
  Ref dict = checked(PyDict_New(), "options");
  const auto set = [&](const char* name, const Ref& value) {
    if (PyDict_SetItemString(dict.get(), name, value.get()) != 0) throw_python_error("options");
  };
  for (const fpt_arg& option : given)
    if (std::strcmp(option.name, "backend") != 0 && std::strcmp(option.name, "per") != 0)
      set(option.name, python_value(option));
  set("mode", text_object(options.safe ? "safe" : "checked"));
  if (!options.device.empty()) set("device", text_object(options.device));
  return dict;
}

/// torch registers exit handlers of its own when it comes, and when a script computes with some of it while it is
/// loaded: ours has to run before them.
void end_before_torch() {
  if (torch_is_imported()) register_exit_handler();
}

/// What pytorch-fortran's tensors hold: they know nothing of gradients, and a graph would keep all that it was made of.
Ref without_graph(Ref result) {
  if (!is_tensor(result.get())) return result;
  return checked(PyObject_CallMethod(result.get(), "detach", nullptr), "a result without its graph");
}

/// What a saved model that changes its inputs in place returns: the call is made when the inputs were looked at.
Ref postponed_step(PyObject* result, const std::string& function) {
  constexpr const char* name = "ftn_pytorch_step";
  if (is_tensor(result) || PyTuple_Check(result) || !PyObject_HasAttrString(result, name)) return Ref::borrow(result);
  return checked(PyObject_CallMethod(result, name, nullptr), function);
}

/// A coroutine or a generator means that the function has done nothing yet.
bool is_unfinished(PyObject* result) {
  return PyCoro_CheckExact(result) || PyGen_CheckExact(result) || PyAsyncGen_CheckExact(result);
}

TensorPtr one_tensor(PyObject* result, const CallName& call, const ResultOptions& reading) {
  if (is_tensor(result) && !reading.brings_to_host) return tensor_of_object(Ref::borrow(result), reading.same_layout);
  ScriptAnswer answer(result, call, /*copied_at_once=*/false);
  return single_tensor(answer, call, reading);
}

long long memory_in_use() {
  return PyLong_AsLongLong(checked(PyObject_CallNoArgs(embed("memory")), "reading the memory in use").get());
}

void collect_garbage(long long memory_before) noexcept {
  const Ref done(PyObject_CallFunction(embed("collect_garbage"), "L", memory_before));
  if (!done) PyErr_Clear();
}

CallName name_of(const Script& script, const Function& function) { return {function.name, script.name}; }

/// Lets torch work on the stream that the program has set for the module, as long as this lives.
class StreamUse {
 public:
  explicit StreamUse(const Script& script) {
    if (script.place.stream.is_chosen)
      entered_ =
          checked(PyObject_CallFunction(
                      embed("enter_stream"), "Ks",
                      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(script.place.stream.stream)),
                      script.place.device.c_str()),
                  "working on a stream");
  }
  ~StreamUse() {
    if (!entered_) return;
    const KeptException of_call;
    const Ref done(PyObject_CallFunctionObjArgs(embed("leave_stream"), entered_.get(), nullptr));
  }
  StreamUse(const StreamUse&) = delete;
  StreamUse& operator=(const StreamUse&) = delete;

 private:
  Ref entered_;
};

}  // namespace

__thread PyObject* runner_in_call = nullptr;

std::unique_ptr<Runner> ScriptRunner::load(int32_t kind, const std::string& file, const Options& options, Args given,
                                           Args config) {
  if (!is_started()) ensure_started();
  const InterpreterLock gil;
  const Ref values = named_values(config, options.same_layout, "config"), chosen = option_values(given, options),
            path = text_object(file);
  std::unique_ptr<ScriptRunner> loaded(new ScriptRunner);
  loaded->number_ = number_script(file);
  const ModesOfScript modes(loaded->number_, /*at_once=*/true);
  loaded->script_.options = options;
  loaded->memory_before_ = memory_in_use();
  loaded->script_.runner = checked(
      PyObject_CallFunction(embed("load"), "iOOO", kind, path.get(), chosen.get(), values.get()), "loading " + file);
  loaded->script_.name = loaded->attribute("name");
  loaded->read_attributes();
  end_before_torch();
  return loaded;
}

std::unique_ptr<ScriptRunner> ScriptRunner::of_object(Ref runner, const Options& options) {
  std::unique_ptr<ScriptRunner> made(new ScriptRunner);
  made->script_.options = options;
  made->memory_before_ = memory_in_use();
  made->script_.runner = std::move(runner);
  made->script_.keeps_tensors = true;
  made->script_.name = made->attribute("name");
  made->read_attributes();
  return made;
}

std::unique_ptr<Runner> ScriptRunner::torch_functions(bool same_layout) {
  if (!is_started()) ensure_started();
  const InterpreterLock gil;
  Options options;
  options.same_layout = same_layout;
  auto made = of_object(checked(PyObject_CallFunction(embed("torch_functions"), "i", same_layout), "torch"), options);
  end_before_torch();
  return made;
}

ScriptRunner::~ScriptRunner() {
  struct Objects {
    Script script;
    std::vector<std::unique_ptr<Function>> functions, retired;
    long long memory_before;
    uint64_t number;
  };
  const auto let_go = [](void* owned) {
    auto* const objects = static_cast<Objects*>(owned);
    const long long memory_before = objects->memory_before;
    forget_script(objects->number);
    delete objects;
    ::fpt::collect_garbage(memory_before);
  };
  auto objects = std::make_unique<Objects>(
      Objects{std::move(script_), std::move(functions_), std::move(retired_), memory_before_, number_});
  release_with_lock(let_go, objects.release());
}

void ScriptRunner::collect_garbage() const noexcept { ::fpt::collect_garbage(memory_before_); }

std::string ScriptRunner::attribute(const char* name) const {
  const std::string context = concat("reading ", name, " of a runner");
  const Ref value = checked(PyObject_GetAttrString(script_.runner.get(), name), context);
  if (value.get() == Py_None) return {};
  const char* text = PyUnicode_AsUTF8(value.get());
  if (!text) throw_python_error(context);
  return text;
}

void ScriptRunner::read_attributes() {
  // a reload keeps it, and fpt_module_backend() has promised that its memory stays
  if (std::string backend = attribute("backend"); backend != script_.backend) script_.backend = std::move(backend);
  script_.framework = attribute("framework") == "numpy" ? Framework::numpy : Framework::torch;
  script_.place.device = attribute("device");
  if (!script_.keeps_tensors)
    script_.names = checked(PyObject_GetAttrString(script_.runner.get(), "names"), "the names of a script");
  if (script_.names.get() == Py_None) script_.names = Ref();
  const bool is_saved = script_.backend != "script" && !script_.keeps_tensors;
  script_.refers_weakly = is_saved;
  script_.place.is_host = script_.options.device == "cpu" || (is_saved && script_.place.device.empty());
}

Function& ScriptRunner::function(std::string_view name, int32_t flags) {
  if (latest_ && latest_->flags == flags && latest_->name == name && latest_->is_current(script_)) return *latest_;
  const auto known = std::find_if(functions_.begin(), functions_.end(), [&](const auto& function) {
    return function->flags == flags && function->name == name;
  });
  if (known == functions_.end()) return bind(name, flags);
  if ((*known)->is_current(script_)) return *(latest_ = known->get());
  has_garbage_ = true;
  retired_.push_back(std::move(*known));
  functions_.erase(known);
  latest_ = nullptr;
  return bind(name, flags);
}

Function& ScriptRunner::bind(std::string_view name, int32_t flags) {
  auto function = std::make_unique<Function>();
  function->name = std::string(name);
  function->flags = flags;
  const std::string context = concat("looking up ", name, " in ", script_.name);
  const Ref key = text_object(name);
  PyObject* key_of_names = text_object(name.substr(name.rfind(':') + 1)).release();  // what a derivative is one of
  PyUnicode_InternInPlace(&key_of_names);  // so are the names of a script: finding it compares addresses
  function->key = Ref(key_of_names);
  if (script_.names) function->meant = Ref::borrow(PyDict_GetItemWithError(script_.names.get(), function->key.get()));
  const uint64_t reloads = reloads_;
  const Ref bound =
      checked(PyObject_CallFunction(embed("bind"), "OOi", script_.runner.get(), key.get(), flags), context);
  PyObject* callable = nullptr;
  int one_list = 0, has_out = 0, neglects_out = 0;
  if (!PyArg_ParseTuple(bound.get(), "Oppp", &callable, &one_list, &has_out, &neglects_out))
    throw_python_error(context);
  function->callable = Ref::borrow(callable);
  if (observing)
    function->callable = observed_function(function->callable, script_.runner.get(), function->name, flags);
  function->one_list = one_list != 0;
  function->has_out = has_out != 0;
  function->neglects_out = neglects_out != 0;
  if (reloads_ != reloads) return this->function(name, flags);  // while Python looked it up
  functions_.push_back(std::move(function));
  return *functions_.back();
}

void ScriptRunner::reload() {
  const InCall in_call(*this);
  has_garbage_ = true;
  checked(PyObject_CallFunctionObjArgs(embed("reload"), script_.runner.get(), nullptr), "reloading " + script_.name);
  for (auto& function : functions_) retired_.push_back(std::move(function));
  functions_.clear();
  latest_ = nullptr;
  ++reloads_;
  read_attributes();
  end_before_torch();
}

bool ScriptRunner::has(const std::string& function) {
  if (!may_use_python()) return false;
  const InCall in_call(*this);
  const Ref key = text_object(function);
  const Ref answer =
      checked(PyObject_CallFunctionObjArgs(embed("has"), script_.runner.get(), key.get(), nullptr), "has");
  return PyObject_IsTrue(answer.get()) == 1;
}

void ScriptRunner::run(const CallRequest& request) {
  const InCall in_call(*this);
  Function& function = this->function(request.function, request.flags);
  const StreamUse stream(script_);
  const Targets& targets = request.targets;
  const Outputs outputs(targets.outputs, /*may_be_on_device=*/script_.framework == Framework::torch);
  outputs.start_device([](Device device) { start_device(device); });
  Call call(script_, function);
  call.add(request.inputs, "input");
  if (request.training) call.add(request.goals, "target");
  const bool in_place = function.has_out && outputs.get().count > 0;
  if (in_place) call.add_out(outputs.get());
  Ref result = call.invoke(request.is_list && function.one_list ? request.inputs.count : Call::no_list);
  if (script_.refers_weakly) result = postponed_step(result.get(), function.name);
  if (request.object) {
    *request.object = of_object(std::exchange(result, Ref()), script_.options);
  } else if (request.training) {
    *request.training = training_of(result.get(), name_of(script_, function));
  } else {
    if (request.is_list && !call.requires_gradients()) result = without_graph(std::move(result));
    const bool is_done = in_place && result.get() == Py_None;
    if (is_done) call.require_written();
    hand_out(function, result.get(), is_done ? Args() : outputs.get(), targets);
    outputs.written();
  }
  call.finish(std::move(result), targets.results || targets.tensor);
  call.wait(outputs.device());
}

void ScriptRunner::hand_out(const Function& function, PyObject* result, Args outputs, const Targets& targets) {
  const ResultOptions reading = script_.reading();
  const CallName name = name_of(script_, function);
  // what may be refused comes before the first copy
  TensorPtr tensor = targets.tensor ? one_tensor(result, name, reading) : nullptr;
  std::optional<Results> results;
  if (targets.results) results.emplace(share_references(new ScriptAnswer(result, name, false)), name, reading);
  if (outputs.count > 0 && !(outputs.count == 1 && copy_plain_tensor(result, outputs[0], reading.same_layout))) {
    ScriptAnswer answer(result, name, /*copied_at_once=*/true);
    deliver(answer, name, reading, outputs);
  }
  if (tensor) *targets.tensor = std::move(tensor);
  if (results)
    store_results(targets.results, std::move(*results));
  else if (outputs.count == 0 && !targets.tensor && is_unfinished(result))
    ScriptAnswer(result, name, false);  // says what is wrong
}

void ScriptRunner::set_stream(void* stream, bool waits) {
  const InCall in_call(*this);
  if (script_.framework != Framework::torch) fail(FPT_ERR_DEVICE, script_.name, " uses NumPy, which has no streams");
  script_.place.stream = {stream, true, waits};
}

void ScriptRunner::wait() {
  const InCall in_call(*this);
  if (!script_.place.stream.is_chosen) return;  // every call has waited
  const StreamUse stream(script_);
  checked(PyObject_CallFunction(embed("wait_for_device"), "s", ""), "waiting");
}

}  // namespace fpt
