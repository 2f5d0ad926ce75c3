// SPDX-License-Identifier: MIT
/// What ranks do with a file that runs in another process of their node, whichever that is. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/options.hpp"
#include "calls/runner.hpp"
#include "node/node_answer.hpp"
#include "node/node_messages.hpp"

namespace fpt {

class RemoteRunner : public Runner {
 public:
  const std::string& backend() const noexcept override { return backend_; }
  bool has(const std::string& function) override;
  int64_t restore(const std::string& file, bool fallback, int64_t step) override;
  void publish(const std::string&, Runner&) override { refuse("its networks cannot be published from there"); }
  void assign(const std::vector<NamedArray>&) override { refuse("no weights are published to it"); }
  void run(const CallRequest& wanted) override;
  void wait() override {}

 protected:
  struct Reply {
    Outcome outcome;
    std::shared_ptr<NodeAnswer> results;
  };

  /// @param per  which process that is: "node"
  RemoteRunner(const std::string& file, const Options& options, const char* per);

  /// Ask the other process, and wait for its answer. Arrays that it may write are written when this returns.
  /// @param others_name  what the second list is in messages: "target"
  virtual Reply ask(Request request, const CallName& call, Args inputs = {}, Args others = {},
                    const char* others_name = "output") = 0;
  /// @param what  what is impossible from here
  [[noreturn]] virtual void refuse(std::string_view what) const = 0;
  /// The answer of a call, after its warnings have been passed on; throws what has failed.
  static Reply read_reply(SegmentReader& reader);
  /// Options and config of a load, in the memory that is shared.
  /// @return number of what is loaded, the same on ranks that load the same
  std::uint64_t send_load(int32_t kind, Args options, Args config, SegmentWriter& writer, const Segment& memory) const;
  /// Options that the other process gets as they are.
  static std::vector<fpt_arg> without(Args given, std::initializer_list<const char*> names);
  CallName name_of(std::string_view function) const noexcept { return {function, name_}; }

  const std::string file_, name_, per_;
  std::string backend_;
  const ResultOptions reading_;
};

}  // namespace fpt
