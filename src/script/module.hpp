// SPDX-License-Identifier: MIT
/// A loaded runner and its functions. Everything runs with the interpreter lock, which also guards the members.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "script/cache.hpp"
#include "ftn_pytorch.h"
#include "base/handle.hpp"
#include "python/pyref.hpp"

namespace fpt {

enum class Mode { checked, safe };

/// One cache per argument position. References stay valid while positions are added, as a recursive call may do.
class SlotCaches {
 public:
  SlotCache& at(std::size_t position) {
    if (position >= caches_.size()) grow(position);
    return *caches_[position];
  }

 private:
  [[gnu::cold, gnu::noinline]] void grow(std::size_t position) {
    while (caches_.size() <= position) caches_.push_back(std::make_unique<SlotCache>());
  }

  std::vector<std::unique_ptr<SlotCache>> caches_;
};

/// A function of a script, inspected once when it is first called, with what is kept between its calls.
struct Function {
  std::string name;
  int32_t flags = 0;
  Ref callable;
  bool one_list = false;  ///< a torch_tensor_wrap arrives as one list
  bool has_out = false;   ///< takes the outputs as keyword argument `out`
  uint64_t calls = 0;
  SlotCaches inputs, outputs;
  std::vector<bool> reported;     ///< positions whose retention has been reported
  std::vector<std::string> keywords;
  Ref keyword_names;              ///< tuple of `keywords`
};

class Module {
 public:
  static std::unique_ptr<Module> load(int32_t kind, const std::string& file, fpt_arg* options, int32_t noptions,
                                      fpt_arg* config, int32_t nconfig);

  /// The function of that name. FPT_ERR_HOOK if there is none.
  Function& function(std::string_view name, int32_t flags);
  /// The hooks, without comparing names.
  Function& forward(int32_t flags) { return flags == 0 && forward_ ? *forward_ : find_forward(flags); }
  Function& train() { return train_ ? *train_ : find_train(); }

  void reload();
  void save(const std::string& file);
  void checkpoint(const std::string& folder, int64_t keep, int64_t step);
  /// The step of what was read, -1 if it has none.
  int64_t restore(const std::string& file, bool fallback, int64_t step);
  bool has(const std::string& name);

  PyObject* runner() const noexcept { return runner_.get(); }
  const std::string& name() const noexcept { return name_; }
  const std::string& backend() const noexcept { return backend_; }
  Mode mode() const noexcept { return mode_; }
  Framework framework() const noexcept { return framework_; }
  bool same_layout() const noexcept { return same_layout_; }
  bool copies_inputs() const noexcept { return copies_inputs_; }
  bool casts_outputs() const noexcept { return casts_outputs_; }
  bool computes_on_device() const noexcept { return computes_on_device_; }

  /// True if every array reaches the script as it is.
  bool passes_arrays_as_they_are() const noexcept { return float_dtype_ == FPT_NONE && !copies_inputs_; }
  /// Element type in which the script wants an array of type `dtype`: see the option "dtype".
  int32_t wanted_dtype(int32_t dtype) const noexcept;

 private:
  friend class ModuleUse;
  friend void free_module(int64_t handle);

  Function& find_forward(int32_t flags);
  Function& find_train();
  void read_attributes();
  std::string attribute(const char* name) const;
  bool flag(const char* name) const;

  Ref runner_;
  std::string name_, backend_;
  Mode mode_ = Mode::checked;
  Framework framework_ = Framework::torch;
  int32_t float_dtype_ = FPT_NONE;
  bool same_layout_ = false, copies_inputs_ = false, casts_outputs_ = false, computes_on_device_ = false;
  std::vector<std::unique_ptr<Function>> functions_;
  // among functions_: hooks once they have been called, and the one that was looked up last
  Function *forward_ = nullptr, *train_ = nullptr, *latest_ = nullptr;
  std::vector<std::unique_ptr<Function>> retired_;  // replaced by a reload while a call was running
  int users_ = 0;
  bool has_leftovers_ = false;  // to be dealt with by the last user: retired functions, or the module itself
  bool freed_ = false;
};

using ModuleTable = HandleTable<Module, HandleKind::module>;

inline ModuleTable& modules() {
  static ModuleTable& table = *new ModuleTable("a module", "load");
  return table;
}

/// A module in use: freeing it meanwhile takes effect at the end.
class ModuleUse {
 public:
  explicit ModuleUse(int64_t handle) : module_(&modules().at(handle)) { ++module_->users_; }
  ~ModuleUse() {
    if (--module_->users_ == 0 && module_->has_leftovers_) finish();
  }
  ModuleUse(const ModuleUse&) = delete;
  ModuleUse& operator=(const ModuleUse&) = delete;
  Module& operator*() const noexcept { return *module_; }
  Module* operator->() const noexcept { return module_; }

 private:
  void finish();

  Module* module_;
};

/// Put a module into the table; `*handle` is replaced, and what it named before is freed.
void store_module(std::unique_ptr<Module> module, int64_t* handle);
void free_module(int64_t handle);

}  // namespace fpt
