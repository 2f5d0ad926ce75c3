// SPDX-License-Identifier: MIT
/// Results of the direct path on their way to Fortran. Knows nothing of Python; deliver.hpp does.
#pragma once

#include <memory>
#include <string>

#include "direct/fpt_direct.h"
#include "arrays/result_names.hpp"
#include "calls/tensor.hpp"

namespace fpt {

/// The answer of a call; releases it at the end of its life.
class DirectAnswer {
 public:
  DirectAnswer() = default;
  ~DirectAnswer();
  DirectAnswer(const DirectAnswer&) = delete;
  DirectAnswer& operator=(const DirectAnswer&) = delete;

  fpt_direct_answer* operator->() noexcept { return &answer_; }
  const fpt_direct_answer* operator->() const noexcept { return &answer_; }
  fpt_direct_answer* get() noexcept { return &answer_; }

  /// The array of a result that is a tensor, axes in Fortran order; brought to the host.
  Array array(int32_t index);

 private:
  fpt_direct_answer answer_{};
};

/// Copy results into outputs, as deliver() does for those of a script, with the same failures.
/// @param what  names the call: "forward of net"
void deliver_direct(DirectAnswer& answer, const std::string& what, bool same_layout, bool casts, fpt_arg* outputs,
                    int32_t count);

/// What torch_results holds after a call on the direct path.
class DirectResults {
 public:
  DirectResults(std::shared_ptr<DirectAnswer> answer, std::string function, bool same_layout);

  const ResultNames& names() const noexcept { return names_; }
  Tensor tensor(int32_t index);
  void memory(int32_t index, int32_t dtype, int32_t rank, void** data, int64_t* extents, int64_t* strides);
  void copy_to(int32_t index, const fpt_arg& output, bool cast);
  void text(int32_t index, const char** text, int64_t* length) const;

  /// The only tensor of a call whose result has to be one.
  static Tensor single(std::shared_ptr<DirectAnswer> answer, const std::string& function, bool same_layout);

 private:
  fpt_direct_value& value(int32_t index) const;
  Array array_at(int32_t index);

  std::shared_ptr<DirectAnswer> answer_;
  ResultNames names_;
  bool same_layout_;
};

bool is_direct_results(int64_t handle) noexcept;
DirectResults& direct_results_at(int64_t handle);
/// New contents for a handle, which becomes a new one unless it named results of the direct path.
void store_direct_results(int64_t* handle, DirectResults results);
void free_direct_results(int64_t handle) noexcept;

}  // namespace fpt
