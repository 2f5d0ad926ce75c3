// SPDX-License-Identifier: MIT
/// The table of the plug-in: settings, catch-all, and one call each.
#include <dlfcn.h>
#include <torch/version.h>

#include "direct/direct_value.hpp"
#include "plugin/answer.hpp"
#include "plugin/model.hpp"
#include "plugin/products.hpp"
#include "plugin/stream.hpp"
#include "plugin/table.hpp"

struct fpt_direct_module {
  std::unique_ptr<fpt::direct::Model> model;
  std::optional<at::Device> device;  // none for the host
};

namespace fpt::direct {
namespace {

/// A device that can be used; FPT_ERR_DEVICE. None for the host.
std::optional<at::Device> usable_device(const char* text) {
  if (!text) return std::nullopt;
  std::optional<at::Device> device;
  try {
    device = at::Device(text);
  } catch (const std::exception& error) {
    fail(FPT_ERR_DEVICE, "device=\"", text, "\" is no device that torch knows; use \"cpu\", \"cuda\" or \"cuda:1\" (",
         message_of(error), ")");
  }
  if (device->is_cpu()) return std::nullopt;
  if (device->is_meta()) fail(FPT_ERR_DEVICE, "device=\"meta\" holds no numbers, nothing can be computed there");
  try {
    // with an index, which "cuda" has not
    device = at::empty_strided({1}, {1}, at::TensorOptions().device(*device).dtype(at::kFloat)).zero_().device();
  } catch (const std::exception& error) {
    fail(FPT_ERR_DEVICE, "device=\"", text, "\" cannot be used: ", message_of(error));
  }
  return device;
}

Settings settings_of(const char* file, const fpt_direct_options& options) {
  Settings settings;
  settings.file = file;
  settings.name = options.name;
  settings.device = usable_device(options.device);
  settings.same_layout = options.same_layout != 0;
  settings.copies_inputs = options.copies_inputs != 0;
  settings.float_dtype = options.float_dtype;
  settings.mode = options.mode;
  settings.flags = options.flags;
  settings.training = options.training != 0;
  if (options.has_communicator) settings.communicator = options.communicator;
  return settings;
}

const char* torch_library() {
  static const std::string& file = *new std::string([] {
    Dl_info info;
    const void* symbol = reinterpret_cast<const void*>(&torch::jit::freeze);
    return std::string(dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : "");
  }());
  return file.c_str();
}

std::optional<int64_t> step_of(int64_t step) { return step == -1 ? std::nullopt : std::optional<int64_t>(step); }

Answer& answer_of(const fpt_direct_answer& answer) { return *static_cast<Answer*>(answer.owner); }

constexpr fpt_direct_table models = {
    FPT_DIRECT_VERSION,
    FPT_ABI,
    TORCH_VERSION,
    torch_library,
    [] { return last_error().c_str(); },
    set_warning_handler,
    [](int64_t n) { return guard([&] { at::set_num_threads(static_cast<int>(n)); }); },
    [](const char** function) { return guard([&] { *function = wrong_product(); }); },
    [](const char* file, const fpt_direct_options* options, fpt_direct_module** module) {
      return guard([&] {
        Settings settings = settings_of(file, *options);
        const std::optional<at::Device> device = settings.device;
        auto model = options->kind == FPT_DIRECT_PACKAGE     ? load_package(std::move(settings))
                     : options->kind == FPT_DIRECT_RECORDING ? load_recording(std::move(settings))
                                                             : load_script(std::move(settings));
        *module = new fpt_direct_module{std::move(model), device};
      });
    },
    [](fpt_direct_module* module) { delete module; },
    [](fpt_direct_module* module) { return guard([&] { module->model->reload(); }); },
    [](fpt_direct_module* module, const char* file) { return guard([&] { module->model->save(file); }); },
    [](fpt_direct_module* module, const char* file, int32_t fallback, int64_t step, int64_t* restored) {
      return guard([&] { *restored = module->model->restore(file, fallback != 0, step_of(step)); });
    },
    [](fpt_direct_module* module, const char* folder, int64_t keep, int64_t step) {
      return guard([&] { module->model->checkpoint(folder, keep, step_of(step)); });
    },
    [](fpt_direct_module* module, const fpt_direct_value* values, int32_t count) {
      return guard([&] {
        std::vector<NamedTensor> given;
        for (int32_t i = 0; i < count; ++i)
          given.emplace_back(values[i].name, tensor_on(array_of_value(values[i]), true));
        module->model->assign(std::move(given));
      });
    },
    [](fpt_direct_module* module, const char* name) { return static_cast<int32_t>(module->model->has(name)); },
    [](fpt_direct_module* module, const char* name, int64_t name_len, const fpt_arg* inputs,
       const fpt_direct_operand* tensors, int32_t ninputs, int32_t flags, fpt_direct_answer* answer) {
      return guard([&] {
        const std::string_view method = name ? std::string_view(name, static_cast<std::size_t>(name_len)) : "";
        if (!tensors) return module->model->call(method, {inputs, ninputs}, flags, *answer);
        std::vector<at::Tensor> given;
        for (int32_t i = 0; i < ninputs; ++i) given.push_back(tensors[i].tensor ? seen(tensors[i]) : at::Tensor());
        module->model->call(method, {inputs, ninputs, given.data()}, flags, *answer);
      });
    },
    [](fpt_direct_module* module, fpt_direct_answer* answer) {
      return guard([&] { module->model->parameters(*answer); });
    },
    [](void* owner) { release_answer(std::unique_ptr<Answer>(static_cast<Answer*>(owner))); },
    [](const fpt_direct_answer* answer, int32_t index, int32_t widened, fpt_direct_value* copy) {
      return guard([&] { *copy = answer_of(*answer).on_host(static_cast<std::size_t>(index), widened != 0); });
    },
    [](const fpt_direct_value* source, const fpt_direct_value* target) {
      return guard([&] { tensor_on(array_of_value(*target), true).copy_(tensor_on(array_of_value(*source), true)); });
    },
    [](int32_t device_type, int32_t device_index) { return guard([&] { wait_for({device_type, device_index}); }); },
    [](const fpt_direct_module* module, void* stream, int32_t waits, void** entered) {
      return guard([&] { *entered = enter_stream(stream, module->device, waits != 0); });
    },
    [](void* entered) { leave_stream(entered); },
    [](fpt_direct_module* module, const fpt_direct_optimizer* settings) {
      return guard([&] { module->model->create_optimizer(*settings); });
    },
    [](fpt_direct_module* module, const fpt_arg* inputs, int32_t ninputs, const fpt_arg* targets, int32_t ntargets,
       double* loss, int32_t* completed) {
      return guard([&] {
        const TrainedStep step = module->model->train({inputs, ninputs}, {targets, ntargets});
        *loss = step.loss;
        *completed = step.completed;
      });
    },
    {},
};

}  // namespace
}  // namespace fpt::direct

extern "C" const fpt_direct_table* fpt_direct_table_get() {
  static const fpt_direct_table table = [] {
    fpt_direct_table made = fpt::direct::models;
    made.tensors = fpt::direct::tensor_functions();
    return made;
  }();
  return &table;
}
