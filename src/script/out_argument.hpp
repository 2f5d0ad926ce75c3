// SPDX-License-Identifier: MIT
/// The outputs of a call as the argument `out` of a function that writes into them. With the interpreter lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "script/function.hpp"

namespace fpt {

/// One array, a list of several, or a dict of those that have names; all on the memory of the caller.
class OutArgument {
 public:
  /// FPT_ERR_ARGUMENT, FPT_ERR_KIND, FPT_ERR_RESULT_NAME, FPT_ERR_STRIDE for outputs that cannot be written in place.
  /// @param watched  look at the outputs before the call, for require_written()
  OutArgument(const Script& script, Function& function, Args outputs, bool watched);

  const Ref& object() const noexcept { return object_; }
  /// After a call that returned nothing: FPT_ERR_RESULT_COUNT if an output was left alone for sure, because the
  /// function gave the name, the place in the list, or the tensor other memory; a warning if it only looks so.
  void require_written(bool is_first_call) const;

 private:
  /// An output as it was before the call.
  struct Watched {
    Ref value;
    Array array;
    int64_t version;
    std::size_t digest;
    int32_t index;
  };

  bool is_replaced(const Watched& output) const;

  const Script& script_;
  Function& function_;
  Args outputs_;
  Ref object_;
  std::vector<Watched> watched_;
};

}  // namespace fpt
