// SPDX-License-Identifier: MIT
/// AOTInductor packages, run by torch's own loader.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/version.h>

#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "answer.hpp"
#include "failure.hpp"
#include "frame.hpp"
#include "tree_spec.hpp"

namespace fpt::direct {
namespace {

using Loader = torch::inductor::AOTIModelPackageLoader;

/// Instruction sets of this processor as Linux names them.
std::set<std::string> processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) flags.insert(word);
    break;
  }
  return flags;
}

/// Instruction sets that a package was compiled for and this processor lacks: it would end the program.
std::string missing_instructions(const std::string& compiled_for) {
  const std::set<std::string> flags = processor_flags();
  if (flags.empty()) return {};  // not known here
  std::istringstream words(compiled_for);
  std::string missing;
  for (std::string word; words >> word;) {
    std::string flag;
    for (const char letter : word) flag += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (flag == "avx512") flag = "avx512f";
    if (flag == "neon") flag = "asimd";
    if (flag.rfind("invalid", 0) == 0 || flag == "sve256") continue;  // compiled for no vector unit in particular
    if (flags.count(flag) == 0) missing += (missing.empty() ? "" : ", ") + word;
  }
  return missing;
}

std::string recorded(const std::unordered_map<std::string, std::string>& facts, const char* key) {
  const auto found = facts.find(key);
  return found == facts.end() ? std::string() : found->second;
}

const char* const advice = "compile it again on this machine with torch._inductor.aoti_compile_and_package";

class PackageModel : public Model {
 public:
  explicit PackageModel(Settings settings) : settings_(std::move(settings)) { state_ = read(); }

  void reload() override {
    std::unique_ptr<State> fresh = read();
    const std::unique_lock lock(mutex_);
    state_ = std::move(fresh);
  }
  void save(const std::string&) override { refuse("saved: it is compiled, copy the file"); }
  void restore(const std::string&) override { refuse("given other parameters: they are compiled into it"); }
  bool has(std::string_view name) override { return name == "forward"; }
  void create_optimizer(const fpt_direct_optimizer&) override { refuse("trained: it is compiled for inference"); }
  double train(Inputs, const fpt_arg&) override { refuse("trained: it is compiled for inference"); }

  void call(std::string_view name, Inputs inputs, int32_t, fpt_direct_answer& answer) override {
    if (!name.empty() && name != "forward") fail(FPT_ERR_HOOK, settings_.file, " has no function ", name, "; it has forward");
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
    std::unique_ptr<Loader> loader;
    std::size_t positional = 0;
    std::vector<std::string> keywords;
    TreeSpec results;
    std::optional<at::Device> device;
    Settings settings;  // of the load, with that device
    FramePool frames;
  };

  [[noreturn]] void refuse(const char* what) const {
    fail(FPT_ERR_HOOK, settings_.file, " is a package of AOTInductor, which cannot be ", what);
  }

  void check_machine(State& state) const {
    const auto facts = Loader::load_metadata_from_package(settings_.file, "model");
    const std::string device = recorded(facts, "AOTI_DEVICE_KEY");
    if (!device.empty() && device != "cpu") state.device = at::Device(device);
    if (settings_.device && settings_.device->type() != (state.device ? state.device->type() : at::kCPU))
      fail(FPT_ERR_DEVICE, settings_.file, " was compiled for the device ", device, ", but load was given device=\"",
           settings_.device->str(), "\"");
    if (settings_.device) state.device = settings_.device;
    if (state.device) at::empty_strided({1}, {1}, at::TensorOptions().device(*state.device).dtype(at::kFloat));
    const std::string missing = missing_instructions(state.device ? "" : recorded(facts, "AOTI_CPU_ISA"));
    if (!missing.empty())
      fail(FPT_ERR_VERSION, settings_.file, " was compiled for a processor with ", recorded(facts, "AOTI_CPU_ISA"),
           ", and this one has no ", missing, ": ", advice);
  }

