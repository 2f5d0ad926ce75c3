// SPDX-License-Identifier: MIT
#include "plugin/eager/direct_optimizer.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "arrays/copy.hpp"
#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "calls/python_side.hpp"
#include "direct/object_arguments.hpp"
#include "direct/optimizer_settings.hpp"
#include "direct/schedule_options.hpp"
#include "plugin/direct_tensor.hpp"
#include "plugin/eager/direct_scheduler.hpp"
#include "plugin/eager/eager_tensor.hpp"
#include "plugin/failure.hpp"
#include "values/argument_list.hpp"

namespace fpt::direct {
namespace {

constexpr double default_rate = 1e-3;

/// The name of a class of torch.optim, and the one that settings have for it; empty for other classes.
std::string_view settings_name(std::string_view kind) noexcept {
  return kind == "SGD" ? "sgd" : kind == "Adam" ? "adam" : kind == "AdamW" ? "adamw" : "";
}

bool is_named(const fpt_arg& arg, std::string_view name) noexcept { return name == arg.name; }

/// Options with `betas` as two numbers; none where it is something else.
std::optional<std::vector<fpt_arg>> plain_options(Args options) {
  std::vector<fpt_arg> made;
  for (const fpt_arg& arg : options) {
    if (is_named(arg, "beta1") || is_named(arg, "beta2")) return std::nullopt;  // no names of torch.optim
    if (!is_named(arg, "betas")) {
      made.push_back(arg);
      continue;
    }
    const bool is_pair =
        !is_value(arg) && !is_tensor_handle(arg.handle) && arg.rank == 1 && arg.u.array.extents[0] == 2;
    if (!is_pair || !is_real(arg.dtype) || is_half(arg.dtype)) return std::nullopt;
    double betas[2];
    Array target = array_of(arg);
    const Array source = target;
    target.data = betas;
    target.dtype = FPT_FLOAT64;
    set_contiguous(target);
    copy(source, target);
    made.push_back(real_argument(betas[0], "beta1"));
    made.push_back(real_argument(betas[1], "beta2"));
  }
  return made;
}

/// Settings changed by options; false for what only Python takes or refuses.
bool change(OptimizerSettings& settings, std::string_view kind, Args options) {
  const auto is_nameless = [](const fpt_arg& arg) { return !arg.name[0] || arg.status != FPT_OK; };
  if (std::any_of(options.begin(), options.end(), is_nameless)) return false;
  std::optional<std::vector<fpt_arg>> plain = plain_options(options);
  if (!plain) return false;
  OptimizerSettings changed = settings;
  try {
    change_settings(changed, settings_name(kind), {plain->data(), static_cast<int32_t>(plain->size())});
  } catch (const Error&) {
    return false;
  }
  settings = changed;
  return true;
}

/// Whether an argument means the first group, or all of them: there is one.
bool is_whole(const fpt_arg& group) {
  const std::optional<int64_t> number = integer_in(group);
  return number == 0 || number == 1;
}

/// Settings as options of torch.optim, valid as long as this.
class NamedSettings {
 public:
  NamedSettings(std::string_view kind, const OptimizerSettings& settings)
      : is_sgd_(kind == "SGD"), settings_(settings) {}

  void append_to(std::vector<fpt_arg>& given) {
    for (const char* name : {"lr", "momentum", "dampening", "weight_decay", "eps"})
      if (const double* value = real_setting(settings_, name)) given.push_back(real_argument(*value, name));
    if (is_sgd_) {
      given.push_back(number_argument(settings_.nesterov != 0, FPT_BOOL, "nesterov"));
    } else {
      given.push_back(number_argument(settings_.amsgrad != 0, FPT_BOOL, "amsgrad"));
      given.push_back(row_argument(betas_, FPT_FLOAT64, 2, "betas"));
    }
  }

