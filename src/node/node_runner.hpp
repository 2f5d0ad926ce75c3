// SPDX-License-Identifier: MIT
/// A file that one process loads for all ranks of a node, load(..., per="node"): each rank has a worker that was forked
/// from that process, and what is loaded is the same memory in all of them. Knows nothing of Python.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/mpi_sum.hpp"
#include "node/channel.hpp"
#include "node/meeting.hpp"
#include "node/remote_runner.hpp"

namespace fpt {

/// The side of the rank. One call at a time; others wait.
class NodeRunner : public RemoteRunner {
 public:
  /// All ranks of the communicator call this. What fails while the file is loaded, fails on all ranks of the node.
  /// FPT_ERR_ARGUMENT without a communicator, FPT_ERR_DEVICE for a device, and what Meeting throws.
  static std::unique_ptr<Runner> load(int32_t kind, const std::string& file, const Options& options, Args given,
                                      Args config);
  ~NodeRunner() override;

  /// Where the worker has ended, another one is made first, from what was loaded.
  void reload() override;
  void save(const std::string& file) override;
  void checkpoint(const std::string& folder, int64_t keep, int64_t step) override;
  void set_stream(void* stream, bool waits) override;

 private:
  NodeRunner(const std::string& file, const Options& options);
  void start_worker();
  Reply ask(Request request, const CallName& call, Args inputs = {}, Args others = {},
            const char* others_name = "output") override;
  /// Of the worker. @param end  of the request
  Reply answer(int64_t end, const CallName& call);
  void meet_ranks(SegmentReader& reader);
  [[noreturn]] void refuse(std::string_view what) const override;
  [[noreturn]] void lose_node() const;
  [[noreturn]] void lose_worker(const CallName& call);

  std::shared_ptr<MpiSum> ranks_;
  std::unique_ptr<Meeting> node_;
  std::vector<char> load_;  // the request, for another worker
  std::mutex mutex_;
  std::unique_ptr<Channel> worker_;
  std::string end_;  // how it has ended
};

}  // namespace fpt
