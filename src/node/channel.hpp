// SPDX-License-Identifier: MIT
/// The link between a rank and the process that works for it: shared memory for what is said, and a pipe each way by
/// which one tells the other that it is there. Knows nothing of Python.
///
/// A pipe takes 3 us there and back on one core, as long as a futex, and its end tells that the other process is gone.
#pragma once

#include <array>
#include <memory>

#include "node/descriptor.hpp"
#include "node/segment.hpp"

namespace fpt {

/// One end of the link.
class Channel {
 public:
  /// What the other end is made of: its memory, where it reads and where it writes.
  using Ends = std::array<int, 3>;

  /// The end of a rank. FPT_ERR_FILE where the process has no files left.
  Channel();
  /// The other end; takes the descriptors over.
  explicit Channel(const Ends& ends);

  /// To be handed to another process, and then forget_other_end(): otherwise its end is never seen.
  Ends other_end() const noexcept;
  void forget_other_end() noexcept;

  Segment& memory() noexcept { return *memory_; }
  /// What becomes readable when the other process tells something, or ends.
  int readable() const noexcept { return in_.get(); }
  /// Let the other process go on.
  void tell() noexcept;
  /// Until the other process lets this one go on; false if it is gone.
  [[nodiscard]] bool wait() noexcept;
  /// The same for at most so many seconds; false also if they have passed.
  [[nodiscard]] bool wait(double seconds) noexcept;
  /// Let the other process see the end of this one.
  void end() noexcept { out_.reset(); }

 private:
  std::unique_ptr<Segment> memory_;
  Descriptor in_, out_;
  // The reading end of out_ stays open here, too: writing to a process that is gone would be SIGPIPE.
  Descriptor other_in_, other_out_;
};

}  // namespace fpt
