// SPDX-License-Identifier: MIT
/// Bodies of the C interface, part one: the library and modules.
#include <algorithm>
#include <cstring>
#include <utility>
#include <iterator>
#include <vector>

#include "arrays/arg.hpp"
#include "backend.hpp"
#include "script/call.hpp"
#include "script/deliver.hpp"
#include "direct/direct_plugin.hpp"
#include "python/environment.hpp"
#include "torch/framework.hpp"
#include "guard.hpp"
#include "script/module.hpp"
#include "observe/observe.hpp"
#include "calls/tensor.hpp"

using namespace fpt;

namespace {

/// A call with arguments: copies made for it do not outlive it, whether it got as far as using them or not.
template <class Body>
fpt_status guard_call(const fpt_arg* first, int32_t nfirst, const fpt_arg* second, int32_t nsecond, Body&& body) noexcept {
  const fpt_status status = guard_python(std::forward<Body>(body));
  if (status != FPT_OK) {
    discard_copies(first, nfirst);
    discard_copies(second, nsecond);
  }
  return status;
}

/// A call of the direct path: without the interpreter and its lock.
template <class Body>
fpt_status guard_direct(fpt_module module, Body&& body) noexcept {
  const HostState host;
  return guard([&] { body(direct_module_at(module)); });
}

/// The same with arguments.
template <class Body>
fpt_status guard_direct_call(fpt_module module, const fpt_arg* first, int32_t nfirst, const fpt_arg* second,
                             int32_t nsecond, Body&& body) noexcept {
  const fpt_status status = guard_direct(module, std::forward<Body>(body));
  discard_copies(first, nfirst);
  discard_copies(second, nsecond);
  return status;
}

/// Free what a handle named before it was given contents of the other path.
void free_replaced_results(int64_t before, const fpt_results* now) noexcept {
  if (!now || before == 0 || before == *now) return;
  is_direct_results(before) ? free_direct_results(before) : free_results(before);
}

void free_any_module(fpt_module module) {
  if (is_direct_module(module)) return free_direct_module(module);
  if (module == 0 || !is_started()) return;
  guard_python([&] { free_module(module); });
}

std::string_view view_trimmed(const char* text, int64_t length) noexcept {
  while (length > 0 && text[length - 1] == ' ') --length;
  return {text, static_cast<std::size_t>(length)};
}

/// Inputs in, results out: all calls but training.
[[gnu::hot]]
void run(Module& module, Function& function, fpt_arg* inputs, int32_t ninputs, fpt_arg* outputs, int32_t noutputs,
         fpt_results* results) {
  Call call(module, function);
  call.add(inputs, ninputs, "input");
  const bool in_place = function.has_out && noutputs > 0;
  if (in_place) call.add_out(outputs, noutputs);
  Ref result = call.invoke(false, 0);
  if (noutputs > 0) deliver(module, function, result.get(), outputs, noutputs, in_place);
  if (noutputs == 0 && !results && result.get() != Py_None) require_done(module, function, result.get());
  if (results) {
    const fpt_results before = *results;
    store_results(results, Results::of(module, function, result.get()));
    if (is_direct_results(before)) free_direct_results(before);
  }
  call.finish(std::move(result), results != nullptr);
}

/// The same where outputs may be tensors, which stand for the memory they describe.
[[gnu::hot]]
void run_described(Module& module, Function& function, fpt_arg* inputs, int32_t ninputs, fpt_arg* outputs, int32_t noutputs,
                   fpt_results* results) {
  if (std::none_of(outputs, outputs + noutputs, [](const fpt_arg& output) { return is_tensor_handle(output.handle); }))
    return run(module, function, inputs, ninputs, outputs, noutputs, results);
  std::vector<fpt_arg> described;
  std::transform(outputs, outputs + noutputs, std::back_inserter(described), described_output);
  run(module, function, inputs, ninputs, described.data(), noutputs, results);
}

[[gnu::hot]]
void train(Module& module, fpt_arg* inputs, int32_t ninputs, fpt_arg* targets, int32_t ntargets, bool is_wrap,
           int32_t* completed, double* loss) {
  Function& function = module.train();
  Call call(module, function);
  call.add(inputs, ninputs, "input");
  call.add(targets, ntargets, "target");
  Ref result = call.invoke(is_wrap && function.one_list, ninputs);
  deliver_training(module, function, result.get(), *completed, *loss);
  call.finish(std::move(result), false);
}

fpt_status load(fpt_module* module, int32_t kind, const char* file, int64_t file_len, fpt_arg options[], int32_t noptions,
                fpt_arg config[], int32_t nconfig) {
  bool is_direct = false;
  fpt_status status;
  {
    const HostState host;
    status = guard([&] {
      std::unique_ptr<DirectModule> direct = load_directly(kind, trimmed(file, file_len), options, noptions, nconfig);
      is_direct = direct != nullptr;
      if (!is_direct) return;
      const fpt_module before = *module;
      *module = insert_direct_module(std::move(direct));
      free_any_module(before);
    });
  }
  if (is_direct || status != FPT_OK) {
    discard_copies(options, noptions);
    discard_copies(config, nconfig);
    return status;
  }
  return guard_call(options, noptions, config, nconfig, [&] {
    const fpt_module before = *module;
    if (is_direct_module(before)) *module = 0;
    store_module(Module::load(kind, trimmed(file, file_len), options, noptions, config, nconfig), module);
    if (is_direct_module(before)) free_direct_module(before);
  });
}

}  // namespace

