// SPDX-License-Identifier: MIT
#include "direct/direct_runner.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "arrays/texts.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/rank.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/direct_value.hpp"
#include "direct/optimizer_settings.hpp"
#include "values/scopes.hpp"

namespace fpt {
namespace {

/// A result would not belong to the graph, and a gradient computed with it would lack a part.
void require_no_gradients(Tensor& tensor, const std::string& label) {
  if (records_gradients(tensor))
    fail(FPT_ERR_ARGUMENT, label, " requires gradients, and the direct path records none: load the model with ",
         "backend=\"python\", or switch gradients off with scope%no_grad()");
}

/// Arguments as the plug-in wants them: memory, scalars and texts. Those that are so already are not touched.
class PlainArguments {
 public:
  PlainArguments(Args args, const char* what, const CallName& call) : args_(args) {
    const bool plain = std::all_of(args.begin(), args.end(), [](const fpt_arg& arg) {
      return arg.status == FPT_OK && arg.handle == 0 && arg.access != FPT_COPY && !has_kept_text(arg);
    });
    if (plain) return;
    resolved_.assign(args.begin(), args.end());
    args_.first = resolved_.data();
    for (int32_t i = 0; i < args.count; ++i) resolve(args_[i], concat(argument_label(what, i, args[i]), " of ", call));
  }

  const fpt_arg* get() const noexcept { return args_.first; }
  /// Let an answer keep what it needs of the memory that ends with the arguments.
  void hand_over(DirectAnswer& answer) const {
    for (const Owned& owned : owned_)
      if (owned.arg->handle != 0) answer.keep_if_shared(array_of(*owned.arg), owned.owner);
  }

 private:
  struct Owned {
    const fpt_arg* arg;  // resolved; with a handle where the memory is not the caller's
    std::shared_ptr<void> owner;
  };

  void resolve(fpt_arg& arg, const std::string& label) {
    require_described(arg, label);
    if (is_tensor_handle(arg.handle)) {
      const TensorPtr given = tensor_at(arg.handle);
      const int64_t handle = given->is_of_caller() ? 0 : arg.handle;
      const TensorPtr tensor = handle != 0 ? holding_memory(given) : given;
      std::shared_ptr<void> memory = tensor->owner();
      owned_.push_back({&arg, memory ? std::move(memory) : std::shared_ptr<void>(tensor)});
      if (handle != 0) require_memory(tensor->array(), tensor->array().dtype, tensor->array().rank, label);
      require_no_gradients(*given, label);
      arg = tensor->described_as(arg);
      arg.handle = handle;
    }
    if (auto text = text_owner(arg, label)) texts_.push_back(std::move(text));
    if (arg.access != FPT_COPY) return;
    Storage copy = claim_copy(arg);
    if (!copy) arg.handle = 0;  // a value
    if (copy) owned_.push_back({&arg, std::move(copy)});
    arg.access = FPT_IN;
  }

  Args args_;
  std::vector<fpt_arg> resolved_;
  std::vector<Owned> owned_;
  std::vector<std::shared_ptr<const std::string>> texts_;
};

constexpr std::string_view own_prefix = "ftn_pytorch_", optimizer_prefix = "ftn_pytorch_create_optimizer_";

/// What follows a prefix; empty where the name has another one.
std::string_view after(std::string_view prefix, std::string_view name) noexcept {
  return name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : std::string_view();
}

[[noreturn]] void refuse(const CallName& function) {
  fail(FPT_ERR_HOOK, function, " needs Python: load the model with backend=\"python\"");
}

}  // namespace

/// libtorch works on the stream that the program has set for the module, if any, as long as this lives.
class DirectRunner::StreamUse {
 public:
  explicit StreamUse(DirectRunner& runner) {
    if (runner.has_stream_.load(std::memory_order_acquire)) enter(runner.module_, runner.stream());
  }
  StreamUse(const fpt_direct_module* module, const ChosenStream& chosen) { enter(module, chosen); }
  ~StreamUse() {
    if (entered_) direct_plugin().leave_stream(entered_);
  }
  StreamUse(const StreamUse&) = delete;
  StreamUse& operator=(const StreamUse&) = delete;

