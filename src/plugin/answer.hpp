// SPDX-License-Identifier: MIT
/// Results of a model, whatever they are, as values that cross the boundary.
#pragma once

#include "plugin/tensors.hpp"

namespace fpt::direct {

/// What Fortran can look into as it is: strided, with numbers in it, without pending conjugation or sign.
bool is_plain(const at::Tensor& tensor) noexcept;
/// The same of any tensor, with its graph. FPT_ERR_RESULT_TYPE, FPT_ERR_RANK, FPT_ERR_DTYPE, FPT_ERR_DEVICE; `label`
/// names it.
[[nodiscard]] at::Tensor plain(at::Tensor tensor, const std::string& label);

/// The tensor that a container inside a result is: numbers alone, or logicals alone, in lists of equal length;
/// undefined for others.
[[nodiscard]] at::Tensor tensor_of_numbers(const c10::IValue& value);

/// What the `owner` of an fpt_direct_answer points to.
struct Answer {
  std::vector<fpt_direct_value> values;
  std::vector<at::Tensor> tensors;  // one per value, undefined for numbers and texts
  std::vector<at::Tensor> copies;   // on the host
  c10::IValue result;               // holds texts and names
  std::vector<std::string> names;
  bool is_tuple = false;
  uint64_t changed = 0;  // see fpt_direct_answer

  /// Take a result over. FPT_ERR_RESULT_TYPE, FPT_ERR_RANK, FPT_ERR_DTYPE; `what` opens the texts.
  void set(c10::IValue value, const std::string& what);
  /// The same for tensors with names or, where there are none, without.
  void set(std::vector<at::Tensor> results, std::vector<std::string> result_names, const std::string& what);
  /// A copy of a tensor in host memory, of a type that the core converts if `widened`. Lives as long as the answer.
  fpt_direct_value on_host(std::size_t index, bool widened);
  void clear() noexcept;

 private:
  void add(const c10::IValue& value, const char* name, const std::string& what);
  void add_tensor(at::Tensor tensor, const char* name, bool single, const std::string& what);
  static void describe(fpt_direct_value& slot, const at::Tensor& tensor);
};

/// Answers are used again by the thread that released them.
std::unique_ptr<Answer> take_answer();
void release_answer(std::unique_ptr<Answer> answer) noexcept;

/// Hand an answer to the core.
void hand_out(std::unique_ptr<Answer> answer, fpt_direct_answer& out) noexcept;

}  // namespace fpt::direct
