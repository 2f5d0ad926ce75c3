// SPDX-License-Identifier: MIT
/// The results of a function of a script.
#pragma once

#include <vector>

#include "calls/results.hpp"
#include "torch/framework.hpp"

namespace fpt {

/// Made, and destroyed, with the interpreter lock held: share_references() makes owners that see to it.
class ScriptAnswer : public Answer {
 public:
  /// FPT_ERR_RESULT_TYPE for what is no result.
  /// @param copied_at_once  nothing of the result is handed out, so plain tensors need not be prepared for that
  ScriptAnswer(PyObject* result, const CallName& call, bool copied_at_once);

  ResultList list() const override;
  Value value(int32_t index) override;
  Array on_host(int32_t index) override { return copy_of(index, &Item::on_host, false); }
  Array convertible(int32_t index) override { return copy_of(index, &Item::convertible, true); }
  TensorPtr tensor(int32_t index, bool same_layout, bool on_host) override;
  void copy(const Array& source, const Array& target) override;
  void wait(Device device) override { wait_for(device); }

 private:
  /// A copy that was handed out, used again as long as that of which it was made has not changed.
  struct Copy {
    Ref object;
    Array of;
    uint64_t state = 0;
  };
  struct Item {
    Ref given;
    Copy on_host, convertible;
  };

  bool take_plain_tensors(PyObject* result);
  Array copy_of(int32_t index, Copy Item::* copy, bool widened);

  std::vector<Item> items_;
  Ref names_;  // tuple, or nothing
  bool is_tuple_, copied_at_once_;
};

/// The most frequent result: one tensor of the very type and shape of its output. False, and nothing is done, if it is
/// another case, or not sure to be this one. With the interpreter lock held.
[[nodiscard]] bool copy_plain_tensor(PyObject* result, const fpt_arg& output, bool same_layout);

}  // namespace fpt
