// SPDX-License-Identifier: MIT
/// What the code of an AOTInductor package expects of its inputs. The code looks at them itself; this is for the
/// reason, which not every version of torch tells.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace fpt::direct {

struct Sizes {
  int64_t least = 0, most = std::numeric_limits<int64_t>::max();
};

/// As far as it is known: dtype as torch calls it ("float32") or empty, sizes by axis.
struct ExpectedInput {
  std::string dtype;
  std::map<int64_t, Sizes> sizes;
};

/// Read from the source of the package's wrapper, in which every check carries the text of its failure. Nothing is
/// known where it is written in another way.
std::vector<ExpectedInput> expected_inputs(const std::string& source, std::size_t count);

}  // namespace fpt::direct
