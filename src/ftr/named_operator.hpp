// SPDX-License-Identifier: MIT
/// Operators that a file names with their schemas, as the running torch has them.
#pragma once

#include <string>
#include <vector>

#include "ftr/tape.hpp"

namespace ftr {

/// Arguments that an operator takes beyond those of the schema in a file.
struct AddedArguments {
  std::size_t first = 0;  ///< place of the first one
  std::vector<c10::IValue> defaults;
};

struct NamedOperator {
  c10::OperatorHandle handle;
  AddedArguments added;
};

/// Find it. Why::format for one that no file may call, that this torch lacks, or whose schema is not that of the
/// file, but for arguments with defaults that it has got since.
[[nodiscard]] NamedOperator named_operator(const std::string& name, const std::string& overload,
                                           const std::string& schema);

}  // namespace ftr
