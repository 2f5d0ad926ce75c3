// SPDX-License-Identifier: MIT
/// One call in progress: its arguments as tensors, what is checked after it, and what the next call finds again.
#pragma once

#include <array>
#include <atomic>
#include <deque>

#include "plugin/tensors.hpp"

namespace fpt::direct {

/// Used by one call at a time; FramePool hands frames out.
class Frame {
 public:
  /// Begin a call.
  /// @param may_keep  the model may keep an input beyond the answer, so those that end with it are copied
  /// @param records   a graph is recorded, which may keep any of them: all memory is copied
  FPT_API void begin(const Settings& settings, bool may_keep, bool records = false);

  /// Tensor of any other argument, on the device of the model. `what` and `index` name it in texts.
  FPT_API const at::Tensor& tensor(const Settings& settings, const fpt_arg& arg, const char* what, int32_t index);

  /// A tensor of the program as the model gets it, with its graph.
  FPT_API at::Tensor tensor(const Settings& settings, const at::Tensor& given, const fpt_arg& arg, const char* what,
                            int32_t index);

  /// Whether what tensor() has returned last is a copy, by inputs="copy", another type or alignment: free to change.
  bool is_own_copy() const noexcept { return uses_.back().is_own; }

  /// The same as the first, contiguous as compiled code wants it; a copy where the array is not.
  const at::Tensor& contiguous(const Settings& settings, const fpt_arg& arg, const char* what, int32_t index);

  /// After the model ran: FPT_ERR_INPUT_MODIFIED for an input that it had no right to change.
  FPT_API void require_unmodified(const std::string& function) const;
  /// The same, then changed inputs go back, and those that it kept are reported once.
  /// @param results  may rightly share the memory of inputs
  FPT_API void finish(const std::string& function, at::ArrayRef<at::Tensor> results);
  /// The same for compiled code, which keeps nothing and of which torch does not know what it changed.
  void finish_compiled();
  /// Bits of the inputs, of the first 64, whose memory itself the model has changed.
  FPT_API uint64_t changed() const noexcept;
  /// After a failure.
  void abandon() noexcept { uses_.clear(); }

  c10::Stack stack;
  std::vector<bool> given;  // which arguments a call has

 private:
  struct Use {
    const at::Tensor* given;
    at::Tensor moved;  // to the device of the model, where the memory is elsewhere
    uint32_t version;
    const fpt_arg* arg;
    const char* what;
    int32_t index;
    bool copied, is_of_program;  // a copy in memory of torch; a tensor that others hold, too
    bool is_own;                 // a copy for another reason than the device of the model
    Array seen;                  // a copy as it was made: the model may give its tensor another shape
    bool is_changed() const noexcept;
    const at::Tensor& used() const noexcept { return moved.defined() ? moved : *given; }
  };

  static void write_back(const Use& use);
  void tell_of_copies(const Settings& settings, const char* what, int32_t index);
  void wait_for_inputs() const;
  void report_kept(const std::string& function, at::ArrayRef<at::Tensor> results);

  std::deque<TensorCache> caches_;  // which stay where they are while positions are added
  std::vector<Use> uses_;
  uint64_t calls_ = 0;
  bool checking_ = false;
  bool may_keep_ = false;
  bool records_ = false;
  bool reported_ = false;
  bool copies_told_ = false;
};

/// Frames of one function: each thread finds the one it used last, without a lock.
class FPT_API FramePool {
 public:
  FramePool() = default;
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// A frame for one call, given back at the end of the scope.
  class Lease {
   public:
    explicit Lease(FramePool& pool);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Frame& operator*() const noexcept { return *frame_; }
    Frame* operator->() const noexcept { return frame_; }

   private:
    std::atomic<Frame*>& place_;
    Frame* frame_;
  };

 private:
  std::array<std::atomic<Frame*>, 64> places_{};
};

}  // namespace fpt::direct
