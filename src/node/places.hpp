// SPDX-License-Identifier: MIT
/// Where the arrays of a call lie in memory that all ranks of a GPU share. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/arg.hpp"
#include "base/error.hpp"
#include "node/node_messages.hpp"
#include "node/segment.hpp"

namespace fpt {

/// Hands out one place after the other, inputs first.
class Places {
 public:
  Places(Segment& memory, const std::vector<int64_t>& begins) : memory_(memory), begins_(begins) {}

  /// FPT_ERR_INTERNAL where there are fewer than arrays.
  char* next() {
    if (used_ == begins_.size()) fail(FPT_ERR_INTERNAL, "a call has more arrays than places");
    return memory_.at(begins_[used_++]);
  }

 private:
  Segment& memory_;
  const std::vector<int64_t>& begins_;
  std::size_t used_ = 0;
};

/// What two calls have in common whose arrays can lie in the same places; empty for calls with tensors, and for those
/// whose results come behind the answer.
/// @param ignores_rows  what calls have in common that can be made as one
std::string form_of(const Request& request, Args inputs, Args outputs, bool ignores_rows = false);

}  // namespace fpt
