// SPDX-License-Identifier: MIT
/// Results of a model or of a function of torch, whatever they are, as the core delivers them.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "calls/answer.hpp"
#include "calls/results.hpp"
#include "plugin/torch.hpp"

namespace fpt::direct {

/// What Fortran can look into as it is: strided, with numbers in it, without pending conjugation or sign.
bool is_plain(const at::Tensor& tensor) noexcept;
/// The same of any tensor, with its graph. FPT_ERR_RESULT_TYPE, FPT_ERR_RANK, FPT_ERR_DTYPE, FPT_ERR_DEVICE; `label`
/// names it.
[[nodiscard]] at::Tensor plain(at::Tensor tensor, const std::string& label);

/// The tensor that a container inside a result is: numbers alone, or logicals alone, in lists of equal length;
/// undefined for others.
[[nodiscard]] at::Tensor tensor_of_numbers(const c10::IValue& value);

class FPT_API DirectAnswer : public Answer, public std::enable_shared_from_this<DirectAnswer> {
 public:
  DirectAnswer() = default;
  ~DirectAnswer() override;
  DirectAnswer(const DirectAnswer&) = delete;
  DirectAnswer& operator=(const DirectAnswer&) = delete;

  /// Take a result over. FPT_ERR_RESULT_TYPE, FPT_ERR_RANK, FPT_ERR_DTYPE; `what` opens the texts.
  void set(c10::IValue value, const std::string& what);
  /// The same for tensors with names or, where there are none, without.
  void set(std::vector<at::Tensor> results, std::vector<std::string> result_names, const std::string& what);
  void set_is_tuple(bool is_tuple) noexcept { is_tuple_ = is_tuple; }
  /// One for each result, undefined for numbers and texts.
  at::ArrayRef<at::Tensor> tensors() const noexcept { return tensors_; }
  const at::Tensor& result(int32_t index) const noexcept { return tensors_[static_cast<std::size_t>(index)]; }
  /// Of a result, null where results have none.
  const char* name(std::size_t index) const noexcept { return contents_[index].name; }

  /// Keep what owns the memory of an input as long as the answer, if a result is the input or a view of it.
  void keep_if_shared(const Array& input, std::shared_ptr<void> owner);

  ResultList list() const override;
  Value value(int32_t index) override;
  Array on_host(int32_t index) override;
  Array convertible(int32_t index) override;
  TensorPtr tensor(int32_t index, bool same_layout, bool on_host) override;
  void copy(const Array& source, const Array& target) override;
  bool copy_at_once(const fpt_arg& output, bool same_layout) const override;
  void wait(Device device) override;

  uint64_t changed = 0;  ///< bit i: the model has changed the memory of input i, of the first 64

 private:
  struct Content {
    const char* name;
    Scalar scalar;  // where there is no tensor; a text is one of `result_`
  };
  struct Kept {
    Array memory;
    std::shared_ptr<void> owner;
  };

  void add(const c10::IValue& value, const char* name, const std::string& what);
  void add_tensor(at::Tensor tensor, const char* name, bool single, const std::string& what);
  Array copy_of(int32_t index, bool widened);

  c10::SmallVector<at::Tensor, 2> tensors_;
  c10::SmallVector<Content, 2> contents_;
  c10::IValue result_;              // holds texts and names
  std::vector<std::string> names_;  // those that it does not hold
  bool is_tuple_ = false;           // results have names but also an order
  std::vector<Kept> kept_;
  std::map<std::pair<int32_t, bool>, at::Tensor> copies_;  // on the host
};

/// One whose tensors keep their graphs.
class RecordedAnswer : public DirectAnswer {
 public:
  TensorPtr tensor(int32_t index, bool same_layout, bool on_host) override;
};

}  // namespace fpt::direct
