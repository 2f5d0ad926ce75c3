// SPDX-License-Identifier: MIT
/// Results on their way from the process that works for a rank. Knows nothing of Python.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "arrays/arg.hpp"
#include "calls/answer.hpp"
#include "node/segment.hpp"

namespace fpt {

/// A result for another process. An array follows it; its axes are in the order of Fortran until it has arrived.
struct SentResult {
  bool has_name = false;
  std::string name, type;
  std::string text;            // that of a string
  fpt_status status = FPT_OK;  // else `text` says why Fortran cannot look into it
  std::variant<Array, Scalar> content = Scalar();

  template <class Self>
  static auto fields(Self& of) {
    return std::tie(of.has_name, of.name, of.type, of.text, of.status);
  }
};

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
  struct Item : SentResult {
    Storage memory, widened;
  };

  const Item& item(int32_t index) const;
  /// Of an item that is one.
  const Array& array(int32_t index) const { return std::get<Array>(item(index).content); }

  std::vector<Item> items_;
  bool has_names_ = false, is_tuple_ = false;
};

}  // namespace fpt
