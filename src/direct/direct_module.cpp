// SPDX-License-Identifier: MIT
#include "direct/direct_module.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "direct/direct_options.hpp"
#include "direct/direct_plugin.hpp"
#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/rank.hpp"

namespace fpt {
namespace {

using Table = HandleTable<DirectModule, HandleKind::direct_module>;

Table& table() {
  static Table& instance = *new Table("a module", "load");
  return instance;
}

/// Arguments as the plug-in wants them: memory, scalars and texts. Those that are so already are not touched.
class PlainArguments {
 public:
  PlainArguments(fpt_arg* args, int32_t count, const char* what, const std::string& function) : args_(args) {
    const bool plain = std::all_of(args, args + count, [](const fpt_arg& arg) {
      return arg.status == FPT_OK && arg.handle == 0 && arg.access != FPT_COPY;
    });
    if (plain) return;
    resolved_.assign(args, args + count);
    args_ = resolved_.data();
    for (int32_t i = 0; i < count; ++i) resolve(resolved_[static_cast<std::size_t>(i)], argument_label(what, i, args[i]), function);
  }

  const fpt_arg* get() const noexcept { return args_; }

 private:
  void resolve(fpt_arg& arg, const std::string& label, const std::string& function) {
    require_described(arg, concat(label, " of ", function));
    if (is_tensor_handle(arg.handle)) {
      Tensor& tensor = tensor_at(arg.handle);
      fpt_arg described = tensor.arg;
      if (tensor.object) {
        require_memory(tensor.array, tensor.array.dtype, tensor.array.rank, label);
        described = Tensor::of_owned(tensor.array, nullptr, tensor.same_layout).arg;
      }
      std::memcpy(described.name, arg.name, sizeof described.name);
      arg = described;
    }
    if (arg.access != FPT_COPY) return;
    storages_.push_back(claim_copy(arg));
    arg.access = FPT_IN;
    arg.handle = 0;
  }

