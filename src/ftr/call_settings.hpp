// SPDX-License-Identifier: MIT
/// Settings of torch on which the numbers of a file depend. torch has one of each for the process.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ftr/refusal.hpp"
#include "ftr/torch.hpp"

namespace ftr {

class CallSettings {
 public:
  using Values = std::vector<std::pair<std::size_t, int64_t>>;  // places in the table, and values

  /// Those of a file, which may be of a version that wrote fewer. Why::format.
  /// @param on_gpu  whether settings of the GPU's kernels count
  CallSettings(const c10::IValue& recording, bool on_gpu);

  /// While one lives, the process has these settings. Calls of files that want others wait; scripts and other users of
  /// torch do not.
  class Hold {
   public:
    explicit Hold(const CallSettings& wanted);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
  };

 private:
  std::shared_ptr<const Values> wanted_;
};

}  // namespace ftr
