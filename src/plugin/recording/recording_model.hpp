// SPDX-License-Identifier: MIT
/// A saved recording: functions of a script, run and trained without it.
#pragma once

#include <map>
#include <optional>

#include "plugin/recording/checkpoint_folder.hpp"
#include "plugin/recording/recording_call.hpp"

namespace fpt::direct {

/// Calls of functions that only compute run side by side; everything that changes the state has it alone.
class RecordingModel : public Model {
 public:
  explicit RecordingModel(Settings settings);

  void reload() override;
  void save(const std::string& file) override;
  int64_t restore(const std::string& file, bool fallback, std::optional<int64_t> step) override;
  void checkpoint(const std::string& folder, int64_t keep, std::optional<int64_t> step) override;
  void assign(std::vector<NamedTensor> values) override;
  bool has(std::string_view name) override;
  void call(std::string_view name, Inputs inputs, int32_t flags, fpt_direct_answer& answer) override;
  void parameters(fpt_direct_answer& answer) override;
  void create_optimizer(const fpt_direct_optimizer& settings) override;
  TrainedStep train(Inputs inputs, Inputs targets) override;

 private:
  /// What a file holds, ready to be used.
  struct Loaded {
    RecordingState state;
    std::optional<CallSettings> settings;
    std::map<std::string, RecordedFunction, std::less<>> functions;
    std::map<std::string, at::Tensor> arrays;                     ///< those that tapes use
    std::set<std::size_t> numbers;                                ///< places of those that tapes use
    std::vector<std::pair<std::string, std::string>> parameters;  ///< names, and those of the arrays
    explicit Loaded(RecordingState taken) : state(std::move(taken)) {}
  };

  std::unique_ptr<Loaded> read() const;
  static void read_parameters(const c10::IValue& recording, Loaded& loaded);
  static void note_uses(const SavedTape& tape, Loaded& loaded);
  RecordedFunction& function(std::string_view name) const;
  void run(RecordedFunction& function, Inputs inputs, fpt_direct_answer& answer);
  void change_number(Inputs inputs);
  void tell_number(Inputs inputs, fpt_direct_answer& answer) const;
  std::pair<int64_t, ArchiveContent> newest(CheckpointFolder& folder, bool fallback, std::optional<int64_t> step) const;

  Settings settings_;
  std::shared_ptr<MpiSum> sum_;  ///< null without a communicator
  std::unique_ptr<Loaded> loaded_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::unique_ptr<CheckpointFolder>> folders_;
};

}  // namespace fpt::direct
