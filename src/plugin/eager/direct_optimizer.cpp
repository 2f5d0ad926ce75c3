// SPDX-License-Identifier: MIT
#include "plugin/eager/direct_optimizer.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "calls/python_side.hpp"
#include "direct/object_arguments.hpp"
#include "direct/schedule_options.hpp"
#include "plugin/direct_tensor.hpp"
#include "plugin/eager/direct_scheduler.hpp"
#include "plugin/eager/eager_tensor.hpp"
#include "plugin/failure.hpp"
#include "values/argument_list.hpp"

namespace fpt::direct {
namespace {

constexpr double default_rate = 1e-3;

/// False for tensors that only Python has something to say of: that cannot be trained, or come twice.
bool can_be_trained(const std::vector<NamedTensor>& tensors) {
  for (auto each = tensors.begin(); each != tensors.end(); ++each) {
    const at::Tensor& tensor = each->second;
    const auto is_same = [&tensor](const NamedTensor& other) { return other.second.is_same(tensor); };
    if (!tensor.requires_grad() || !tensor.is_leaf() || !tensor.is_floating_point() ||
        std::any_of(tensors.begin(), each, is_same))
      return false;
  }
  return !tensors.empty();
}

/// Settings changed by options; false for what only Python takes or refuses.
bool change(OptimizerSettings& settings, Args options) {
  const auto is_nameless = [](const fpt_arg& arg) { return !arg.name[0] || arg.status != FPT_OK; };
  if (std::any_of(options.begin(), options.end(), is_nameless)) return false;
  OptimizerSettings changed = settings;
  try {
    change_options(changed, options);
  } catch (const Error&) {
    return false;
  }
  settings = changed;
  return true;
}

/// Whether an argument means the first group, or all of them: there is one.
bool means_all(const fpt_arg& group) {
  const std::optional<int64_t> number = integer_of(group);
  return number == 0 || number == 1;
}

}  // namespace

std::unique_ptr<Runner> DirectOptimizer::make(Args inputs) {
  if (inputs.count < 1 || inputs[0].dtype != FPT_TEXT || inputs[0].status != FPT_OK) return nullptr;
  const std::string kind(text_of(inputs[0]));
  const std::optional<int32_t> known = kind_of_class(kind);
  if (!known) return nullptr;
  std::vector<TensorPtr> tensors;
  std::vector<NamedTensor> parameters;
  int32_t place = 1;
  for (; place < inputs.count && is_tensor_handle(inputs[place].handle) && !inputs[place].name[0]; ++place) {
    tensors.push_back(tensor_at(inputs[place].handle));
    parameters.emplace_back("", *at_tensor_of(*tensors.back()));
    if (!parameters.back().second.defined()) return nullptr;
  }
  OptimizerSettings settings = default_settings(*known);
  settings.lr = default_rate;
  if (!change(settings, {inputs.first + place, inputs.count - place})) return nullptr;
  if (!translated([&] { return can_be_trained(parameters); })) return nullptr;
  return std::make_unique<SharedRunner>(
      std::shared_ptr<Runner>(new DirectOptimizer(kind, std::move(tensors), settings, parameters)));
}

void DirectOptimizer::run(const CallRequest& request) {
  if (!unless_python([&] { return run_here(request); })) python().run(request);
}

bool DirectOptimizer::run_here(const CallRequest& request) {
  const std::string_view function = request.function;
  const Args inputs = request.inputs;
  const Targets& targets = request.targets;
  if (request.object) return function == "scheduler" && (*request.object = make_scheduler(inputs));
  if (targets.results || targets.tensor) return false;
  if (function == "step" && inputs.count == 0) {
    if (!step_here()) return false;
    schedules_.optimizer_stepped();
    return true;
  }
  if (function == "zero_grad" && inputs.count == 0) {
    translated([this] { optimizer_.clear_gradients(); });
    return true;
  }
  if (function == "set") return set(inputs);
  if (function == "get") return get(inputs, targets);
  return false;
}

bool DirectOptimizer::step_here() {
  try {
    return optimizer_.step();
  } catch (...) {
    rethrow_as_python("step");
  }
}

std::unique_ptr<Runner> DirectOptimizer::make_scheduler(Args inputs) {
  std::optional<Schedule> schedule = schedule_of(inputs);
  std::shared_ptr<RunningSchedule> running = schedule ? schedules_.add(std::move(*schedule), settings().lr) : nullptr;
  return running ? std::make_unique<DirectScheduler>(shared_from_this(), std::move(running)) : nullptr;
}

bool DirectOptimizer::step(RunningSchedule& running) { return schedules_.step(running, settings().lr); }

bool DirectOptimizer::set(Args inputs) {
  if (inputs.count < 1 || !means_all(inputs[0])) return false;
  OptimizerSettings changed = settings();
  // without momentum the kernel may be another one
  if (!change(changed, {inputs.first + 1, inputs.count - 1}) || (settings().momentum == 0) != (changed.momentum == 0))
    return false;
  settings() = changed;
  return true;
}

bool DirectOptimizer::get(Args inputs, const Targets& targets) {
  if (inputs.count != 2 || inputs[0].dtype != FPT_TEXT || !means_all(inputs[1])) return false;
  const double* found = real_setting(settings(), text_of(inputs[0]));
  if (!found || targets.outputs.count != 1 || text_of(inputs[0]).substr(0, 4) == "beta") return false;
  deliver_real(*found, targets.outputs[0], "the setting");
  return true;
}

std::unique_ptr<Runner> DirectOptimizer::make_python() {
  TensorArguments arguments;
  std::vector<fpt_arg> given{text_argument(kind_)};
  for (const TensorPtr& tensor : tensors_) given.push_back(arguments.add(tensor));
  NamedSettings first(created_), last(settings());
  first.append_to(given);
  std::unique_ptr<Runner> made = create(*python_side().torch_functions(false), "ftn_pytorch_optimizer", given);

  for (std::size_t index = 0; index < tensors_.size(); ++index) {
    const Moments& moments = optimizer_.moments()[index];
    std::vector<fpt_arg> kept{integer_argument(static_cast<int64_t>(index)), real_argument(moments.steps)};
    for (const at::Tensor* each : {&moments.first, &moments.second, &moments.largest})
      if (each->defined()) kept.push_back(arguments.add(tensor_of(*each, /*same_layout=*/false)));  // passed as it is
    if (moments.steps > 0) made->run({"take_state", kept});
  }
  schedules_.hand_over(*made);
  std::vector<fpt_arg> now{integer_argument(0)};  // all groups
  last.append_to(now);
  made->run({"set", now});
  return made;
}

}  // namespace fpt::direct