 private:
  const bool is_sgd_;
  OptimizerSettings settings_;
  double betas_[2] = {settings_.beta1, settings_.beta2};
};

}  // namespace

std::unique_ptr<Runner> DirectOptimizer::make(Args inputs) {
  if (inputs.count < 1 || inputs[0].dtype != FPT_TEXT || inputs[0].status != FPT_OK) return nullptr;
  const std::string kind(fpt::text_of(inputs[0]));
  if (settings_name(kind).empty()) return nullptr;
  std::vector<TensorPtr> tensors;
  std::vector<at::Tensor> parameters;
  int32_t place = 1;
  for (; place < inputs.count && is_tensor_handle(inputs[place].handle) && !inputs[place].name[0]; ++place) {
    tensors.push_back(tensor_at(inputs[place].handle));
    parameters.push_back(*at_tensor_of(*tensors.back()));
    if (!parameters.back().defined()) return nullptr;
  }
  OptimizerSettings settings = default_settings(settings_name(kind));
  settings.lr = default_rate;
  if (!change(settings, kind, {inputs.first + place, inputs.count - place})) return nullptr;
  std::optional<TensorTraining> made = translated([&] { return make_training(settings, parameters); });
  if (!made) return nullptr;
  return std::make_unique<SharedRunner>(
      std::shared_ptr<Runner>(new DirectOptimizer(kind, std::move(tensors), settings, *std::move(made))));
}

void DirectOptimizer::call(std::string_view function, Args inputs, const Targets& targets) {
  if (!unless_python([&] { return call_here(function, inputs, targets); })) python().call(function, inputs, targets);
}

bool DirectOptimizer::call_here(std::string_view function, Args inputs, const Targets& targets) {
  if (targets.results || targets.tensor) return false;
  if (function == "step" && inputs.count == 0) {
    if (!step_here()) return false;
    schedules_.optimizer_stepped();
    return true;
  }
  if (function == "zero_grad" && inputs.count == 0) {
    translated([this] { training_.optimizer.clear_gradients(); });
    return true;
  }
  if (function == "set") return set(inputs);
  if (function == "get") return get(inputs, targets);
  return false;
}

bool DirectOptimizer::step_here() {
  try {
    return direct::step(training_);
  } catch (...) {
    rethrow_as_python("step");
  }
}

std::unique_ptr<Runner> DirectOptimizer::create(std::string_view function, Args inputs) {
  std::unique_ptr<Runner> made;
  if (function == "scheduler") unless_python([&] { return (made = make_scheduler(inputs)) != nullptr; });
  return made ? std::move(made) : DelegatingRunner::create(function, inputs);
}

std::unique_ptr<Runner> DirectOptimizer::make_scheduler(Args inputs) {
  std::optional<Schedule> schedule = schedule_of(inputs);
  std::shared_ptr<RunningSchedule> running = schedule ? schedules_.add(std::move(*schedule), settings().lr) : nullptr;
  return running ? std::make_unique<DirectScheduler>(shared_from_this(), std::move(running)) : nullptr;
}

bool DirectOptimizer::step(RunningSchedule& running) { return schedules_.step(running, settings().lr); }

bool DirectOptimizer::set(Args inputs) {
  if (inputs.count < 1 || !is_whole(inputs[0])) return false;
  OptimizerSettings changed = settings();
  // without momentum the kernel may be another one
  if (!change(changed, kind_, {inputs.first + 1, inputs.count - 1}) ||
      (settings().momentum == 0) != (changed.momentum == 0))
    return false;
  settings() = changed;
  return true;
}

bool DirectOptimizer::get(Args inputs, const Targets& targets) {
  if (inputs.count != 2 || inputs[0].dtype != FPT_TEXT || !is_whole(inputs[1])) return false;
  const double* found = real_setting(settings(), fpt::text_of(inputs[0]));
  if (!found || targets.outputs.count != 1 || fpt::text_of(inputs[0]).substr(0, 4) == "beta") return false;
  deliver_real(*found, targets.outputs[0], "the setting");
  return true;
}

std::unique_ptr<Runner> DirectOptimizer::make_python() {
  TensorArguments arguments;
  std::vector<fpt_arg> given{text_argument(kind_)};
  for (const TensorPtr& tensor : tensors_) given.push_back(arguments.add(tensor));
  NamedSettings first(kind_, created_), last(kind_, settings());
  first.append_to(given);
  std::unique_ptr<Runner> made = python_side().torch_functions(false)->create(
      "ftn_pytorch_optimizer", {given.data(), static_cast<int32_t>(given.size())});

  for (std::size_t index = 0; index < tensors_.size(); ++index) {
    const Moments& moments = training_.optimizer.moments()[index];
    std::vector<fpt_arg> kept{integer_argument(static_cast<int64_t>(index)), real_argument(moments.steps)};
    for (const at::Tensor* each : {&moments.first, &moments.second, &moments.largest})
      if (each->defined()) kept.push_back(arguments.add(tensor_of(*each, /*same_layout=*/false)));  // passed as it is
    if (moments.steps > 0) made->call("take_state", {kept.data(), static_cast<int32_t>(kept.size())}, {});
  }
  schedules_.hand_over(*made);
  std::vector<fpt_arg> now{integer_argument(0)};  // all groups
  last.append_to(now);
  made->call("set", {now.data(), static_cast<int32_t>(now.size())}, {});
  return made;
}

}  // namespace fpt::direct
