// SPDX-License-Identifier: MIT
/// The side of a rank of a file that another process of its node has loaded: how it loads, asks, is answered, and sees
/// that the process has ended. With per="node" that process has forked a worker for the rank, and what is loaded is the
/// same memory in all workers; with per="gpu" it makes the calls of all ranks as one. Knows nothing of Python.
#pragma once

#include <cstdint>
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

/// One call at a time; others wait.
class RemoteRunner : public Runner {
 public:
  /// All ranks of the communicator call this. What fails while the file is loaded, fails on all ranks that share the
  /// process. FPT_ERR_ARGUMENT without a communicator, FPT_ERR_DEVICE for a device that does not fit, and what Meeting
  /// throws.
  RemoteRunner(int32_t kind, const std::string& file, const Options& options, Args given, Args config);
  ~RemoteRunner() override;

  const std::string& backend() const noexcept override { return backend_; }
  bool has(const std::string& function) override;
  /// Where the worker of the rank has ended, another one is made first, from what was loaded.
  void reload() override;
  void save(const std::string& file) override;
  void checkpoint(const std::string& folder, int64_t keep, int64_t step) override;
  int64_t restore(const std::string& file, bool fallback, int64_t step) override;
  void publish(const std::string&, Runner&) override { refuse("its networks cannot be published from there"); }
  void assign(const std::vector<NamedArray>&) override { refuse("no weights are published to it"); }
  void run(const CallRequest& wanted) override;
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

  void start();
  /// Ask the other process, and wait for its answer. Arrays that it may write are written when this returns.
  /// @param others_name  what the second list is in messages: "target"
  Reply ask(Request request, const CallName& call, Args inputs = {}, Args others = {},
            const char* others_name = "output");
  Reply answer(int64_t end, const CallName& call);
  void tell();
  [[nodiscard]] bool wait_for_it();
  void meet_ranks(SegmentReader& reader);
  [[nodiscard]] std::string place_of(const std::string& file) const;
  /// @param what  is impossible from here
  [[noreturn]] void refuse(std::string_view what) const;
  [[noreturn]] void lose_loader() const;
  [[noreturn]] void lose(const CallName& call);
  CallName name_of(std::string_view function) const noexcept { return {function, name_}; }

  const Sharing sharing_;
  const bool is_shared_;  // by ranks of a GPU, whose calls are made as one
  const std::string file_, name_;
  std::string backend_;
  const ResultOptions reading_;
  MpiSum ranks_;
  std::unique_ptr<Meeting> node_;
  std::vector<char> load_;  // the request, for another worker
  std::mutex mutex_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Board> board_;  // where is_shared_, after the load
  int64_t number_ = 0;            // of this rank there
  std::map<std::string, Known> places_;
  std::string end_;  // of the process that computes
};

}  // namespace fpt
