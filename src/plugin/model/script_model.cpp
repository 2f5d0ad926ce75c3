// SPDX-License-Identifier: MIT
#include "plugin/model/script_model.hpp"

#include <ATen/ops/mse_loss.h>

#include "base/replaced_file.hpp"
#include "plugin/autograd_engine.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/failure.hpp"
#include "plugin/file_owner.hpp"
#include "plugin/model/attributes.hpp"
#include "plugin/model/frozen.hpp"
#include "plugin/torchscript.hpp"
#include "plugin/training/optimizer_state.hpp"

namespace fpt::direct {
namespace {

// Calls of forward in a row after which a model that was trained counts as finished, and is worth to be frozen again.
constexpr int calls_before_freezing_again = 50;

torch::jit::Module load_module(const std::string& file, const std::optional<at::Device>& device,
                               std::string* optimizer) {
  try {
    torch::jit::ExtraFilesMap extra{{optimizer_file, ""}};
    torch::jit::Module module = torch::jit::load(file, device ? *device : at::Device(at::kCPU), extra);
    *optimizer = std::move(extra[optimizer_file]);
    return module;
  } catch (...) {
    rethrow_as(FPT_ERR_FORMAT, file + " cannot be read by torch::jit::load");
  }
}

[[maybe_unused]] const bool is_provided = (provide_torchscript([](Settings settings) -> std::unique_ptr<Model> {
                                             return std::make_unique<ScriptModel>(std::move(settings));
                                           }),
                                           true);

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void sort_by_name(std::vector<NamedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

/// Parameters and buffers, which are what training and statistics change, in the order of their names.
std::vector<NamedTensor> tensors_of(const torch::jit::Module& module) {
  std::vector<NamedTensor> tensors;
  for (const auto& parameter : module.named_parameters()) tensors.emplace_back(parameter.name, parameter.value);
  for (const auto& buffer : module.named_buffers()) tensors.emplace_back(buffer.name, buffer.value);
  sort_by_name(tensors);
  return tensors;
}

/// Those that an optimizer trains; FPT_ERR_ARGUMENT if there are none.
std::vector<NamedTensor> trainable_of(const torch::jit::Module& module, const std::string& file) {
  std::vector<NamedTensor> found;
  for (const auto& parameter : module.named_parameters())
    if (parameter.value.requires_grad()) found.emplace_back(parameter.name, parameter.value);
  if (found.empty())
    fail(FPT_ERR_ARGUMENT, file,
         " has no parameters that can be trained (is it frozen, or exported without --trainable?)");
  return found;
}

/// Names of those that are not in both, or have other shapes; empty where all fit.
std::vector<std::string> differences(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to) {
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i)
    if (i >= from.size() || i >= to.size() || from[i].first != to[i].first ||
        from[i].second.sizes() != to[i].second.sizes())
      wrong.push_back(i < to.size() ? to[i].first : from[i].first);
  return wrong;
}

/// FPT_ERR_DTYPE or another status where numbers would lose digits on their way. Both have the same names.
void require_digits(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to, fpt_status status,
                    const std::string& file) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const at::ScalarType given = from[i].second.scalar_type(), kept = to[i].second.scalar_type();
    if (c10::promoteTypes(given, kept) != kept)
      fail(status, "the weights would lose digits: ", to[i].first, " is ", dtype_name(dtype_of(given)), ", and ",
           dtype_name(dtype_of(kept)), " in ", file,
           ". Take them from a copy of the network that has this type, or write the model from this one");
  }
}

void copy_all(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to) {
  const c10::InferenceMode normal(false);
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].second.copy_(from[i].second);
}

/// The type of all parameters that are real; FPT_NONE if there are none or they differ.
int32_t real_dtype_of(const torch::jit::Module& module) {
  int32_t found = FPT_NONE;
  for (const at::Tensor& parameter : module.parameters()) {
    const int32_t dtype = dtype_of(parameter.scalar_type());
    if (!parameter.is_floating_point() || dtype == found) continue;
    if (found != FPT_NONE) return FPT_NONE;
    found = dtype;
  }
  return found;
}

