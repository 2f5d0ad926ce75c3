// SPDX-License-Identifier: MIT
#include "plugin/direct_runner.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "arrays/texts.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/rank.hpp"
#include "direct/optimizer_settings.hpp"
#include "direct/torch_side.hpp"
#include "plugin/direct_tensor.hpp"
#include "plugin/failure.hpp"
#include "plugin/parts.hpp"
#include "plugin/stream.hpp"
#include "plugin/tensors.hpp"
#include "plugin/torchscript.hpp"
#include "values/argument_list.hpp"
#include "values/scopes.hpp"

namespace fpt::direct {
namespace {

constexpr std::string_view own_prefix = "ftn_pytorch_", optimizer_prefix = "ftn_pytorch_create_optimizer_",
                           parameters_function = "ftn_pytorch_parameters", optimizer_function = "ftn_pytorch_optimizer";

/// What follows a prefix; empty where the name has another one.
std::string_view after(std::string_view prefix, std::string_view name) noexcept {
  return name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : std::string_view();
}

[[noreturn]] void refuse(const CallName& function) {
  fail(FPT_ERR_HOOK, function, " needs Python: load the model with backend=\"python\"");
}

/// A device that can be used; FPT_ERR_DEVICE. None for the host.
std::optional<at::Device> usable_device(const std::string& text) {
  if (text.empty()) return std::nullopt;
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

std::optional<int64_t> step_of(int64_t step) { return step == -1 ? std::nullopt : std::optional<int64_t>(step); }

}  // namespace

/// libtorch works on the stream that the program has set for the module, if any, as long as this lives.
class DirectRunner::StreamUse {
 public:
  explicit StreamUse(DirectRunner& runner) {
    if (runner.has_stream_.load(std::memory_order_acquire)) enter(runner.settings_.place, runner.stream());
  }
  StreamUse(const std::optional<at::Device>& device, const ChosenStream& chosen) { enter(device, chosen); }
  ~StreamUse() {
    if (entered_) leave_stream(entered_);
  }
  StreamUse(const StreamUse&) = delete;
  StreamUse& operator=(const StreamUse&) = delete;

 private:
  void enter(const std::optional<at::Device>& device, const ChosenStream& chosen) {
    entered_ = translated([&] { return enter_stream(chosen.stream, device, chosen.waits); });
  }

