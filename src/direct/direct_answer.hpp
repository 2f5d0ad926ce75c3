// SPDX-License-Identifier: MIT
/// The results of a model that the plug-in ran. Knows nothing of Python.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "calls/answer.hpp"
#include "calls/results.hpp"
#include "direct/fpt_direct.h"

namespace fpt {

class DirectAnswer : public Answer, public std::enable_shared_from_this<DirectAnswer> {
 public:
  DirectAnswer() = default;
  ~DirectAnswer() override;
  DirectAnswer(const DirectAnswer&) = delete;
  DirectAnswer& operator=(const DirectAnswer&) = delete;

  /// Where the plug-in puts what it releases at the end of this life.
  fpt_direct_answer* raw() noexcept { return &answer_; }

  /// Keep what owns the memory of an input as long as the answer, if a result is the input or a view of it.
  void keep_if_shared(const Array& input, std::shared_ptr<void> owner);

  ResultList list() const override;
  Value value(int32_t index) override;
  Array on_host(int32_t index) override;
  Array convertible(int32_t index) override;
  TensorPtr tensor(int32_t index, bool same_layout, bool on_host) override;
  void copy(const Array& source, const Array& target) override;
  void wait(Device device) override;

  /// The most frequent result: one tensor of the very type and shape of its output. False, and nothing is done, if it
  /// is another case.
  bool copy_plain_tensor(const fpt_arg& output, bool same_layout) const;

 private:
  Array copy_of(int32_t index, bool widened);

  struct Kept {
    Array memory;
    std::shared_ptr<void> owner;
  };
  std::vector<Kept> kept_;
  fpt_direct_answer answer_{};
  std::map<std::pair<int32_t, bool>, Array> copies_;  // memory of the answer
};

/// One whose tensors keep their graphs.
class RecordedAnswer : public DirectAnswer {
 public:
  TensorPtr tensor(int32_t index, bool same_layout, bool on_host) override;
};

/// Copy the results of a call into its outputs.
void hand_out(DirectAnswer& answer, const CallName& call, const ResultOptions& reading, const Outputs& outputs);
/// Hand the results of a call to all that they go to.
void hand_over(const std::shared_ptr<DirectAnswer>& answer, const CallName& call, const ResultOptions& reading,
               const Outputs& outputs, const Targets& targets);

}  // namespace fpt