/// Mean squared error, its gradients, and a step; the loss before it.
double step(Optimizer& optimizer, const c10::IValue& result, const at::Tensor& target, const std::string& label) {
  if (!result.isTensor())
    fail(FPT_ERR_RESULT_TYPE, label, " needs a model that returns one tensor, this one returns a ", result.tagKind());
  const at::Tensor& prediction = result.toTensor();
  if (prediction.sizes() != target.sizes())
    fail(FPT_ERR_SHAPE, label, ": the prediction has shape ", shape_text(array_of_tensor(prediction, true)),
         " and the target ", shape_text(array_of_tensor(target, true)),
         ": they must be equal, since broadcasting one against the other would train to the mean");
  if (prediction.scalar_type() != target.scalar_type())
    fail(FPT_ERR_DTYPE, label, ": the prediction is ", dtype_name(dtype_of(prediction.scalar_type())),
         " and the target ", dtype_name(dtype_of(target.scalar_type())),
         ": they must be of one type. Declare the target so, or convert real arrays on their way in with load(..., ",
         "dtype=)");
  const at::Tensor loss = at::mse_loss(prediction, target);
  optimizer.clear_gradients();
  stay_with_first_engine();
  loss.backward();
  (void)optimizer.step();
  optimizer.clear_gradients();
  return loss.item().toDouble();
}

}  // namespace

ScriptModel::ScriptModel(Settings settings) : settings_(std::move(settings)), state_(read(settings_.file)) {}

std::unique_ptr<ScriptModel::State> ScriptModel::read(const std::string& file) const {
  auto state = std::make_unique<State>();
  std::string optimizer;
  state->module = load_module(file, settings_.place, &optimizer);
  const auto type = state->module.type();
  if (!type->getForwardHooks().empty() || !type->getForwardPreHooks().empty())
    fail(FPT_ERR_FORMAT, file, " has hooks of its own (register_forward_hook), which Python alone runs: load it with ",
         "backend=\"python\", or write it as a part of another module, which runs them everywhere");
  state->mode = Mode(state->module);
  state->mode.set(settings_.training);
  try {
    for (const torch::jit::Method& method : state->module.get_methods())
      if (method.name().rfind('_', 0) != 0)
        state->methods.emplace(method.name(), std::make_unique<Method>(state->module, method.name(), settings_));
  } catch (...) {
    rethrow_as(FPT_ERR_FORMAT, file + " holds a model that cannot be analysed");
  }
  for (const auto& method : state->methods)
    state->replaces_attributes = state->replaces_attributes || method.second->effects().replaces_attributes;
  const auto forward = state->methods.find("forward");
  if (forward != state->methods.end()) {
    state->forward = forward->second.get();
    state->forward->run_as_written();
  }
  if (!optimizer.empty()) state->optimizer = optimizer_of_state(optimizer, trainable_of(state->module, file), file);
  return state;
}

void ScriptModel::reload() {
  std::unique_ptr<State> fresh = read(settings_.file);
  const std::unique_lock lock(mutex_);
  // where the file has none, training begins anew with the settings that were chosen
  if (!fresh->optimizer && state_->optimizer)
    fresh->optimizer =
        std::make_unique<Optimizer>(state_->optimizer->settings(), trainable_of(fresh->module, settings_.file));
  state_ = std::move(fresh);
}

bool ScriptModel::has(std::string_view name) {
  const std::shared_lock lock(mutex_);
  return state_->methods.find(name) != state_->methods.end();
}

Method& ScriptModel::method(std::string_view name) const {
  if (name.empty() && state_->forward) return *state_->forward;
  const auto found = state_->methods.find(name.empty() ? "forward" : name);
  if (found != state_->methods.end()) return *found->second;
  std::vector<std::string> names;
  for (const auto& known : state_->methods) names.push_back(known.first);
  fail(FPT_ERR_HOOK, settings_.file, " has no function ", name.empty() ? "forward" : name, "; it has ", joined(names));
}

void ScriptModel::freeze_forward() {
  const std::unique_lock lock(mutex_);
  if (state_->is_frozen) return;
  state_->is_frozen = true;  // tried, whether it can be done or not
  Method* forward = state_->forward;
  if (!forward || forward->effects().changes_state || forward->effects().uses_gradients) return;
  forward->use(frozen(state_->module));
}

void ScriptModel::thaw() {
  state_->calls_until_frozen = calls_before_freezing_again;
  if (!state_->forward || (!state_->is_frozen && state_->twin)) return;
  // torch remembers for each piece of code whether it is run to be differentiated, so what trains does not predict
  const bool can_be_copied = !state_->replaces_attributes && !state_->forward->effects().changes_state;
  if (!state_->twin) state_->twin = can_be_copied ? state_->module.clone(/*inplace=*/true) : state_->module;
  state_->forward->use(*state_->twin);
  state_->is_frozen = false;
}