extern "C" {

const char* fpt_version(void) { return FPT_VERSION; }

fpt_status fpt_init(const char* python, int64_t python_len) {
  const HostState host;
  return guard([&] { ensure_started(trimmed(python, python_len)); });
}

void fpt_error_text(const char** text, int64_t* length) {
  *text = last_error().data();
  *length = static_cast<int64_t>(last_error().size());
}

const char* fpt_status_name(fpt_status status) { return status_name(status); }

void fpt_on_warning(void (*handler)(const char* text, int64_t length)) { set_warning_handler(handler); }

fpt_status fpt_set_threads(int64_t n) {
  if (n >= 1 && !is_started() && opened_direct_plugin()) {
    const HostState host;
    return guard([&] { require_direct(direct_plugin().set_threads(n)); });
  }
  return guard_python([&] {
    if (n < 1) fail(FPT_ERR_ARGUMENT, "the number of threads is ", n, "; it must be at least 1");
    checked(PyObject_CallFunction(embed("set_threads"), "L", static_cast<long long>(n)), "setting the number of threads");
  });
}

fpt_status fpt_diagnose(const char** text, int64_t* length) {
  static std::string& report = *new std::string;
  const std::string mode = floating_point_mode();
  const int team = openmp_team_size();
  const std::string core = object_file_of(reinterpret_cast<const void*>(&fpt_diagnose));
  const std::string direct = direct_torch().folder.empty() ? "" : text_of(direct_torch());
  bool is_complete = false;
  const fpt_status status = guard_python([&] {
    const InterpreterInfo& info = interpreter_info();
    const Ref answer = checked(
        PyObject_CallFunction(embed("diagnose"), "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i}", "executable", info.executable.c_str(),
                              "reason", info.reason.c_str(), "library", info.library.c_str(), "floating_point",
                              mode.c_str(), "core", core.c_str(), "direct_torch", direct.c_str(), "direct_obstacle",
                              direct_obstacle().c_str(), "openmp_threads", team),
        "diagnosing");
    const char *wrong = nullptr, *sentence = nullptr, *lines = nullptr;
    if (!PyArg_ParseTuple(answer.get(), "sss", &wrong, &sentence, &lines)) throw_python_error("diagnosing");
    report = lines;
    is_complete = true;
    if (*wrong) fail(status_of_name(wrong), sentence);
  });
  if (!is_complete) report = last_error();
  *text = report.data();
  *length = static_cast<int64_t>(report.size());
  return status;
}

fpt_status fpt_module_load(fpt_module* module, int32_t kind, const char* file, int64_t file_len, fpt_arg options[],
                           int32_t noptions, fpt_arg config[], int32_t nconfig) {
  start_observing();
  const int64_t begin = time_now(), before = *module;
  const fpt_status status = load(module, kind, file, file_len, options, noptions, config, nconfig);
  if (observing) {
    if (status == FPT_OK && before != *module) forget_module(before);
    report_load(*module, trimmed(file, file_len), is_direct_module(*module) ? "direct" : "python", begin, status);
  }
  return status;
}

fpt_status fpt_module_reload(fpt_module module) {
  if (is_observed()) return observe_call(CallFacts::of_whole(module, "reload"), [=] { return fpt_module_reload(module); });
  if (is_direct_module(module)) return guard_direct(module, [](DirectModule& direct) { direct.reload(); });
  return guard_python([&] { ModuleUse(module)->reload(); });
}

fpt_status fpt_module_has(fpt_module module, const char* name, int64_t name_len, int32_t* has) {
  if (is_direct_module(module))
    return guard_direct(module, [&](DirectModule& direct) { *has = direct.has(trimmed(name, name_len)); });
  return guard_python([&] { *has = ModuleUse(module)->has(trimmed(name, name_len)); });
}

fpt_status fpt_module_backend(fpt_module module, const char** text, int64_t* length) {
  if (is_direct_module(module))
    return guard_direct(module, [&](DirectModule&) {
      static const std::string direct = "direct";
      *text = direct.data();
      *length = static_cast<int64_t>(direct.size());
    });
  return guard_python([&] {
    const std::string& backend = ModuleUse(module)->backend();
    *text = backend.data();
    *length = static_cast<int64_t>(backend.size());
  });
}

fpt_status fpt_module_save(fpt_module module, const char* file, int64_t file_len) {
  if (is_observed())
    return observe_call(CallFacts::of_whole(module, "save", view_trimmed(file, file_len)),
                        [=] { return fpt_module_save(module, file, file_len); });
  if (is_direct_module(module))
    return guard_direct(module, [&](DirectModule& direct) { direct.save(trimmed(file, file_len)); });
  return guard_python([&] { ModuleUse(module)->save(trimmed(file, file_len)); });
}

fpt_status fpt_module_checkpoint(fpt_module module, const char* folder, int64_t folder_len, int64_t keep,
                                 int64_t step) {
  if (is_observed())
    return observe_call(CallFacts::of_whole(module, "checkpoint", view_trimmed(folder, folder_len)),
                        [=] { return fpt_module_checkpoint(module, folder, folder_len, keep, step); });
  if (is_direct_module(module))
    return guard_direct(module, [](DirectModule&) { DirectModule::refuse_checkpoints(); });
  return guard_python([&] { ModuleUse(module)->checkpoint(trimmed(folder, folder_len), keep, step); });
}

fpt_status fpt_module_restore(fpt_module module, const char* file, int64_t file_len, int32_t fallback, int64_t step,
                              int64_t* found) {
  if (is_observed())
    return observe_call(CallFacts::of_whole(module, "restore", view_trimmed(file, file_len)),
                        [=] { return fpt_module_restore(module, file, file_len, fallback, step, found); });
  if (is_direct_module(module))
    return guard_direct(module, [&](DirectModule& direct) {
      direct.restore(trimmed(file, file_len), fallback != 0 || step >= 0);
      if (found) *found = -1;
    });
  return guard_python([&] {
    const int64_t restored = ModuleUse(module)->restore(trimmed(file, file_len), fallback != 0, step);
    if (found) *found = restored;
  });
}

[[gnu::hot]]
fpt_status fpt_module_forward(fpt_module module, fpt_arg inputs[], int32_t ninputs, fpt_arg outputs[], int32_t noutputs,
                              fpt_results* results, int32_t flags) {
  if (is_observed())
    return observe_call({module, "ftn_pytorch_forward", inputs, ninputs, outputs, noutputs}, [=] {
      return fpt_module_forward(module, inputs, ninputs, outputs, noutputs, results, flags);
    });
  if (is_direct_module(module))
    return guard_direct_call(module, inputs, ninputs, outputs, noutputs, [&](DirectModule& direct) {
      const fpt_results before = results ? *results : 0;
      direct.call({}, inputs, ninputs, outputs, noutputs, results, flags);
      free_replaced_results(before, results);
    });
  return guard_call(inputs, ninputs, outputs, noutputs, [&] {
    const ModuleUse use(module);
    run_described(*use, use->forward(flags), inputs, ninputs, outputs, noutputs, results);
  });
}

fpt_status fpt_module_forward_wrap(fpt_module module, fpt_wrap inputs, fpt_tensor* output, int32_t flags) {
  if (is_observed())
    return observe_call({module, "ftn_pytorch_forward"}, [=] {
      return fpt_module_forward_wrap(module, inputs, output, flags);
    });
  if (is_direct_module(module))
    return guard_direct(module, [&](DirectModule& direct) {
      ArgumentList& list = wrap_at(inputs);
      store_tensor(output, direct.forward(list.data(), list.size(), flags));
    });
  return guard_python([&] {
    const ModuleUse use(module);
    ArgumentList& list = wrap_at(inputs);
    Function& function = use->forward(flags);
    Call call(*use, function);
    call.add(list.data(), list.size(), "input");
    Ref result = call.invoke(function.one_list, list.size());
    store_tensor(output, single_tensor(*use, function, result.get()));
    call.finish(std::move(result), true);
  });
}

[[gnu::hot]]
fpt_status fpt_module_train(fpt_module module, fpt_arg inputs[], int32_t ninputs, fpt_arg targets[], int32_t ntargets,
                            int32_t* completed, double* loss) {
  if (is_observed())
    return observe_call({module, "ftn_pytorch_train", inputs, ninputs, targets, ntargets}, [=] {
      return fpt_module_train(module, inputs, ninputs, targets, ntargets, completed, loss);
    });
  if (is_direct_module(module))
    return guard_direct_call(module, inputs, ninputs, targets, ntargets, [&](DirectModule& direct) {
      direct.train(inputs, ninputs, targets, ntargets, *completed, *loss);
    });
  return guard_call(inputs, ninputs, targets, ntargets, [&] {
    const ModuleUse use(module);
    train(*use, inputs, ninputs, targets, ntargets, false, completed, loss);
  });
}

fpt_status fpt_module_train_wrap(fpt_module module, fpt_wrap inputs, fpt_tensor target, int32_t* completed, double* loss) {
  if (is_observed())
    return observe_call({module, "ftn_pytorch_train"}, [=] {
      return fpt_module_train_wrap(module, inputs, target, completed, loss);
    });
  fpt_arg argument;
  std::memset(&argument, 0, sizeof argument);
  argument.handle = target;
  argument.access = FPT_OUT;
  if (is_direct_module(module))
    return guard_direct(module, [&](DirectModule& direct) {
      ArgumentList& list = wrap_at(inputs);
      tensor_at(target);
      direct.train(list.data(), list.size(), &argument, 1, *completed, *loss);
    });
  return guard_python([&] {
    const ModuleUse use(module);
    ArgumentList& list = wrap_at(inputs);
    tensor_at(target);
    train(*use, list.data(), list.size(), &argument, 1, true, completed, loss);
  });
}

[[gnu::hot]]
fpt_status fpt_module_call(fpt_module module, const char* name, int64_t name_len, fpt_arg inputs[], int32_t ninputs,
                           fpt_arg outputs[], int32_t noutputs, fpt_results* results) {
  if (is_observed())
    return observe_call({module, view_trimmed(name, name_len), inputs, ninputs, outputs, noutputs}, [=] {
      return fpt_module_call(module, name, name_len, inputs, ninputs, outputs, noutputs, results);
    });
  if (is_direct_module(module))
    return guard_direct_call(module, inputs, ninputs, outputs, noutputs, [&](DirectModule& direct) {
      const fpt_results before = results ? *results : 0;
      const std::string function = trimmed(name, name_len);
      direct.call(function, inputs, ninputs, outputs, noutputs, results, 0);
      free_replaced_results(before, results);
    });
  return guard_call(inputs, ninputs, outputs, noutputs, [&] {
    const ModuleUse use(module);
    Function& function = use->function(view_trimmed(name, name_len), 0);
    run_described(*use, function, inputs, ninputs, outputs, noutputs, results);
  });
}

void fpt_module_free(fpt_module module) {
  if (observing) forget_module(module);
  free_any_module(module);
}

}  // extern "C"
