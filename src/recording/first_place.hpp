// SPDX-License-Identifier: MIT
/// Which arguments of a call are one object, or one to which a name leads.
#pragma once

#include <algorithm>
#include <vector>

#include "recording/torch.hpp"

namespace fpt::recording {

/// The place where an object comes first among those of names and, behind them, the leaves of a call; behind all of
/// them for a new one. The names stay where they are: there may be hundreds, and this is asked in each call.
template <class Leaves>
std::size_t first_place(PyObject* object, const std::vector<PyObject*>& named, const Leaves& leaves) {
  const auto of_name = std::find(named.begin(), named.end(), object);
  if (of_name != named.end()) return static_cast<std::size_t>(of_name - named.begin());
  return named.size() + static_cast<std::size_t>(std::find(leaves.begin(), leaves.end(), object) - leaves.begin());
}

}  // namespace fpt::recording