  void* entered_ = nullptr;
};

DirectRunner::DirectRunner(const std::string& file, ModelKind kind, const Options& options)
    : kind_(kind), settings_{options, file, std::filesystem::path(file).stem().string(), {}} {
  settings_.place = usable_device(options.device);
  model_ = kind == ModelKind::package     ? load_package(settings_)
           : kind == ModelKind::recording ? load_recording(settings_)
                                          : load_script(settings_);
}

std::unique_ptr<Runner> DirectRunner::load(const std::string& file, ModelKind kind, const Options& options,
                                           Args config) {
  if (config.count > 0)
    fail(FPT_ERR_ARGUMENT, file,
         " is a saved model, it takes no config: config is handed to ftn_pytorch_setup of a script");
  if (options.training && kind == ModelKind::package)
    fail(FPT_ERR_ARGUMENT, file,
         " is a package of AOTInductor, whose mode was settled when it was compiled: ", "leave out training=");
  if (options.training && kind == ModelKind::recording)
    fail(FPT_ERR_ARGUMENT, file,
         " is a saved recording, whose modes were settled when it was written: ", "leave out training=");
  return translated([&] { return std::unique_ptr<Runner>(new DirectRunner(file, kind, options)); });
}

void DirectRunner::reload() {
  require_readable(settings_.file);
  translated([this] { model_->reload(); });
}

void DirectRunner::save(const std::string& file) {
  require_name(file);
  translated([&] { model_->save(absolute_path(with_rank(file, model_->own_rank().number)).string()); });
}

void DirectRunner::checkpoint(const std::string& folder, int64_t keep, int64_t step) {
  translated([&] { model_->checkpoint(with_rank(folder, model_->own_rank().number), keep, step_of(step)); });
}

int64_t DirectRunner::restore(const std::string& file, bool fallback, int64_t step) {
  require_name(file);
  const std::filesystem::path path = absolute_path(with_rank(file, model_->own_rank().number));
  std::error_code ignored;
  if (kind_ != ModelKind::recording && !std::filesystem::exists(path, ignored)) fail_without_checkpoint(path.string());
  if (!std::filesystem::is_directory(path, ignored)) require_readable(path.string());
  return translated([&] { return model_->restore(path.string(), fallback, step_of(step)); });
}

void DirectRunner::publish(const std::string&, Runner&) {
  fail(FPT_ERR_HOOK, settings_.name,
       " runs without Python and is trained by its own optimizer: a script publishes its networks");
}

void DirectRunner::assign(const std::vector<NamedArray>& values) {
  translated([&] {
    std::vector<NamedTensor> given;
    for (const NamedArray& each : values) given.emplace_back(each.name, tensor_on(each.array, true));
    model_->assign(std::move(given));
  });
}

bool DirectRunner::has(const std::string& function) {
  if (kind_ == ModelKind::recording && function != "ftn_pytorch_save" && function != "ftn_pytorch_restore")
    return model_->has(function);
  if (function == forward_hook) return model_->has("forward");
  if (after(own_prefix, function).empty()) return model_->has(function);
  return function == parameters_function || function == train_hook || function == "ftn_pytorch_save" ||
         function == "ftn_pytorch_restore" || kind_of_optimizer(after(optimizer_prefix, function)).has_value();
}

Graphs DirectRunner::graphs_of_call(bool hands_tensors, int32_t flags) const noexcept {
  if (kind_ != ModelKind::torchscript) return Graphs::refused;
  if (!hands_tensors) return Graphs::dropped;
  const bool is_inference =
      ((flags | settings_.flags) & FPT_USE_INFERENCE_MODE) != 0;  // except where an input has a graph
  const bool has_parameters = parameters_are_out_ && !is_inference && at::GradMode::is_enabled();
  return has_parameters ? Graphs::recorded_for_parameters : Graphs::recorded;
}

void DirectRunner::run_method(std::string_view method, const CallRequest& request, Graphs graphs) {
  const CallName name = name_of(request.function);
  const Targets& targets = request.targets;
  require_names(request.inputs, {}, name);
  const StreamUse stream(*this);
  const Outputs outputs(targets.outputs);
  outputs.start_device([](Device device) { translated([&] { wait_for(device); }); });
  const DirectArguments given(request.inputs, "input", name, graphs, settings_.same_layout);
  const auto compute = [&](DirectAnswer& answer) {
    translated([&] { model_->call(method, given.get(), request.flags, answer); });
    given.hand_over(answer);
  };
  if (!targets.tensor && !targets.results) {
    DirectAnswer answer;  // on the stack: nothing of it is kept
    compute(answer);
    return hand_over({std::shared_ptr<void>(), &answer}, name, reading(), outputs, targets);
  }
  const auto answer = given.records() ? std::make_shared<RecordedAnswer>() : std::make_shared<DirectAnswer>();
  compute(*answer);
  hand_over(answer, name, reading(), outputs, targets);
}

void DirectRunner::run(const CallRequest& request) {
  const std::string_view function = request.function;
  const Targets& targets = request.targets;
  if (request.training) {
    *request.training = train(request.inputs, request.goals);
  } else if (request.object) {
    if (function != optimizer_function || kind_ != ModelKind::torchscript) refuse(name_of(function));
    *request.object = make_optimizer(request.inputs);
  } else if (function == forward_hook) {
    run_method({}, request, graphs_of_call(targets.tensor || targets.results, request.flags));
  } else if (function.find(':') != std::string_view::npos) {  // a derivative, "ftn_pytorch_adjoint:1:NAME"
    if (kind_ != ModelKind::torchscript)
      fail(FPT_ERR_HOOK, settings_.file, " cannot be differentiated: it holds no operations that torch could follow");
    run_method(function, request, Graphs::dropped);
  } else if (function == parameters_function) {
    const ResultOptions themselves{settings_.same_layout, /*cast=*/false, /*brings_to_host=*/false};
    hand_over(parameters(), name_of(function), themselves, Outputs(targets.outputs), targets);
  } else if (const auto optimizer = after(optimizer_prefix, function);
             !optimizer.empty() && kind_ != ModelKind::recording) {
    const OptimizerSettings chosen = optimizer_settings(optimizer, request.inputs);
    translated([&] { model_->create_optimizer(chosen); });
  } else {
    if (kind_ != ModelKind::recording && !after(own_prefix, function).empty()) refuse(name_of(function));
    run_method(function, request, graphs_of_call(targets.tensor || targets.results, request.flags));
  }
}

std::shared_ptr<DirectAnswer> DirectRunner::parameters() {
  const auto answer = std::make_shared<RecordedAnswer>();
  translated([&] { model_->parameters(*answer); });
  parameters_are_out_ = true;
  return answer;
}

std::unique_ptr<Runner> DirectRunner::make_optimizer(Args inputs) {
  const std::shared_ptr<DirectAnswer> all = parameters();
  TensorArguments trained;
  const int32_t kinds = std::min(inputs.count, 1);  // the name of the class comes before what is trained
  std::vector<fpt_arg> args(inputs.begin(), inputs.begin() + kinds);
  {
    const at::AutoGradMode on(true);  // whatever the program has chosen for this thread
    for (int32_t i = 0; i < all->list().count; ++i) {
      TensorPtr parameter = all->tensor(i, settings_.same_layout, /*on_host=*/false);
      if (records_gradients(*parameter)) args.push_back(trained.add(std::move(parameter)));
    }
  }
  if (static_cast<int32_t>(args.size()) == kinds)
    fail(FPT_ERR_ARGUMENT, "no parameter of ", settings_.file,
         " requires gradients, so there is nothing to train: fetch them ",
         "with parameters(...) and call set_requires_grad, unless the model was frozen when it was written");
  args.insert(args.end(), inputs.begin() + kinds, inputs.end());
  return create(*torch_functions(settings_.same_layout), optimizer_function, args);
}

Training DirectRunner::train(Args inputs, Args goals) {
  const CallName call = name_of(train_hook);
  require_names(inputs, goals, call);
  const StreamUse stream(*this);
  const DirectArguments plain(inputs, "input", call, Graphs::refused, settings_.same_layout),
      wanted(goals, "target", call, Graphs::refused, settings_.same_layout);
  return translated([&] { return model_->train(plain.get(), wanted.get()); });
}

ChosenStream DirectRunner::stream() {
  const std::lock_guard<std::mutex> lock(stream_mutex_);
  return stream_;
}

void DirectRunner::set_stream(void* stream, bool waits) {
  const ChosenStream chosen{stream, true, waits};
  const StreamUse tried(settings_.place, chosen);  // refuses what calls could not use
  const std::lock_guard<std::mutex> lock(stream_mutex_);
  stream_ = chosen;
  has_stream_.store(true, std::memory_order_release);
}

void DirectRunner::wait() {
  if (!has_stream_.load(std::memory_order_acquire)) return;  // every call has waited
  ChosenStream chosen = stream();
  chosen.waits = true;
  const StreamUse entered(settings_.place, chosen);
  translated([] { wait_for({Device::cuda_type, -1}); });
}

}  // namespace fpt::direct