  std::unique_ptr<State> read() const {
    auto state = std::make_unique<State>();
    try {
      check_machine(*state);
      state->settings = settings_;
      state->settings.device = state->device;
    } catch (const std::exception&) {
      rethrow_as(state->device ? FPT_ERR_DEVICE : FPT_ERR_FORMAT, settings_.file + " cannot be used");
    }
    try {
      // compiled code trusts the shapes and types that it gets, unless it is told to look at them
      setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", /*overwrite=*/0);
      const std::size_t runners = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
      const auto index = state->device ? state->device->index() : c10::DeviceIndex(-1);
      state->loader = std::make_unique<Loader>(settings_.file, "model", /*run_single_threaded=*/false, runners, index);
      const std::vector<std::string> spec = state->loader->get_call_spec();
      const TreeSpec arguments = parse_tree_spec(spec.at(0), settings_.file);
      state->results = parse_tree_spec(spec.at(1), settings_.file);
      if (arguments.children.size() != 2) fail(FPT_ERR_FORMAT, settings_.file, " does not say what its inputs are");
      state->positional = arguments.children[0].children.size();
      state->keywords = arguments.children[1].keys;
      for (const TreeSpec& group : arguments.children)
        for (const TreeSpec& input : group.children)
          if (input.kind != TreeSpec::Kind::leaf)
            fail(FPT_ERR_FORMAT, settings_.file, " wants a ", input.type, " as an input; only tensors can be passed");
    } catch (...) {
      rethrow_as(FPT_ERR_FORMAT, concat(settings_.file, " cannot be loaded by torch ", TORCH_VERSION,
                                        " (was it compiled with another one? then ", advice, ")"));
    }
    return state;
  }

  std::size_t position_of(const fpt_arg& arg, int32_t index, const std::string& label) const {
    const State& state = *state_;
    if (!arg.name[0] && static_cast<std::size_t>(index) < state.positional) return static_cast<std::size_t>(index);
    const auto found = std::find(state.keywords.begin(), state.keywords.end(), arg.name);
    if (arg.name[0] && found != state.keywords.end())
      return state.positional + static_cast<std::size_t>(found - state.keywords.begin());
    std::string names;
    for (const std::string& keyword : state.keywords) names += (names.empty() ? "" : ", ") + keyword;
    fail(FPT_ERR_SIGNATURE, label, " takes ", state.positional, " inputs without names, and ",
         names.empty() ? "none with names" : "named ones called " + names, ", but not ",
         argument_label("input", index, arg));
  }

  void run(Inputs inputs, const std::string& label, fpt_direct_answer& answer) {
    State& state = *state_;
    const Settings& settings = state.settings;
    const FramePool::Lease frame(state.frames);
    frame->begin(settings);
    std::vector<at::Tensor> tensors(state.positional + state.keywords.size());
    for (int32_t i = 0; i < inputs.count; ++i) {
      const fpt_arg& arg = inputs.args[i];
      const std::size_t position = position_of(arg, i, label);
      if (Frame::is_value(arg))
        fail(FPT_ERR_SIGNATURE, argument_label("input", i, arg), " of ", label,
             " is a scalar, which is compiled into the package: leave it away, or pass torch_out of the variable for a tensor");
      if (tensors[position].defined()) fail(FPT_ERR_SIGNATURE, argument_label("input", i, arg), " of ", label, " is given twice");
      tensors[position] = frame->contiguous(settings, arg, "input", i);
    }
    for (const at::Tensor& tensor : tensors)
      if (!tensor.defined())
        fail(FPT_ERR_SIGNATURE, label, " takes ", tensors.size(), " inputs, and ", inputs.count, " were given");
    const c10::InferenceMode inference(true);
    std::vector<at::Tensor> results = state.loader->run(tensors);
    tensors.clear();
    std::unique_ptr<Answer> all = take_answer();
    all->same_layout = settings.same_layout;
    const TreeSpec& spec = state.results;
    for (const TreeSpec& child : spec.children)
      if (child.kind != TreeSpec::Kind::leaf)
        fail(FPT_ERR_RESULT_TYPE, label, " returned a ", child.type, " inside another container; results may not be nested");
    all->is_tuple = spec.kind != TreeSpec::Kind::dict;
    all->set(std::move(results), spec.kind == TreeSpec::Kind::dict ? spec.keys : std::vector<std::string>(), label);
    frame->finish_compiled(settings);
    hand_out(std::move(all), answer);
  }

  Settings settings_;
  std::unique_ptr<State> state_;
  std::shared_mutex mutex_;
};

}  // namespace

std::unique_ptr<Model> load_package(Settings settings) { return std::make_unique<PackageModel>(std::move(settings)); }

}  // namespace fpt::direct
