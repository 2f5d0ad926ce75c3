// SPDX-License-Identifier: MIT
/// Saved models behind the handles of the program.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/cuda_context.hpp"
#include "calls/options.hpp"
#include "calls/runner.hpp"
#include "direct/archive.hpp"
#include "plugin/direct_answer.hpp"
#include "plugin/direct_arguments.hpp"

namespace fpt::direct {

class DirectRunner : public Runner {
 public:
  /// @param file  absolute path of a saved model
  /// FPT_ERR_ARGUMENT for options and a config that a saved model cannot have.
  static std::unique_ptr<Runner> load(const std::string& file, ModelKind kind, const Options& options, Args config);

  const std::string& backend() const noexcept override { return backend_; }
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
  class StreamUse;

  DirectRunner(const std::string& file, ModelKind kind, const Options& options);
  /// Run a method, forward if it has no name, and hand its results out.
  void run_method(std::string_view method, const CallRequest& request, Graphs graphs);
  Training train(Args inputs, Args goals);
  std::unique_ptr<Runner> make_optimizer(Args inputs);
  /// What becomes of graphs that inputs have. @param hands_tensors  its results are tensors of the program
  Graphs graphs_of_call(bool hands_tensors, int32_t flags) const noexcept;
  /// Its parameters, which may change outside of it from now on.
  std::shared_ptr<DirectAnswer> parameters();
  /// What set_stream() has chosen.
  ChosenStream stream();
  CallName name_of(std::string_view function) const noexcept { return {function, settings_.name}; }

  /// How results of calls are read.
  ResultOptions reading() const noexcept { return {settings_.same_layout, settings_.cast, /*brings_to_host=*/true}; }

  const ModelKind kind_;
  Settings settings_;
  const std::string backend_ = "direct";
  std::unique_ptr<Model> model_;
  std::atomic<bool> parameters_are_out_{false};  // so results belong to their graph
  std::atomic<bool> has_stream_{false};
  std::mutex stream_mutex_;
  ChosenStream stream_;
};

}  // namespace fpt::direct