  const fpt_arg* args_;
  std::vector<fpt_arg> resolved_;
  std::vector<Storage> storages_;
};

const std::string forward_hook = "ftn_pytorch_forward", optimizer_hook = "ftn_pytorch_create_optimizer_";

}  // namespace

std::unique_ptr<DirectModule> DirectModule::load(const std::string& file, ModelKind kind, const fpt_arg* options,
                                                 int32_t noptions, int32_t nconfig) {
  if (nconfig > 0)
    fail(FPT_ERR_ARGUMENT, file, " is a saved model, it takes no config: config is handed to ftn_pytorch_setup of a script");
  const DirectOptions chosen = direct_options(options, noptions);
  std::unique_ptr<DirectModule> module(new DirectModule);
  module->name_ = std::filesystem::path(file).stem().string();
  module->forward_label_ = concat(forward_hook, " of ", module->name_);
  module->train_label_ = "ftn_pytorch_train of " + module->name_;
  module->same_layout_ = chosen.same_layout;
  module->casts_ = chosen.cast;
  fpt_direct_options wanted{};
  wanted.name = module->name_.c_str();
  wanted.device = chosen.device.empty() ? nullptr : chosen.device.c_str();
  wanted.is_package = kind == ModelKind::package;
  wanted.same_layout = chosen.same_layout;
  wanted.float_dtype = chosen.float_dtype;
  wanted.copies_inputs = chosen.copies_inputs;
  wanted.mode = chosen.mode;
  wanted.flags = chosen.flags;
  require_direct(direct_plugin().load(file.c_str(), &wanted, &module->module_));
  return module;
}

DirectModule::~DirectModule() {
  if (module_) direct_plugin().unload(module_);
}

void DirectModule::reload() { require_direct(direct_plugin().reload(module_)); }
void DirectModule::save(const std::string& file) { require_direct(direct_plugin().save(module_, with_rank(file).c_str())); }

void DirectModule::restore(const std::string& file, bool from_checkpoint) {
  const std::filesystem::path path = std::filesystem::absolute(with_rank(file));
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    fail(FPT_ERR_NO_CHECKPOINT, path.string(), " does not exist, so there is nothing to restore");
  if (from_checkpoint || std::filesystem::is_directory(path, ignored)) refuse_checkpoints();
  require_direct(direct_plugin().restore(module_, path.c_str()));
}

void DirectModule::refuse_checkpoints() {
  fail(FPT_ERR_HOOK, "the direct path has no checkpoints: load the model with backend=\"python\"");
}

bool DirectModule::has(const std::string& name) {
  if (name == forward_hook) return direct_plugin().has(module_, "forward") != 0;
  const bool own = name.rfind("ftn_pytorch_", 0) == 0;
  return own ? is_own_function(name) : direct_plugin().has(module_, name.c_str()) != 0;
}

void DirectModule::call(std::string_view name, fpt_arg* inputs, int32_t ninputs, fpt_arg* outputs, int32_t noutputs,
                        fpt_results* results, int32_t flags) {
  if (name == forward_hook) name = {};
  if (name.rfind(optimizer_hook, 0) == 0) return create_optimizer(name, inputs, ninputs);
  const std::string other = name.empty() ? std::string() : concat(name, " of ", name_);
  const std::string& function = name.empty() ? forward_label_ : other;
  const PlainArguments plain(inputs, ninputs, "input", function);
  if (!results) {
    DirectAnswer answer;
    call_plugin(name, plain.get(), ninputs, flags, answer);
    if (noutputs > 0) deliver_direct(answer, function, same_layout_, casts_, outputs, noutputs);
    return;
  }
  const auto answer = std::make_shared<DirectAnswer>();
  call_plugin(name, plain.get(), ninputs, flags, *answer);
  if (noutputs > 0) deliver_direct(*answer, function, same_layout_, casts_, outputs, noutputs);
  store_direct_results(results, DirectResults(answer, function, same_layout_));
}

void DirectModule::call_plugin(std::string_view name, const fpt_arg* inputs, int32_t ninputs, int32_t flags,
                               DirectAnswer& answer) {
  require_direct(direct_plugin().call(module_, name.empty() ? nullptr : name.data(), static_cast<int64_t>(name.size()),
                                      inputs, ninputs, flags, answer.get()));
}

Tensor DirectModule::forward(fpt_arg* inputs, int32_t ninputs, int32_t flags) {
  const PlainArguments plain(inputs, ninputs, "input", forward_label_);
  auto answer = std::make_shared<DirectAnswer>();
  call_plugin({}, plain.get(), ninputs, flags, *answer);
  return DirectResults::single(std::move(answer), forward_label_, same_layout_);
}

void DirectModule::train(fpt_arg* inputs, int32_t ninputs, fpt_arg* targets, int32_t ntargets, int32_t& completed,
                         double& loss) {
  const std::string& function = train_label_;
  if (ntargets != 1)
    fail(FPT_ERR_SIGNATURE, function, " was given ", ntargets, " targets; a saved model is trained on one");
  const PlainArguments plain(inputs, ninputs, "input", function), target(targets, 1, "target", function);
  double value = 0;
  require_direct(direct_plugin().train(module_, plain.get(), ninputs, target.get(), &value));
  completed = 0;
  loss = value;
}

void DirectModule::create_optimizer(std::string_view name, fpt_arg* settings, int32_t count) {
  const fpt_direct_optimizer chosen = direct_optimizer(name.substr(optimizer_hook.size()), settings, count);
  require_direct(direct_plugin().create_optimizer(module_, &chosen));
}

bool is_direct_module(int64_t handle) noexcept { return handle >> 60 == static_cast<int64_t>(HandleKind::direct_module); }

DirectModule& direct_module_at(int64_t handle) { return table().at(handle); }

int64_t insert_direct_module(std::unique_ptr<DirectModule> module) { return table().insert(std::move(module)); }

void free_direct_module(int64_t handle) noexcept { table().remove(handle); }

}  // namespace fpt
