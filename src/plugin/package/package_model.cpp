// SPDX-License-Identifier: MIT
/// AOTInductor packages, run by torch's own loader.
#include "plugin/direct_answer.hpp"
#include "plugin/failure.hpp"
#include "plugin/frame.hpp"
#include "plugin/package/package_origin.hpp"
#include "plugin/package/tree_spec.hpp"
#include "plugin/parts.hpp"

namespace fpt::direct {
namespace {

constexpr const char* about_types =
    " Declare the Fortran array so, or convert real arrays on their way in with load(..., dtype=\"float32\").";
constexpr const char* about_axes =
    " Axes, too, in reverse of the Fortran order unless the model was loaded with layout=\"same\".";

/// The status that fits what the code of a package, or torch, says of its inputs; FPT_ERR_PYTHON for all else.
fpt_status status_of(const std::string& reason) {
  const auto says = [&](const char* words) { return reason.find(words) != std::string::npos; };
  if (says("unmatched dtype")) return FPT_ERR_DTYPE;
  return says("unmatched dim value") || says("dim value is too") || says("expected size") ? FPT_ERR_SHAPE
                                                                                          : FPT_ERR_PYTHON;
}

class PackageModel : public Model {
 public:
  explicit PackageModel(Settings settings) : settings_(std::move(settings)) { state_ = read(); }

  void reload() override {
    std::unique_ptr<State> fresh = read();
    const std::unique_lock lock(mutex_);
    state_ = std::move(fresh);
  }
  void save(const std::string&) override { refuse("saved: it is compiled, copy the file"); }
  int64_t restore(const std::string&, bool, std::optional<int64_t>) override { refuse_parameters(); }
  void assign(std::vector<NamedTensor>) override { refuse_parameters(); }
  bool has(std::string_view name) override { return name == "forward"; }
  void parameters(DirectAnswer&) override { refuse("asked for parameters: they are compiled into it"); }
  void create_optimizer(const OptimizerSettings&) override { refuse_training(); }
  Training train(Inputs, Inputs) override { refuse_training(); }

  void call(std::string_view name, Inputs inputs, int32_t, DirectAnswer& answer) override {
    if (!name.empty() && name != "forward")
      fail(FPT_ERR_HOOK, settings_.file, " has no function ", name, "; it has forward");
    const std::string label = settings_.label("ftn_pytorch_forward");
    const std::shared_lock lock(mutex_);
    try {
      run(inputs, label, answer);
    } catch (...) {
      rethrow_as(FPT_ERR_PYTHON, label);
    }
  }

 private:
  struct State {
    std::unique_ptr<PackageLoader> loader;
    std::vector<std::string> names;  // of the inputs, empty for those without
    TreeSpec results;
    Settings settings;  // of the load, with the device that the package was compiled for
    FramePool frames;
  };

  [[noreturn]] void refuse_parameters() const { refuse("given other parameters: they are compiled into it"); }
  [[noreturn]] void refuse_training() const { refuse("trained: it is compiled for inference"); }
  [[noreturn]] void refuse(const char* what) const {
    fail(FPT_ERR_HOOK, settings_.file, " is a package of AOTInductor, which cannot be ", what);
  }

  std::unique_ptr<State> read() const {
    auto state = std::make_unique<State>();
    const PackageOrigin origin = origin_of_package(settings_.file, settings_.place);
    state->settings = settings_;
    state->settings.place = origin.device;
    // compiled code trusts the shapes and types that it gets, unless it is told to look at them
    setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", /*overwrite=*/0);
    state->loader = load_code(settings_.file, origin);
    const std::vector<std::string> spec = state->loader->get_call_spec();
    if (spec.size() < 2) fail(FPT_ERR_FORMAT, settings_.file, " does not say what its inputs and results are");
    state->names = names_of_inputs(parse_tree_spec(spec[0], settings_.file), settings_.file);
    state->results = parse_tree_spec(spec[1], settings_.file);
    return state;
  }

  std::size_t position_of(const fpt_arg& arg, int32_t index, const std::string& label) const {
    const std::vector<std::string>& names = state_->names;
    if (!arg.name[0] && static_cast<std::size_t>(index) < names.size()) return static_cast<std::size_t>(index);
    const auto found = arg.name[0] ? std::find(names.begin(), names.end(), arg.name) : names.end();
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    fail(FPT_ERR_SIGNATURE, label, " has no ", argument_label("input", index, arg), "; ", inputs_text());
  }

  std::string inputs_text() const {
    std::string text;
    for (const std::string& name : state_->names)
      text += (text.empty() ? ": " : "; ") + (name.empty() ? "an input without name" : name);
    return concat("it has ", state_->names.size(), state_->names.size() == 1 ? " input" : " inputs", text);
  }

  /// What the code computes. It looks at its inputs itself, and torch's own words say what is wrong with them.
  std::vector<at::Tensor> computed(const std::vector<at::Tensor>& tensors, const std::string& label) {
    try {
      return state_->loader->run(tensors);
    } catch (const std::exception& error) {
      const std::string text = message_of(error);
      const fpt_status status = status_of(text);
      if (status != FPT_ERR_PYTHON)
        fail(status, label, ": ", text.substr(0, text.find('\n')), ". Inputs are counted from 0 here (", inputs_text(),
             ").", status == FPT_ERR_DTYPE ? about_types : about_axes);
      // up to torch 2.12 the code keeps the reason to itself
      rethrow_as(FPT_ERR_PYTHON, label,
                 text.find("API call failed") == std::string::npos ? "" : " (the reason is on standard error)");
    }
  }

  void run(Inputs inputs, const std::string& label, DirectAnswer& answer) {
    State& state = *state_;
    const Settings& settings = state.settings;
    const FramePool::Lease frame(state.frames);
    frame->begin(settings, /*may_keep=*/false);
    std::vector<at::Tensor> tensors(state.names.size());
    for (int32_t i = 0; i < inputs.count; ++i) {
      const fpt_arg& arg = inputs.args[i];
      const std::size_t position = position_of(arg, i, label);
      if (is_value(arg))
        fail(FPT_ERR_SIGNATURE, argument_label("input", i, arg), " of ", label,
             " is a scalar, which is compiled into the package: leave it out, or pass torch_out of the variable for a "
             "tensor");
      if (tensors[position].defined())
        fail(FPT_ERR_SIGNATURE, argument_label("input", i, arg), " of ", label, " is given twice");
      tensors[position] = frame->contiguous(settings, arg, "input", i);
    }
    for (const at::Tensor& tensor : tensors)
      if (!tensor.defined())
        fail(FPT_ERR_SIGNATURE, label, " is called with ", inputs.count, inputs.count == 1 ? " input; " : " inputs; ",
             inputs_text());
    const c10::InferenceMode inference(true);
    std::vector<at::Tensor> results = computed(tensors, label);
    tensors.clear();
    const TreeSpec& spec = state.results;
    for (const TreeSpec& child : spec.children)
      if (!child.is_value())
        fail(FPT_ERR_RESULT_TYPE, label, " returned a ", child.type,
             " inside another container; results may not be nested");
    answer.set_is_tuple(!spec.is_dictionary());
    answer.set(std::move(results), spec.keys, label);
    frame->finish_compiled();
  }

  Settings settings_;
  std::unique_ptr<State> state_;
  std::shared_mutex mutex_;
};

}  // namespace

std::unique_ptr<Model> load_package(Settings settings) { return std::make_unique<PackageModel>(std::move(settings)); }

}  // namespace fpt::direct
