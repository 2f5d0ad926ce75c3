// SPDX-License-Identifier: MIT
/// Arguments of objects of torch: those that the library itself makes, and single numbers among others. Knows nothing
/// of Python.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/fit.hpp"
#include "arrays/scalar.hpp"

namespace fpt {

inline fpt_arg named_argument(fpt_arg arg, std::string_view name) {
  arg.access = FPT_IN;
  if (!name.empty()) static_cast<void>(name_arg(arg, name.data(), static_cast<int64_t>(name.size())));
  return arg;
}

/// The text has to outlive the argument.
inline fpt_arg text_argument(std::string_view text, std::string_view name = {}) {
  fpt_arg made = argument_of({});
  describe_text(made, text.data(), static_cast<int64_t>(text.size()), FPT_IN);
  return named_argument(made, name);
}

template <class Number>
fpt_arg number_argument(Number value, int16_t dtype, std::string_view name = {}) {
  fpt_arg made = argument_of({});
  made.dtype = dtype;
  std::memcpy(made.u.value, &value, sizeof value);
  return named_argument(made, name);
}

inline fpt_arg real_argument(double value, std::string_view name = {}) {
  return number_argument(value, FPT_FLOAT64, name);
}

inline fpt_arg integer_argument(int64_t value, std::string_view name = {}) {
  return number_argument(value, FPT_INT64, name);
}

/// Numbers in a row.
inline Array row_of(void* numbers, int32_t dtype, int64_t count) noexcept {
  Array row;
  row.data = numbers;
  row.dtype = dtype;
  row.rank = 1;
  row.extents[0] = count;
  set_contiguous(row);
  return row;
}

/// The same, which has to outlive the argument.
inline fpt_arg row_argument(void* numbers, int32_t dtype, int64_t count, std::string_view name) {
  return named_argument(argument_of(row_of(numbers, dtype, count)), name);
}

/// @param label  names the number in texts of failures
inline void deliver_real(double value, const fpt_arg& output, const char* label) {
  std::vector<CheckedCopy> copies;
  copies.push_back(fit_scalar(Scalar(value), output, label));
  run_all(copies);
}

}  // namespace fpt
