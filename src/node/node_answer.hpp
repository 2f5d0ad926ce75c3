// SPDX-License-Identifier: MIT
/// Results on their way from the process that works for a rank. Knows nothing of Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arrays/arg.hpp"
#include "calls/answer.hpp"
#include "node/segment.hpp"

namespace fpt {

/// Write results for another process. What Fortran cannot look into fails there when it is asked for.
void send_results(Answer& answer, SegmentWriter& writer);

/// Copies of results that another process has made; they live as long as this.
class NodeAnswer : public Answer, public std::enable_shared_from_this<NodeAnswer> {
 public:
  explicit NodeAnswer(SegmentReader& reader);

  ResultList list() const override;
  Value value(int32_t index) override;
  Array on_host(int32_t index) override;
  Array convertible(int32_t index) override;
  TensorPtr tensor(int32_t index, bool same_layout, bool on_host) override;
  void copy(const Array& source, const Array& target) override;
  void wait(Device) override {}

 private:
  struct Item {
    bool has_name = false;
    std::string name, type, text;
    fpt_status status = FPT_OK;  // else `text` says why Fortran cannot look into it
    bool is_array = false;
    Array array;    // axes in the order of the script
    Scalar scalar;  // a text is that of `text`
    Storage memory, widened;
  };

  const Item& item(int32_t index) const;

  std::vector<Item> items_;
  bool has_names_ = false, is_tuple_ = false;
};

}  // namespace fpt
