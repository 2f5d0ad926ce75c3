// SPDX-License-Identifier: MIT
#include "plugin/model.hpp"

#include <filesystem>

namespace fpt::direct {
namespace {

constexpr const char* no_checkpoints =
    "the direct path has checkpoints of saved recordings only: load the model with backend=\"python\"";

}  // namespace

std::string Settings::label(std::string_view function) const { return concat(function, " of ", name); }

void require_name(const std::string& file) {
  if (file.find_first_not_of(" \t\n\v\f\r") == std::string::npos)
    fail(FPT_ERR_FILE, "the name of the checkpoint is empty");
}

void fail_without_checkpoint(const std::string& path) {
  fail(FPT_ERR_NO_CHECKPOINT, path, " does not exist, so there is nothing to restore");
}

void Model::checkpoint(const std::string&, int64_t, std::optional<int64_t>) { fail(FPT_ERR_HOOK, no_checkpoints); }

void Model::refuse_checkpoints(const std::string& file, bool fallback, std::optional<int64_t> step) {
  std::error_code ignored;
  if (fallback || step || std::filesystem::is_directory(file, ignored)) fail(FPT_ERR_HOOK, no_checkpoints);
}

const fpt_arg& Model::single_target(Inputs targets, const std::string& label) {
  if (targets.count != 1)
    fail(FPT_ERR_SIGNATURE, label, " was given ", targets.count, " targets; a saved model is trained on one");
  const std::string_view name = targets.args[0].name;
  if (!name.empty() && name != "target")
    fail(FPT_ERR_SIGNATURE, label, " was given a target with the name \"", name,
         "\"; it is called \"target\", or nothing");
  return targets.args[0];
}

}  // namespace fpt::direct
