// SPDX-License-Identifier: MIT
#include "calls/runner.hpp"

namespace fpt {

RunnerTable& runners() {
  static RunnerTable& table = *new RunnerTable("a module or an object of torch", "load, or create,");
  return table;
}

}  // namespace fpt
