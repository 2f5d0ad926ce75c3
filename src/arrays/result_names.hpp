// SPDX-License-Identifier: MIT
/// Names and places of the results of one call, whoever made it: which output gets which, and what torch_results finds.
/// Knows nothing of Python.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/arg.hpp"

namespace fpt {

/// What texts call a call: "f of net", or the function alone where it says all.
struct CallName {
  std::string_view function, module;
};
FPT_API void append(std::string& text, const CallName& call);

/// The results of a call while it is delivered.
struct ResultList {
  int32_t count = 0;
  std::vector<const char*> names;  ///< of all results, or empty; null for a name that is no text
  bool is_tuple = false;           ///< names are only another way to say the place (namedtuple)
};

/// For each output the place of its result, from 0: by name where outputs have names, else one after the other.
/// FPT_ERR_RESULT_NAME, FPT_ERR_RESULT_COUNT.
[[nodiscard]] std::vector<int32_t> pair_outputs(const CallName& call, const ResultList& results, Args outputs);

/// The names that torch_results knows; empty ones for results that have none.
class ResultNames {
 public:
  ResultNames() = default;
  ResultNames(std::string call, std::vector<std::string> names) : call_(std::move(call)), names_(std::move(names)) {}

  const std::string& call() const noexcept { return call_; }
  int32_t count() const noexcept { return static_cast<int32_t>(names_.size()); }
  /// Place of result `index` (from 1) counted from 0. FPT_ERR_RESULT_NAME.
  std::size_t place(int32_t index) const;
  const std::string& name(int32_t index) const { return names_[place(index)]; }
  /// Index (from 1) of a name. FPT_ERR_RESULT_NAME.
  int32_t find(const std::string& name) const;
  /// "result 2 of f of net".
  std::string label(int32_t index) const;

 private:
  std::string call_;
  std::vector<std::string> names_;
};

}  // namespace fpt