void ScriptModel::call(std::string_view name, Inputs inputs, int32_t flags, DirectAnswer& answer) {
  if (const auto wanted = derivative_named(name)) return derive(*wanted, inputs, answer);
  try {
    std::shared_lock lock(mutex_);
    Method* method = &this->method(name);
    const bool is_changing = state_->is_frozen || state_->parameters_are_out;
    if (method == state_->forward && !is_changing && state_->calls_until_frozen-- <= 0) {
      lock.unlock();
      freeze_forward();
      lock.lock();
      method = &this->method(name);
    }
    if (!method->effects().changes_state) return run(*method, inputs, flags, answer);
    lock.unlock();
    const std::unique_lock alone(mutex_);
    Method& changing = this->method(name);
    if (&changing != state_->forward) thaw();
    run(changing, inputs, flags, answer);
  } catch (...) {
    rethrow_as(FPT_ERR_PYTHON, settings_.label(name.empty() ? forward_hook : name));
  }
}

void ScriptModel::run(Method& method, Inputs inputs, int32_t flags, DirectAnswer& answer) {
  if (inputs.tensors) return run_recorded(method, inputs, answer);
  const FramePool::Lease frame(method.frames());
  frame->begin(settings_, method.effects().changes_state);
  method.push(settings_, *frame, inputs);
  const bool asked = ((flags | settings_.flags) & FPT_USE_INFERENCE_MODE) != 0 && &method == state_->forward;
  const Effects& effects = method.effects();
  // Nobody outside sees a gradient. Where the model keeps nothing, computes none and does not ask whether they are on,
  // it need not prepare for any.
  const bool are_on = effects.uses_gradients && c10::GradMode::is_enabled();  // for the program
  const c10::InferenceMode inference(asked || !(effects.changes_state || effects.uses_gradients));
  const c10::AutoGradMode gradients(!asked && are_on);
  try {
    answer.set(method.run(*frame), method.label());
  } catch (...) {
    rethrow_as(FPT_ERR_PYTHON, method.label(), called_with(inputs));
  }
  frame->finish(method.label(), answer.tensors());
  answer.changed = frame->changed();
}

void ScriptModel::run_recorded(Method& method, Inputs inputs, DirectAnswer& answer) {
  const FramePool::Lease frame(method.frames());
  frame->begin(settings_, method.effects().changes_state, /*records=*/true);
  std::vector<at::Tensor> given(inputs.tensors, inputs.tensors + inputs.count);
  for (int32_t i = 0; i < inputs.count; ++i) {
    at::Tensor& tensor = given[static_cast<std::size_t>(i)];
    if (tensor.defined()) tensor = frame->tensor(settings_, inputs.tensors[i], inputs.args[i], "input", i);
  }
  inputs.tensors = given.data();
  method.push(settings_, *frame, inputs);
  try {
    answer.set(method.run(*frame, state_->module), method.label());
  } catch (...) {
    rethrow_as(FPT_ERR_PYTHON, method.label(), called_with(inputs));
  }
  frame->finish(method.label(), answer.tensors());
}

void ScriptModel::derive(const Derivative& wanted, Inputs inputs, DirectAnswer& answer) {
  const std::string label = settings_.label(wanted.function);
  const std::string_view name = wanted.function == forward_hook ? "forward" : wanted.function;
  try {
    std::shared_lock shared(mutex_);
    std::unique_lock alone(mutex_, std::defer_lock);
    if (method(name).effects().changes_state) {
      shared.unlock();
      alone.lock();
      thaw();
    }
    direct::derive(wanted, settings_, method(name), state_->module, inputs, answer);
  } catch (...) {
    const int32_t own = std::max(inputs.count - wanted.directions, 0);
    rethrow_as(FPT_ERR_PYTHON, label, called_with({inputs.args + (inputs.count - own), own}));
  }
}

std::string ScriptModel::called_with(Inputs inputs) const {
  std::string text = concat("\nIt was called with ", described(inputs, settings_), ".");
  const int32_t dtype = real_dtype_of(state_->module);
  const bool differs = std::any_of(inputs.args, inputs.args + inputs.count, [&](const fpt_arg& arg) {
    return !is_value(arg) && is_real(arg.dtype) && settings_.wanted_dtype(arg.dtype) != dtype;
  });
  if (differs && (dtype == FPT_FLOAT32 || dtype == FPT_FLOAT64))
    text += concat(" The parameters of the model are ", dtype_name(dtype), ": load(..., dtype=\"", dtype_name(dtype),
                   "\") converts real arrays on their way in.");
  return text;
}

