// SPDX-License-Identifier: MIT
/// The link between a rank and the process that works for it: shared memory for what is said, and a pipe each way by
/// which one tells the other that it is there. Knows nothing of Python.
///
/// A pipe takes 3 us there and back on one core, as long as a futex, and its end tells that the other process is gone.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "node/descriptor.hpp"
#include "node/segment.hpp"

namespace fpt {

/// One end of the link.
class Channel {
 public:
  /// The end of a rank. FPT_ERR_FILE where the process has no files left.
  Channel();
  /// The other end.
  Channel(Descriptor memory, Descriptor in, Descriptor out);

  /// What that is made of, to be handed to another process, and then forget_other_end(): otherwise its end is never
  /// seen.
  std::vector<int> other_end() const;
  void forget_other_end() noexcept;

  Segment& memory() noexcept { return *memory_; }
  /// What becomes readable when the other process tells something, or ends.
  int readable() const noexcept { return in_.get(); }
  /// Let the other process go on.
  void tell() noexcept;
  /// Until the other process lets this one go on; false if it is gone.
  [[nodiscard]] bool wait() noexcept;
  /// The same for at most so long; false also if that has passed.
  [[nodiscard]] bool wait(std::chrono::milliseconds limit) noexcept;
  /// Let the other process see the end of this one.
  void end() noexcept { out_.reset(); }

 private:
  std::unique_ptr<Segment> memory_;
  Descriptor in_, out_;
  // The reading end of out_ stays open here, too: writing to a process that is gone would be SIGPIPE.
  Descriptor other_in_, other_out_;
};

}  // namespace fpt