 private:
  void enter(const fpt_direct_module* module, const ChosenStream& chosen) {
    require_direct(direct_plugin().enter_stream(module, chosen.stream, chosen.waits, &entered_));
  }

  void* entered_ = nullptr;
};

DirectRunner::DirectRunner(const std::string& file, ModelKind kind, const Options& options)
    : kind_(kind),
      file_(file),
      name_(std::filesystem::path(file).stem().string()),
      reading_{options.same_layout, options.cast, /*brings_to_host=*/true} {}

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
  std::unique_ptr<DirectRunner> runner(new DirectRunner(file, kind, options));
  fpt_direct_options wanted{};
  wanted.name = runner->name_.c_str();
  wanted.device = options.device.empty() ? nullptr : options.device.c_str();
  wanted.kind = kind == ModelKind::package     ? FPT_DIRECT_PACKAGE
                : kind == ModelKind::recording ? FPT_DIRECT_RECORDING
                                               : FPT_DIRECT_SCRIPT;
  wanted.same_layout = options.same_layout;
  wanted.float_dtype = options.real_dtype;
  wanted.copies_inputs = options.copies_inputs;
  wanted.mode = options.safe ? FPT_DIRECT_SAFE : FPT_DIRECT_CHECKED;
  wanted.flags = options.flags;
  wanted.training = options.training;
  wanted.has_communicator = options.communicator.has_value();
  wanted.communicator = options.communicator.value_or(0);
  require_direct(direct_plugin().load(file.c_str(), &wanted, &runner->module_));
  return runner;
}

DirectRunner::~DirectRunner() {
  if (module_) direct_plugin().unload(module_);
}

void DirectRunner::reload() {
  require_readable(file_);
  require_direct(direct_plugin().reload(module_));
}
void DirectRunner::save(const std::string& file) {
  require_direct(direct_plugin().save(module_, with_rank(file).c_str()));
}
void DirectRunner::checkpoint(const std::string& folder, int64_t keep, int64_t step) {
  require_direct(direct_plugin().checkpoint(module_, with_rank(folder).c_str(), keep, step));
}

int64_t DirectRunner::restore(const std::string& file, bool fallback, int64_t step) {
  const std::filesystem::path path = absolute_path(with_rank(file));
  std::error_code ignored;
  if (kind_ != ModelKind::recording && !std::filesystem::exists(path, ignored))
    fail(FPT_ERR_NO_CHECKPOINT, path.string(), " does not exist, so there is nothing to restore");
  if (!std::filesystem::is_directory(path, ignored)) require_readable(path.string());
  int64_t restored = -1;
  require_direct(direct_plugin().restore(module_, path.c_str(), fallback, step, &restored));
  return restored;
}

void DirectRunner::publish(const std::string&, Runner&) {
  fail(FPT_ERR_HOOK, name_,
       " runs without Python and is trained by its own optimizer: a script publishes its networks");
}

void DirectRunner::assign(const std::vector<NamedArray>& values) {
  std::vector<fpt_direct_value> listed(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    listed[i].name = values[i].name.c_str();
    set_memory(listed[i], values[i].array);
  }
  require_direct(direct_plugin().assign(module_, listed.data(), static_cast<int32_t>(listed.size())));
}

bool DirectRunner::has(const std::string& function) {
  if (kind_ == ModelKind::recording && function != "ftn_pytorch_save" && function != "ftn_pytorch_restore")
    return direct_plugin().has(module_, function.c_str()) != 0;
  if (function == forward_hook) return direct_plugin().has(module_, "forward") != 0;
  if (after(own_prefix, function).empty()) return direct_plugin().has(module_, function.c_str()) != 0;
  return function == train_hook || function == "ftn_pytorch_save" || function == "ftn_pytorch_restore" ||
         is_optimizer(after(optimizer_prefix, function));
}

