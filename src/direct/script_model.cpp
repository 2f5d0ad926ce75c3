// SPDX-License-Identifier: MIT
#include "script_model.hpp"

#include "answer.hpp"
#include "failure.hpp"

namespace fpt::direct {
namespace {

// Calls of forward in a row after which a model that was trained counts as finished, and is worth to be frozen again.
constexpr int calls_before_freezing_again = 50;

torch::jit::Module load_module(const std::string& file, const std::optional<at::Device>& device) {
  try {
    return torch::jit::load(file, device ? *device : at::Device(at::kCPU));
  } catch (...) {
    rethrow_as(FPT_ERR_FORMAT, file + " cannot be read by torch::jit::load");
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

ScriptModel::ScriptModel(Settings settings) : settings_(std::move(settings)), state_(read(settings_.file)) {}

std::unique_ptr<ScriptModel::State> ScriptModel::read(const std::string& file) const {
  auto state = std::make_unique<State>();
  state->module = load_module(file, settings_.device);
  try {
    for (const torch::jit::Method& method : state->module.get_methods())
      if (method.name().rfind('_', 0) != 0)
        state->methods.emplace(method.name(), std::make_unique<Method>(state->module, method.name()));
  } catch (...) {
    rethrow_as(FPT_ERR_FORMAT, file + " holds a model that cannot be analysed");
  }
  const auto forward = state->methods.find("forward");
  if (forward != state->methods.end()) state->forward = forward->second.get();
  return state;
}

void ScriptModel::reload() {
  std::unique_ptr<State> fresh = read(settings_.file);
  const std::unique_lock lock(mutex_);
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
  if (const auto copy = frozen(state_->module)) forward->use(*copy);
}

void ScriptModel::thaw() {
  if (state_->forward) state_->forward->use(state_->module);
  state_->is_frozen = false;
  state_->calls_until_frozen = calls_before_freezing_again;
}

void ScriptModel::call(std::string_view name, Inputs inputs, int32_t flags, fpt_direct_answer& answer) {
  const std::string label = settings_.label(name.empty() ? "forward" : name);
  try {
    std::shared_lock lock(mutex_);
    Method* method = &this->method(name);
    if (method == state_->forward && !state_->is_frozen && state_->calls_until_frozen-- <= 0) {
      lock.unlock();
      freeze_forward();
      lock.lock();
      method = &this->method(name);
    }
    if (!method->effects().changes_state) return run(*method, label, inputs, flags, answer);
    lock.unlock();
    const std::unique_lock alone(mutex_);
    run(this->method(name), label, inputs, flags, answer);
  } catch (...) {
    rethrow_as(FPT_ERR_PYTHON, label);
  }
}

void ScriptModel::run(Method& method, const std::string& label, Inputs inputs, int32_t flags, fpt_direct_answer& answer) {
  const FramePool::Lease frame(method.frames());
  frame->begin(settings_);
  method.push(settings_, *frame, inputs);
  std::unique_ptr<Answer> results = take_answer();
  results->same_layout = settings_.same_layout;
  const bool asked = ((flags | settings_.flags) & FPT_USE_INFERENCE_MODE) != 0 && &method == state_->forward;
  const Effects& effects = method.effects();
  // Nobody outside sees a gradient. Where the model keeps nothing and computes none itself, it need not prepare for any.
  const c10::InferenceMode inference(asked || !(effects.changes_state || effects.uses_gradients));
  const c10::AutoGradMode gradients(!asked && effects.uses_gradients);
  results->set(method.run(*frame), label);
  frame->finish(settings_, label, results->tensors);
  hand_out(std::move(results), answer);
}

std::unique_ptr<Model> load_script(Settings settings) { return std::make_unique<ScriptModel>(std::move(settings)); }

namespace {
[[noreturn]] void refuse_training() {
  fail(FPT_ERR_HOOK, "the direct path only computes forward in this version: train and save with backend=\"python\"");
}
}  // namespace

void ScriptModel::save(const std::string&) { refuse_training(); }
void ScriptModel::restore(const std::string&) { refuse_training(); }
void ScriptModel::create_optimizer(const fpt_direct_optimizer&) { refuse_training(); }
double ScriptModel::train(Inputs, const fpt_arg&) { refuse_training(); }

}  // namespace fpt::direct
