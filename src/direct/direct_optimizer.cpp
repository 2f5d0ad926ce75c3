// SPDX-License-Identifier: MIT
#include "direct/direct_optimizer.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "arrays/copy.hpp"
#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "calls/python_side.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/direct_scheduler.hpp"
#include "direct/direct_tensor.hpp"
#include "direct/object_arguments.hpp"
#include "direct/optimizer_settings.hpp"
#include "direct/schedule_options.hpp"

namespace fpt {
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
bool change(fpt_direct_optimizer& settings, std::string_view kind, Args options) {
  const auto is_nameless = [](const fpt_arg& arg) { return !arg.name[0] || arg.status != FPT_OK; };
  if (std::any_of(options.begin(), options.end(), is_nameless)) return false;
  std::optional<std::vector<fpt_arg>> plain = plain_options(options);
  if (!plain) return false;
  fpt_direct_optimizer changed = settings;
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
  NamedSettings(std::string_view kind, const fpt_direct_optimizer& settings)
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
  fpt_direct_optimizer settings_;
  double betas_[2] = {settings_.beta1, settings_.beta2};
};

/// Whether the plug-in has done what it was asked for; false where Python is to be asked.
bool is_done(fpt_status status) {
  if (status == FPT_DIRECT_NOT_HERE) return false;
  require_direct(status);
  return true;
}

}  // namespace

std::unique_ptr<Runner> DirectOptimizer::make(Args inputs) {
  if (inputs.count < 1 || inputs[0].dtype != FPT_TEXT || inputs[0].status != FPT_OK) return nullptr;
  const std::string kind(text_of(inputs[0]));
  if (settings_name(kind).empty()) return nullptr;
  std::vector<TensorPtr> tensors;
  std::vector<RawTensor> raw;
  std::vector<fpt_direct_operand> operands;
  int32_t place = 1;
  for (; place < inputs.count && is_tensor_handle(inputs[place].handle) && !inputs[place].name[0]; ++place) {
    tensors.push_back(tensor_at(inputs[place].handle));
    raw.push_back(raw_of(*tensors.back()));
    if (!raw.back()) return nullptr;
    operands.push_back({raw.back().get(), nullptr, 0});
  }
  fpt_direct_optimizer settings = default_settings(settings_name(kind));
  settings.lr = default_rate;
  if (!change(settings, kind, {inputs.first + place, inputs.count - place})) return nullptr;
  fpt_direct_training* made = nullptr;
  if (!is_done(direct_plugin().tensors.make_training(&settings, operands.data(), static_cast<int32_t>(operands.size()),
                                                     &made)))
    return nullptr;
  return std::make_unique<SharedRunner>(
      std::shared_ptr<Runner>(new DirectOptimizer(kind, std::move(tensors), settings, made)));
}

DirectOptimizer::~DirectOptimizer() { direct_plugin().tensors.end_training(training_); }

void DirectOptimizer::call(std::string_view function, Args inputs, const Targets& targets) {
  if (!unless_python([&] { return call_here(function, inputs, targets); })) python().call(function, inputs, targets);
}

bool DirectOptimizer::call_here(std::string_view function, Args inputs, const Targets& targets) {
  if (targets.results || targets.tensor) return false;
  if (function == "step" && inputs.count == 0) {
    if (!is_done(direct_plugin().tensors.step_training(training_))) return false;
    schedules_.optimizer_stepped();
    return true;
  }
  if (function == "zero_grad" && inputs.count == 0) return is_done(direct_plugin().tensors.clear_training(training_));
  if (function == "set") return set(inputs);
  if (function == "get") return get(inputs, targets);
  return false;
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

fpt_direct_optimizer& DirectOptimizer::settings() const {
  return *direct_plugin().tensors.settings_of_training(training_);
}

bool DirectOptimizer::set(Args inputs) {
  if (inputs.count < 1 || !is_whole(inputs[0])) return false;
  fpt_direct_optimizer changed = settings();
  // without momentum the kernel may be another one
  if (!change(changed, kind_, {inputs.first + 1, inputs.count - 1}) ||
      (settings().momentum == 0) != (changed.momentum == 0))
    return false;
  settings() = changed;
  return true;
}

bool DirectOptimizer::get(Args inputs, const Targets& targets) {
  if (inputs.count != 2 || inputs[0].dtype != FPT_TEXT || !is_whole(inputs[1])) return false;
  const double* found = real_setting(settings(), text_of(inputs[0]));
  if (!found || targets.outputs.count != 1 || text_of(inputs[0]).substr(0, 4) == "beta") return false;
  deliver_real(*found, targets.outputs[0], "the setting");
  return true;
}

std::unique_ptr<Runner> DirectOptimizer::make_python() {
  const fpt_direct_table& plugin = direct_plugin();
  TensorArguments arguments;
  std::vector<fpt_arg> given{text_argument(kind_)};
  for (const TensorPtr& tensor : tensors_) given.push_back(arguments.add(tensor));
  NamedSettings first(kind_, created_), last(kind_, settings());
  first.append_to(given);
  std::unique_ptr<Runner> made = python_side().torch_functions(false)->create(
      "ftn_pytorch_optimizer", {given.data(), static_cast<int32_t>(given.size())});

  for (std::size_t index = 0; index < tensors_.size(); ++index) {
    double steps = 0;
    fpt_direct_tensor* state[3] = {};
    require_direct(plugin.tensors.state_of_training(training_, static_cast<int32_t>(index), &steps, state));
    std::vector<fpt_arg> kept{integer_argument(static_cast<int64_t>(index)), real_argument(steps)};
    for (fpt_direct_tensor* each : state)
      if (each) kept.push_back(arguments.add(tensor_of_raw(each, /*same_layout=*/false)));  // passed as it is
    if (steps > 0) made->call("take_state", {kept.data(), static_cast<int32_t>(kept.size())}, {});
  }
  schedules_.hand_over(*made);
  std::vector<fpt_arg> now{integer_argument(0)};  // all groups
  last.append_to(now);
  made->call("set", {now.data(), static_cast<int32_t>(now.size())}, {});
  return made;
}

}  // namespace fpt