void DirectRunner::run_plugin(std::string_view method, std::string_view label, Args inputs, int32_t flags,
                              DirectAnswer& answer) {
  const PlainArguments plain(inputs, "input", name_of(label));
  require_direct(direct_plugin().call(module_, method.empty() ? nullptr : method.data(),
                                      static_cast<int64_t>(method.size()), plain.get(), inputs.count, flags,
                                      answer.raw()));
  plain.hand_over(answer);
}

void DirectRunner::run(std::string_view method, std::string_view label, Args inputs, const Targets& targets,
                       int32_t flags) {
  const StreamUse stream(*this);
  const Outputs outputs(targets.outputs);
  outputs.start_device([](Device device) { require_direct(direct_plugin().wait(device.type, device.index)); });
  if (!targets.tensor && !targets.results) {
    DirectAnswer answer;  // on the stack: nothing of it is kept
    run_plugin(method, label, inputs, flags, answer);
    return hand_out(answer, name_of(label), reading_, outputs);
  }
  const auto answer = std::make_shared<DirectAnswer>();
  run_plugin(method, label, inputs, flags, *answer);
  hand_over(answer, name_of(label), reading_, outputs, targets);
}

void DirectRunner::forward(Args inputs, const Targets& targets, int32_t flags) {
  run({}, forward_hook, inputs, targets, flags);
}

void DirectRunner::call(std::string_view function, Args inputs, const Targets& targets) {
  if (function == forward_hook) return run({}, function, inputs, targets, 0);
  if (function.find(':') != std::string_view::npos)
    fail(FPT_ERR_HOOK, "derivatives of a saved model need Python: load it with backend=\"python\"");
  if (kind_ == ModelKind::recording) return run(function, function, inputs, targets, 0);
  const std::string_view optimizer = after(optimizer_prefix, function);
  if (optimizer.empty() && !after(own_prefix, function).empty()) refuse(name_of(function));
  if (optimizer.empty()) return run(function, function, inputs, targets, 0);
  const fpt_direct_optimizer chosen = optimizer_settings(optimizer, inputs);
  require_direct(direct_plugin().create_optimizer(module_, &chosen));
}

TensorPtr DirectRunner::forward_list(Args inputs, int32_t flags) {
  const StreamUse stream(*this);
  const auto answer = std::make_shared<DirectAnswer>();
  run_plugin({}, forward_hook, inputs, flags, *answer);
  return single_tensor(*answer, name_of(forward_hook), reading_);
}

std::unique_ptr<Runner> DirectRunner::create(std::string_view function, Args) { refuse(name_of(function)); }

Training DirectRunner::train(Args inputs, Args targets, bool) {
  const CallName call = name_of(train_hook);
  const StreamUse stream(*this);
  const PlainArguments plain(inputs, "input", call), goals(targets, "target", call);
  Training training;
  require_direct(direct_plugin().train(module_, plain.get(), inputs.count, goals.get(), targets.count, &training.loss,
                                       &training.completed));
  return training;
}

ChosenStream DirectRunner::stream() {
  const std::lock_guard<std::mutex> lock(stream_mutex_);
  return stream_;
}

void DirectRunner::set_stream(void* stream, bool waits) {
  const ChosenStream chosen{stream, true, waits};
  const StreamUse tried(module_, chosen);  // refuses what calls could not use
  const std::lock_guard<std::mutex> lock(stream_mutex_);
  stream_ = chosen;
  has_stream_.store(true, std::memory_order_release);
}

void DirectRunner::wait() {
  if (!has_stream_.load(std::memory_order_acquire)) return;  // every call has waited
  ChosenStream chosen = stream();
  chosen.waits = true;
  const StreamUse entered(module_, chosen);
  require_direct(direct_plugin().wait(Device::cuda_type, -1));
}

}  // namespace fpt
