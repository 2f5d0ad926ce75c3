// SPDX-License-Identifier: MIT
/// A loaded script and its functions, as calls see them. With the interpreter lock held, which also guards the members.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cuda_context.hpp"
#include "calls/options.hpp"
#include "calls/results.hpp"
#include "script/cache.hpp"

namespace fpt {

/// Where a script computes.
struct Place {
  std::string device;    ///< arrays are copied there and results to the host; empty: where its arrays are
  bool is_host = false;  ///< arrays on devices are copied for it
  mutable bool copies_told = false;
  ChosenStream stream;
};

/// What load and reload settle.
struct Script {
  Ref runner;  ///< object of the Python package, see runners/base.py
  std::string name, backend;
  Options options;
  Framework framework = Framework::torch;
  Place place;
  Ref names;                   ///< dictionary of the names of a script, else null
  bool refers_weakly = false;  ///< code of this package, which has weak references on arrays that it has prepared
  bool keeps_tensors = false;  ///< memory of a torch_tensor is one and the same tensor of torch in every call

  ResultOptions reading() const noexcept { return {options.same_layout, options.cast, !place.device.empty()}; }
  /// True if every array reaches the script as it is.
  bool passes_arrays_as_they_are() const noexcept { return options.real_dtype == FPT_NONE && !options.copies_inputs; }
};

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
  Ref key, meant;             ///< its name among those of the script, and what that stood for; null if there is none
  bool one_list = false;      ///< a torch_tensor_wrap arrives as one list
  bool has_out = false;       ///< takes the outputs as keyword argument `out`
  bool neglects_out = false;  ///< its code never looks at `out`, or gives the name another value
  uint64_t calls = 0;
  SlotCaches inputs, outputs;
  std::vector<bool> reported;  ///< positions whose retention has been reported
  std::vector<std::string> keywords;
  Ref keyword_names;  ///< tuple of `keywords`

  /// Whether its name stands for what it stood for: a script may give it another function at any time.
  bool is_current(const Script& script) const noexcept {
    if (!script.names) return true;
    const PyObject* now = PyDict_GetItemWithError(script.names.get(), key.get());
    if (!now) PyErr_Clear();
    return now == meant.get();
  }
};

}  // namespace fpt
