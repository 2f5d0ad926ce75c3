// SPDX-License-Identifier: MIT
#include "plugin/recording/checkpoint_folder.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/error.hpp"
#include "base/replaced_file.hpp"
#include "plugin/model.hpp"

namespace fpt::direct {
namespace {

namespace fs = std::filesystem;

/// Step of "checkpoint-000000000012.ckpt"; none for other names.
std::optional<int64_t> step_of(std::string_view name) noexcept {
  constexpr std::string_view before = "checkpoint-", after = ".ckpt";
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return {};
  const std::string_view digits = name.substr(before.size(), name.size() - before.size() - after.size());
  int64_t step = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool is_number = digits[0] != '-' && read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  return is_number ? std::optional(step) : std::nullopt;
}

void remove_left_parts(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (step_of(name_of_part(entry.path().filename().string()))) fs::remove(entry.path(), ignored);
}

std::string abandoned_name(const std::string& path) {
  std::string aside = path + ".abandoned";
  std::error_code ignored;
  for (int number = 2; fs::exists(aside, ignored); ++number) aside = concat(path, ".abandoned.", number);
  return aside;
}

/// Names the folder that is in the way, which may be one of those above.
std::string not_made(const fs::path& folder, const std::error_code& reason) {
  fs::path there = folder;
  std::error_code ignored;
  while (there.has_relative_path() && !fs::exists(there, ignored)) there = there.parent_path();
  return concat("the folder ", folder.string(), " cannot be made in ", there.string(), ": ", reason.message());
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  const std::string digits = std::to_string(step);
  return "checkpoint-" + std::string(digits.size() < 12 ? 12 - digits.size() : 0, '0') + digits + ".ckpt";
}

void require_checkpoint(const std::string& path) {
  std::error_code failure;
  if (fs::exists(path, failure)) return;
  const fs::path parent = fs::path(path).parent_path();
  if (!fs::path(path).has_extension()) {
    fs::create_directories(parent, failure);
    if (failure) warn(not_made(parent, failure) + ": nothing can be written to " + path);
  }
  fail_without_checkpoint(path);
}

std::vector<FolderEntry> CheckpointFolder::entries() const {
  std::vector<FolderEntry> found;
  std::error_code failure;
  for (fs::directory_iterator entry(path_, failure), end; !failure && entry != end; entry.increment(failure))
    if (const auto step = step_of(entry->path().filename().string())) found.push_back({*step, entry->path().string()});
  if (failure) fail(FPT_ERR_FILE, path_, " cannot be read: ", failure.message());
  std::sort(found.begin(), found.end(), [](const FolderEntry& a, const FolderEntry& b) {
    return a.step != b.step ? a.step > b.step : a.path > b.path;
  });
  return found;
}

std::vector<FolderEntry> CheckpointFolder::candidates(std::optional<int64_t> step) const {
  require_checkpoint(path_);
  std::vector<FolderEntry> there = entries();
  if (there.empty()) fail(FPT_ERR_NO_CHECKPOINT, "the folder ", path_, " holds no checkpoint");
  if (!step) return there;
  const auto first =
      std::find_if(there.begin(), there.end(), [step](const FolderEntry& entry) { return entry.step <= *step; });
  if (first != there.end() && first->step == *step) return {first, there.end()};
  std::string steps;
  for (std::size_t i = 0; i < std::min<std::size_t>(there.size(), 10); ++i)
    steps += (i > 0 ? ", " : "") + std::to_string(there[i].step);
  fail(FPT_ERR_NO_CHECKPOINT, "the folder ", path_, " holds no checkpoint of step ", *step, ", but of ", steps);
}

void CheckpointFolder::lock() {
  if (lock_ && lock_->is_held()) return;
  std::error_code failure;
  if (fs::exists(path_, failure) && !fs::is_directory(path_, failure))
    fail(FPT_ERR_FILE, path_, " is a file; checkpoint() needs a folder");
  fs::create_directories(path_, failure);
  if (failure) fail(FPT_ERR_FILE, not_made(path_, failure));
  lock_.reset();
  lock_ = std::make_unique<FileLock>(fs::path(path_) / ".lock", "the folder " + path_);
}

void CheckpointFolder::set_aside(const std::vector<FolderEntry>& there, int64_t kept, int64_t step) const {
  for (const FolderEntry& entry : there)
    if (entry.step > kept && (!reached_ || entry.step <= *reached_))
      fail(FPT_ERR_ARGUMENT, entry.path, " is later than step ", step,
           ", and the next restart would take it: use another folder, or restore from this one before going on");
  for (const FolderEntry& entry : there) {
    if (entry.step <= kept) continue;
    std::error_code failure;
    fs::rename(entry.path, abandoned_name(entry.path), failure);
    if (failure)
      fail(FPT_ERR_FILE, entry.path, " cannot be renamed, and is of a run that was given up: ", failure.message());
  }
}

std::string CheckpointFolder::write(int64_t keep, std::optional<int64_t> step,
                                    const std::function<void(const std::string& path, int64_t step)>& write_file) {
  if (keep < 1) fail(FPT_ERR_ARGUMENT, "keep is ", keep, ", it must be at least 1");
  if (step && *step < 0) fail(FPT_ERR_ARGUMENT, "step is ", *step, ", it must not be negative");
  lock();
  if (lock_->is_held()) remove_left_parts(path_);
  const std::vector<FolderEntry> there = entries();
  const int64_t next = step ? *step : 1 + (reached_ ? *reached_ : there.empty() ? 0 : there[0].step);
  // After a restart also those up to this step: other ranks may not have them. Done before the new one is written: a
  // restart must never go on with a run that was given up.
  set_aside(there, reached_ ? std::min(next, *reached_) : next, next);
  const std::string path = (fs::path(path_) / checkpoint_name(next)).string();
  write_file(path, next);
  reached_ = next;
  const std::vector<FolderEntry> now = entries();
  for (std::size_t i = static_cast<std::size_t>(keep); i < now.size(); ++i) {
    std::error_code failure;
    fs::remove(now[i].path, failure);
    if (failure) warn(concat(now[i].path, " is not needed any more, and cannot be removed: ", failure.message()));
  }
  return path;
}

}  // namespace fpt::direct
