// SPDX-License-Identifier: MIT
/// A saved recording: functions of a script, run and trained without it.
#pragma once

#include <c10/util/FunctionRef.h>

#include <map>
#include <optional>

#include "ftr/program.hpp"
#include "plugin/recording/checkpoint_folder.hpp"
#include "plugin/recording/recording_call.hpp"
#include "shared/code.hpp"
#include "shared/saved_module.hpp"

namespace fpt::direct {

/// Calls of functions that only compute run side by side; everything that changes the state has it alone.
class RecordingModel : public Model, public recording::SavedModule {
 public:
  /// @param average  what averages over ranks; none: MPI of the communicator in the settings
  /// @param starts_generator  torch's generator goes on from its state in the file
  explicit RecordingModel(Settings settings, recording::Average average = {}, bool starts_generator = true);

  Rank own_rank() const override;
  void reload() override;
  void save(const std::string& file) override;
  int64_t restore(const std::string& file, bool fallback, std::optional<int64_t> step) override;
  void checkpoint(const std::string& folder, int64_t keep, std::optional<int64_t> step) override;
  void assign(std::vector<NamedTensor> values) override;
  bool has(std::string_view name) override;
  void call(std::string_view name, Inputs inputs, int32_t flags, DirectAnswer& answer) override;
  void parameters(DirectAnswer& answer) override;
  void create_optimizer(const OptimizerSettings& settings) override;
  Training train(Inputs inputs, Inputs targets) override;

  std::vector<recording::SavedFunction> functions() const override;
  c10::IValue run(const std::string& name, const recording::SavedArguments& given) override;
  std::vector<std::size_t> written(const std::string& name, const recording::SavedArguments& given) override;
  std::vector<std::pair<std::string, std::string>> parameters() const override;
  std::map<std::string, at::Tensor> arrays() const override;
  std::vector<std::pair<std::string, double>> numbers() const override;
  double number(const std::string& name) const override;
  void set_number(const std::string& name, double value) override;
  std::string told(const char* name) const override;
  void write(const std::string& path, bool with_tapes, std::optional<int64_t> step, int rank, int ranks) const override;
  recording::SavedContent read(const std::string& path) const override;
  void go_on_from(const recording::SavedContent& content, const std::string& path) override;

 private:
  /// What a file holds, and what calls of its functions need.
  struct Loaded {
    ftr::Program program;
    std::map<std::string, RecordedFunction, std::less<>> functions;
  };

  std::unique_ptr<Loaded> read() const;
  std::unique_ptr<recording::Code> code_of(const ftr::SavedCode& saved) const;
  void add_runners(ftr::Program& program) const;
  RecordedFunction& function(std::string_view name) const;
  /// Call `body` with a function, alone where that writes. What it throws becomes a failure of the function.
  void with(std::string_view name, c10::function_ref<void(RecordedFunction&)> body);
  void run(RecordedFunction& function, Inputs inputs, DirectAnswer& answer);
  void change_number(Inputs inputs);
  void tell_number(Inputs inputs, DirectAnswer& answer) const;
  void go_on_from(ftr::Content content, const std::string& path);
  std::pair<int64_t, ftr::Content> newest(CheckpointFolder& folder, bool fallback, std::optional<int64_t> step) const;

  Settings settings_;
  std::shared_ptr<MpiSum> sum_;  ///< null without a communicator
  recording::Average average_;   ///< in place of it
  bool starts_generator_;
  std::unique_ptr<Loaded> loaded_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::unique_ptr<CheckpointFolder>> folders_;
};

}  // namespace fpt::direct
