// SPDX-License-Identifier: MIT
/// Files that the Python package runs: scripts, and saved models without the direct path.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/runner.hpp"
#include "script/function.hpp"
#include "script/turns.hpp"

namespace fpt {

class ScriptRunner : public Runner {
 public:
  /// Starts the interpreter if it does not run.
  /// @param kind    what is expected, see fpt_module_load()
  /// @param given   the options as parse_options() has read them
  /// @param config  named values, handed to ftn_pytorch_setup
  static std::unique_ptr<Runner> load(int32_t kind, const std::string& file, const Options& options, Args given,
                                      Args config);
  /// The functions of torch. Starts the interpreter if it does not run.
  static std::unique_ptr<Runner> torch_functions(bool same_layout);
  ~ScriptRunner() override;

  const std::string& backend() const noexcept override { return script_.backend; }
  bool has(const std::string& function) override;
  void reload() override;
  void save(const std::string& file) override;
  void checkpoint(const std::string& folder, int64_t keep, int64_t step) override;
  int64_t restore(const std::string& file, bool fallback, int64_t step) override;
  void publish(const std::string& network, Runner& target) override;
  void assign(const std::vector<NamedArray>& values) override;
  void run(const CallRequest& request) override;
  void set_stream(void* stream, bool waits) override;
  void wait() override;

 private:
  class InCall;
  class Alone;

  ScriptRunner() = default;
  void read_attributes();
  /// What a script leaves behind holds itself together: give it back now, if it is much.
  void collect_garbage() const noexcept;
  std::string attribute(const char* name) const;
  /// The function of that name, bound at its first use, and anew where the script has given the name another one.
  /// FPT_ERR_HOOK if there is none.
  Function& function(std::string_view name, int32_t flags);
  Function& bind(std::string_view name, int32_t flags);
  void hand_out(const Function& function, PyObject* result, Args outputs, const Targets& targets);
  /// A runner for an object of the Python package that has tensors as arguments.
  static std::unique_ptr<ScriptRunner> of_object(Ref runner, const Options& options);

  Script script_;
  std::vector<std::unique_ptr<Function>> functions_;
  Function* latest_ = nullptr;                      // of functions_, that was looked up last
  std::vector<std::unique_ptr<Function>> retired_;  // replaced by a reload while calls were running
  bool has_garbage_ = false;                        // a reload has left some
  long long memory_before_ = 0;                     // in use before the load, in bytes
  uint64_t reloads_ = 0;
  Turns turns_;
};

}  // namespace fpt
