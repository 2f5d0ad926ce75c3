// SPDX-License-Identifier: MIT
/// Bodies of the C interface, part one: the library and modules. Knows nothing of Python.
#include "arrays/arg.hpp"
#include "base/cuda_context.hpp"
#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "base/threads.hpp"
#include "base/visit.hpp"
#include "calls/module_call.hpp"
#include "calls/python_side.hpp"
#include "direct/torch_side.hpp"
#include "opening.hpp"
#include "python/python_library.hpp"
#include "values/argument_list.hpp"

using namespace fpt;

extern "C" {

const char* fpt_version(void) { return FPT_VERSION; }

fpt_status fpt_init(const char* python, int64_t python_len) {
  return guard_call([&] {
    const std::string wanted = trimmed(python, python_len);
    open_python_library(wanted);
    python_side().start(wanted);
  });
}

fpt_status fpt_keep_lock(int32_t keeps) {
  return guard([&] {
    const Visit visit;  // not guard_call: what a thread keeps would be back at its end
    python_side().keep_lock(keeps != 0);
  });
}

fpt_status fpt_init_device(const char* device, int64_t device_len) {
  return guard([&] { make_primary_context_current(gpu_of_name(trimmed(device, device_len).c_str())); });
}

void fpt_error_text(const char** text, int64_t* length) {
  guard([&] { hand_out(last_error(), text, length); });
}

const char* fpt_status_name(fpt_status status) {
  const char* name = nullptr;
  guard([&] { name = status_name(status); });
  return name;
}

void fpt_on_warning(void (*handler)(const char* text, int64_t length)) {
  guard([&] { set_warning_handler(handler); });
}

fpt_status fpt_set_threads(int64_t n) {
  return guard_call([&] {
    want_threads(n);
    if (python_is_started()) python_side().set_threads(n);
    if (TorchSide* side = opened_torch_side()) side->set_threads(n);
  });
}

fpt_status fpt_set_host(fpt_arg values[], int32_t count) {
  const fpt_status status = guard_call([&] {
    require_arguments({values, count});
    open_python_library({});
    python_side().set_host({values, count});
  });
  discard_copies({values, count});
  return status;
}

fpt_status fpt_diagnose(const char** text, int64_t* length) {
  const char* mode = floating_point_mode();  // of the caller, so before the guard, as the other
  const int team = openmp_team_size();
  const fpt_status status = guard_call([&] { diagnose(mode, team); });
  guard([&] { hand_out(diagnosis(), text, length); });
  return status;
}

fpt_status fpt_module_load(fpt_module* module, int32_t kind, const char* file, int64_t file_len, fpt_arg options[],
                           int32_t noptions, fpt_arg config[], int32_t nconfig) {
  const int64_t begin = time_now();
  int64_t before = 0;
  std::string backend;
  const fpt_status status = guard_call([&] {
    if (!module) fail(FPT_ERR_ARGUMENT, "there is no variable for the module");
    before = *module;
    require_arguments({options, noptions});
    require_arguments({config, nconfig});
    start_observing();
    std::unique_ptr<Runner> runner = open_runner(kind, trimmed(file, file_len), {options, noptions}, {config, nconfig});
    backend = runner->backend();
    replace_module(module, std::move(runner));
  });
  discard_copies({options, noptions});
  discard_copies({config, nconfig});
  if (is_observed() && module)
    guard([&] { report_load(*module, before, view_trimmed(file, file_len), backend, begin, status); });
  return status;
}

fpt_status fpt_module_reload(fpt_module module) {
  return call_module(CallFacts::of_whole(module, "reload"), [](Runner& runner) { runner.reload(); });
}

fpt_status fpt_module_has(fpt_module module, const char* name, int64_t name_len, int32_t* has) {
  return guard_call([&] { *has = RunnerUse(module)->has(trimmed(name, name_len)); });
}

fpt_status fpt_module_backend(fpt_module module, const char** text, int64_t* length) {
  return guard_call([&] { hand_out(RunnerUse(module)->backend(), text, length); });
}

fpt_status fpt_module_save(fpt_module module, const char* file, int64_t file_len) {
  const std::string_view name = view_trimmed(file, file_len);
  return call_module(CallFacts::of_whole(module, "save", name),
                     [&](Runner& runner) { runner.save(std::string(name)); });
}

fpt_status fpt_module_checkpoint(fpt_module module, const char* folder, int64_t folder_len, int64_t keep,
                                 int64_t step) {
  const std::string_view name = view_trimmed(folder, folder_len);
  return call_module(CallFacts::of_whole(module, "checkpoint", name),
                     [&](Runner& runner) { runner.checkpoint(std::string(name), keep, step); });
}

fpt_status fpt_module_restore(fpt_module module, const char* file, int64_t file_len, int32_t fallback, int64_t step,
                              int64_t* found) {
  const std::string_view name = view_trimmed(file, file_len);
  return call_module(CallFacts::of_whole(module, "restore", name), [&](Runner& runner) {
    const int64_t restored = runner.restore(std::string(name), fallback != 0, step);
    if (found) *found = restored;
  });
}

fpt_status fpt_module_publish(fpt_module module, fpt_module target, const char* network, int64_t network_len) {
  const std::string_view name = view_trimmed(network, network_len);
  return call_module(CallFacts::of_whole(module, "publish", name), [&](Runner& runner) {
    if (module == target) fail(FPT_ERR_ARGUMENT, "a module cannot publish its weights to itself");
    runner.publish(std::string(name), *RunnerUse(target));
  });
}

fpt_status fpt_module_forward(fpt_module module, fpt_arg inputs[], int32_t ninputs, fpt_arg outputs[], int32_t noutputs,
                              fpt_results* results, int32_t flags) {
  return call_module(module, {forward_hook, {inputs, ninputs}, {{outputs, noutputs}, results}, flags});
}

fpt_status fpt_module_forward_wrap(fpt_module module, fpt_wrap inputs, fpt_tensor* output, int32_t flags) {
  return call_module(CallFacts(module, forward_hook), [&](Runner& runner) {
    HeldArguments list(wrap_at(inputs));
    TensorPtr made;
    runner.run({forward_hook, list.get(), {{}, nullptr, &made}, flags, true});
    store_tensor(output, std::move(made));
  });
}

fpt_status fpt_module_train(fpt_module module, fpt_arg inputs[], int32_t ninputs, fpt_arg targets[], int32_t ntargets,
                            int32_t* completed, double* loss) {
  Training said;
  return call_module(module, {train_hook, {inputs, ninputs}, {}, 0, false, {targets, ntargets}, &said},
                     [&] { said.tell(completed, loss); });
}

fpt_status fpt_module_train_wrap(fpt_module module, fpt_wrap inputs, fpt_tensor target, int32_t* completed,
                                 double* loss) {
  return call_module(CallFacts(module, train_hook), [&](Runner& runner) {
    fpt_arg goal = tensor_argument(target);
    HeldArguments list(wrap_at(inputs));
    Training said;
    runner.run({train_hook, list.get(), {}, 0, true, {&goal, 1}, &said});
    said.tell(completed, loss);
  });
}

fpt_status fpt_module_call(fpt_module module, const char* name, int64_t name_len, fpt_arg inputs[], int32_t ninputs,
                           fpt_arg outputs[], int32_t noutputs, fpt_results* results) {
  return call_module(module, {view_trimmed(name, name_len), {inputs, ninputs}, {{outputs, noutputs}, results}});
}

fpt_status fpt_module_call_tensor(fpt_module module, const char* name, int64_t name_len, fpt_arg inputs[],
                                  int32_t ninputs, fpt_tensor* tensor) {
  TensorPtr made;
  return call_module(module, {view_trimmed(name, name_len), {inputs, ninputs}, {{}, nullptr, &made}},
                     [&] { store_tensor(tensor, std::move(made)); });
}

fpt_status fpt_torch_call(const char* name, int64_t name_len, fpt_arg inputs[], int32_t ninputs, fpt_arg outputs[],
                          int32_t noutputs, fpt_results* results, fpt_tensor* tensor, int32_t layout) {
  const Args in{inputs, ninputs}, out{outputs, noutputs};
  fpt_module torch = 0;
  const fpt_status status = guard([&] {
    require_arguments(in);
    torch = torch_module(layout == -1 ? layout_of(in) : is_same_layout(layout));
  });
  if (status != FPT_OK) return discard_copies(in), discard_copies(out), status;
  TensorPtr made;
  return call_module(torch, {view_trimmed(name, name_len), in, {out, results, tensor ? &made : nullptr}}, [&] {
    if (tensor) *tensor = insert_result(std::move(made));
  });
}

fpt_status fpt_module_set_stream(fpt_module module, const int32_t* queue, void* stream, int32_t waits) {
  return guard_call([&] {
    const RunnerUse runner(module);
    runner->set_stream(queue ? stream_of_queue(*queue) : stream, waits != 0);
  });
}

fpt_status fpt_module_wait(fpt_module module) {
  return guard_call([&] { RunnerUse(module)->wait(); });
}

fpt_status fpt_module_create(fpt_module* object, fpt_module factory, const char* name, int64_t name_len,
                             fpt_arg inputs[], int32_t ninputs) {
  const Args in{inputs, ninputs};
  const std::string_view function = view_trimmed(name, name_len);
  fpt_module maker = factory;
  const fpt_status status = guard([&] {
    if (maker == 0) maker = torch_module(false);
  });
  if (status != FPT_OK) return discard_copies(in), status;
  return call_module(CallFacts(maker, function, in),
                     [&](Runner& runner) { replace_module(object, create(runner, function, in)); });
}

void fpt_module_free(fpt_module module) {
  if (is_observed()) guard([&] { forget_module(module); });
  guard_call([&] { runners().retire(module); });  // destroying objects of a script may run code of it
}

}  // extern "C"
