// SPDX-License-Identifier: MIT
#include "direct/backend.hpp"

#include <atomic>
#include <filesystem>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/rank.hpp"
#include "base/switches.hpp"
#include "calls/python_side.hpp"
#include "direct/archive.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/torch_functions.hpp"
#include "direct/torch_side.hpp"
#include "python/environment.hpp"
#include "python/own_parts.hpp"
#include "python/python_library.hpp"

namespace fs = std::filesystem;

namespace fpt {
namespace {

/// Why Python and the direct path cannot share this process; empty if they can.
std::string conflict() {
  const TorchLocation& ours = direct_torch();
  if (ours.folder.empty()) return {};
  const TorchLocation theirs = python_runs() ? python_side().torch() : torch_of_python(chosen_executable());
  if (theirs.folder.empty() || same_torch(ours, theirs)) return {};
  return concat(text_of_fit(), ", but the Python of this program has ", text_of(theirs),
                is_of_wheel() ? ": " + direct_cure() : "");
}

void warn_once(const std::string& text) {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) warn_of_job(text);
}

std::unique_ptr<Runner> load_by_wish(const std::string& path, ModelKind model, const Options& options, Args given,
                                     Args config) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) fail(FPT_ERR_FILE, path, " does not exist or is no regular file");
  if (model == ModelKind::other)
    fail(FPT_ERR_FORMAT, path, " cannot be loaded with backend=\"direct\": it is no intact TorchScript file ",
         "(torch.jit.save) and no AOTInductor package (torch._inductor.aoti_compile_and_package) with a name that ends "
         "in .pt2");
  TorchSide& side = torch_side();
  refuse_python_options(path, given, model == ModelKind::recording);
  auto runner = side.load(path, model, options, config);
  const std::string reason = conflict();
  if (!reason.empty()) warn_once(concat(reason, ": scripts that import torch cannot run in this process"));
  return runner;
}

/// Why the direct path cannot be used beside the Python of this process, or of one that it would start; empty if it
/// can. Opens the plug-in.
std::string direct_refusal() {
  std::string reason = conflict();
  if (!reason.empty()) return reason;
  try {
    torch_side();
    return {};
  } catch (const Error& error) {
    // Python's torch would be given the same functions
    if (error.status() == FPT_ERR_LIBRARY) throw;
    return error.text();
  }
}

/// True if the direct path can run models of a kind in this process; else one warning says why not.
bool can_run_models(ModelKind kind) {
  // nobody decided against it in a wheel, unlike in a build
  if (direct_torch().folder.empty() && !is_of_wheel()) return false;
  std::string reason = direct_refusal();
  if (reason.empty()) reason = torch_side().obstacle(kind);
  if (!reason.empty())
    warn_once(concat(reason, "; saved models run through Python instead. backend=\"python\" in load says so without ",
                     "this message."));
  return reason.empty();
}

/// Asks Python where its half is open.
bool may_compute_with_tensors() {
  return !is_switched_off("FTN_PYTORCH_DIRECT_TENSORS") && !program_runs_python() && direct_refusal().empty();
}

}  // namespace

std::unique_ptr<Runner> open_directly(int32_t kind, const std::string& file, const Options& options, Args given,
                                      Args config) {
  const bool is_wish = options.backend == Backend::direct;
  if (!is_wish && (kind == 0 || options.backend != Backend::automatic)) return nullptr;
  if (file.empty()) fail(FPT_ERR_FILE, "the file name is empty");
  const std::string path = absolute_path(file).string();
  const ModelKind model = kind_of_model(path);
  if (is_wish) return load_by_wish(path, model, options, given, config);
  if (model == ModelKind::other || !can_run_models(model)) return nullptr;
  refuse_python_options(path, given, model == ModelKind::recording);
  return torch_side().load(path, model, options, config);
}

Engine* libtorch_engine() {
  // No static decides this by its initialiser: asking takes Python's lock, and a thread that holds it may be waiting
  // here for the same answer. So each asks who comes before there is one, and the first answer holds.
  enum { unknown, no, yes };
  static std::atomic<int> possible{unknown};
  int known = possible.load(std::memory_order_acquire);
  if (known == unknown) {
    const int found = may_compute_with_tensors() ? yes : no;
    if (possible.compare_exchange_strong(known, found, std::memory_order_acq_rel)) known = found;
  }
  if (known == no) return nullptr;
  static Engine& engine = torch_side().engine();
  return &engine;
}

std::unique_ptr<Runner> torch_functions(bool same_layout) { return std::make_unique<TorchFunctions>(same_layout); }

}  // namespace fpt
