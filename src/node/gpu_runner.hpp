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
#include "node/board.hpp"
#include "node/channel.hpp"
#include "node/meeting.hpp"
#include "node/node_answer.hpp"
#include "node/remote_runner.hpp"

namespace fpt {

/// The side of the rank. One call at a time; others wait.
class GpuRunner : public RemoteRunner {
 public:
  /// All ranks of the communicator call this. What fails while the file is loaded, fails on all ranks of the GPU.
  /// FPT_ERR_ARGUMENT without a communicator, FPT_ERR_DEVICE without a device, and what Meeting throws.
  static std::unique_ptr<Runner> load(int32_t kind, const std::string& file, const Options& options, Args given,
                                      Args config);

  void reload() override;
  void save(const std::string& file) override;
  void checkpoint(const std::string& folder, int64_t keep, int64_t step) override;
  void run(const CallRequest& request) override;
  void set_stream(void* stream, bool waits) override;

 private:
  /// Where arrays of calls of one form lie from now on.
  struct Known {
    int64_t number;
    std::vector<int64_t> begins;
  };

  GpuRunner(const std::string& file, const Options& options);
  Reply ask(Request request, const CallName& call, Args inputs = {}, Args others = {},
            const char* others_name = "output") override;
  [[noreturn]] void lose_owner(const CallName& call);
  [[noreturn]] void refuse(std::string_view what) const override;

  const std::string device_;
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
