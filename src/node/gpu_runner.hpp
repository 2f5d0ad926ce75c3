// SPDX-License-Identifier: MIT
/// A file that one process loads for all ranks of a node that use the same GPU, load(..., per="gpu"): it makes their
/// calls as one. Knows nothing of Python.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/mpi_sum.hpp"
#include "calls/options.hpp"
#include "calls/runner.hpp"
#include "node/board.hpp"
#include "node/channel.hpp"
#include "node/meeting.hpp"
#include "node/node_answer.hpp"
#include "node/node_messages.hpp"

namespace fpt {

/// The side of the rank. One call at a time; others wait.
class GpuRunner : public Runner {
 public:
  /// All ranks of the communicator call this. What fails while the file is loaded, fails on all ranks of the GPU.
  /// FPT_ERR_ARGUMENT without a communicator, FPT_ERR_DEVICE without a device, and what Meeting throws.
  static std::unique_ptr<Runner> load(int32_t kind, const std::string& file, const Options& options, Args given,
                                      Args config);

  const std::string& backend() const noexcept override { return backend_; }
  bool has(const std::string& function) override;
  void reload() override;
  void save(const std::string& file) override;
  void checkpoint(const std::string& folder, int64_t keep, int64_t step) override;
  int64_t restore(const std::string& file, bool fallback, int64_t step) override;
  void publish(const std::string& network, Runner& target) override;
  void assign(const std::vector<NamedArray>& values) override;
  void forward(Args inputs, const Targets& targets, int32_t flags) override;
  TensorPtr forward_list(Args inputs, int32_t flags) override;
  void call(std::string_view function, Args inputs, const Targets& targets) override;
  std::unique_ptr<Runner> create(std::string_view function, Args inputs) override;
  Training train(Args inputs, Args targets, bool is_list) override;
  void set_stream(void* stream, bool waits) override;
  void wait() override {}

 private:
  struct Reply {
    Outcome outcome;
    std::shared_ptr<NodeAnswer> results;
  };
  /// Where arrays of calls of one form lie from now on.
  struct Known {
    int64_t number;
    std::vector<int64_t> begins;
  };

  GpuRunner(const std::string& file, const Options& options);
  Reply ask(Request request, const CallName& call, Args inputs = {}, Args outputs = {});
  static Reply answer(SegmentReader& reader);
  void run(const Request& request, Args inputs, const Targets& targets);
  [[noreturn]] void lose_owner(const CallName& call);
  [[noreturn]] void refuse(std::string_view what) const;
  CallName name_of(std::string_view function) const noexcept { return {function, name_}; }

  std::string file_, name_, device_, backend_;
  ResultOptions reading_;
  std::unique_ptr<MpiSum> ranks_;
  std::unique_ptr<Meeting> node_;
  std::mutex mutex_;
  Channel owner_;
  std::unique_ptr<Board> board_;
  int64_t number_ = 0;  // of this rank on the board
  std::map<std::string, Known> places_;
  std::string end_;  // of the owner
};

}  // namespace fpt