void ScriptModel::save(const std::string& file) {
  const std::shared_lock lock(mutex_);
  torch::jit::ExtraFilesMap extra;
  if (state_->optimizer) extra[optimizer_file] = bytes_of_state(*state_->optimizer);
  try {
    replace_file(file, [&](std::ostream& stream) {
      refuse_other_rank(file);
      state_->module.save(stream, extra);
      sign_archive(stream);
    });
  } catch (...) {
    rethrow_as(FPT_ERR_FILE, file + " cannot be written");
  }
}

int64_t ScriptModel::restore(const std::string& file, bool fallback, std::optional<int64_t> step) {
  refuse_checkpoints(file, fallback, step);
  std::string optimizer;
  const torch::jit::Module theirs = load_module(file, settings_.place, &optimizer);
  const std::unique_lock lock(mutex_);
  const std::vector<NamedTensor> from = tensors_of(theirs), to = tensors_of(state_->module);
  std::vector<std::string> wrong = differences(from, to);
  if (wrong.empty()) wrong = different_attributes(theirs, state_->module);
  if (!wrong.empty())
    fail(FPT_ERR_FORMAT, file, " holds another model than ", settings_.file, ": they differ in ", joined(wrong));
  require_digits(from, to, FPT_ERR_FORMAT, settings_.file);
  // read before anything is copied, because it may fail
  auto state = optimizer.empty() ? nullptr : optimizer_of_state(optimizer, trainable_of(state_->module, file), file);
  copy_all(from, to);
  take_attributes(theirs, state_->module);
  if (state) state_->optimizer = std::move(state);
  state_->twin.reset();  // it has the attributes of before
  thaw();
  state_->calls_until_frozen = 0;
  return -1;
}

void ScriptModel::assign(std::vector<NamedTensor> values) {
  sort_by_name(values);
  const std::unique_lock lock(mutex_);
  const std::vector<NamedTensor> to = tensors_of(state_->module);
  const std::vector<std::string> wrong = differences(values, to);
  if (!wrong.empty())
    fail(FPT_ERR_SHAPE, "the network is another one than that of ", settings_.file, ": they differ in ", joined(wrong));
  require_digits(values, to, FPT_ERR_DTYPE, settings_.file);
  copy_all(values, to);
  thaw();
}

void ScriptModel::parameters(DirectAnswer& answer) {
  const std::unique_lock lock(mutex_);
  thaw();
  state_->parameters_are_out = true;
  std::vector<at::Tensor> tensors;
  std::vector<std::string> names;
  for (const auto& each : state_->module.named_parameters()) {
    const auto is_same = [&each](const at::Tensor& known) { return known.is_same(each.value); };
    if (std::any_of(tensors.begin(), tensors.end(), is_same)) continue;  // shared, under its first name
    tensors.push_back(each.value);
    names.push_back(each.name);
  }
  answer.set(std::move(tensors), std::move(names), settings_.label("ftn_pytorch_parameters"));
}

void ScriptModel::create_optimizer(const OptimizerSettings& settings) {
  const std::unique_lock lock(mutex_);
  state_->optimizer = std::make_unique<Optimizer>(settings, trainable_of(state_->module, settings_.file));
}

Training ScriptModel::train(Inputs inputs, Inputs targets) {
  const std::string label = settings_.label(train_hook);
  const fpt_arg& target = single_target(targets, label);
  const std::unique_lock lock(mutex_);
  try {
    if (!state_->optimizer)
      fail(FPT_ERR_HOOK, "there is no optimizer: call create_optimizer_sgd, _adam or _adamw before train");
    Method& forward = method({});
    const FramePool::Lease frame(state_->training_frames);
    const c10::InferenceMode normal(false);
    const c10::AutoGradMode gradients(true);
    thaw();
    const InTraining training(state_->mode, settings_.training);
    frame->begin(settings_, state_->replaces_attributes);
    forward.push(settings_, *frame, inputs);
    if (is_value(target)) fail(FPT_ERR_ARGUMENT, "the target of ", label, " is a scalar by value: pass an array");
    const at::Tensor& goal = frame->tensor(settings_, target, "target", 0);
    const c10::IValue prediction = forward.run(*frame, state_->module);
    frame->require_unmodified(label);
    const double loss = step(*state_->optimizer, prediction, goal, label);
    frame->finish(label, {});
    return {false, loss};
  } catch (...) {
    rethrow_as(FPT_ERR_PYTHON, label, called_with(inputs));
  }
}

}  // namespace fpt::direct
