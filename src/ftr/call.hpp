// SPDX-License-Identifier: MIT
/// A function of a file, and one call of it: arguments, the recording that takes them, and what comes out.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ftr/call_settings.hpp"
#include "ftr/refusal.hpp"
#include "ftr/saved_tape.hpp"
#include "ftr/state.hpp"

namespace ftr {

/// A tensor, a number, a text or nothing, with a name where it is given by that.
struct Given {
  c10::IValue value;
  std::string_view name = {};
  bool is_read_only = false;  ///< what is written there, is written through another one of the same memory
};

/// What a run yields, in the order of the tape.
struct Outcome {
  std::vector<at::Tensor> results, gradients;
};

/// What may run a recording in place of its operators: code of a compiler, a graph of a device.
class Runner {
 public:
  virtual ~Runner() = default;
  /// None, and nothing has happened then, for a call that the operators have to make.
  /// @param frame  has the inputs in its slots, with the strides that the recording wants
  /// @param numbers  those of the run  @param arrays  of the state, gradients of the last run among them
  virtual std::optional<Outcome> run(const SavedTape& tape, Frame& frame, std::vector<double>& numbers, int64_t batch,
                                     const std::map<std::string, at::Tensor>& arrays) = 0;
};

/// A recording, and frames that are not in use.
struct Recording {
  SavedTape tape;
  std::unique_ptr<Runner> runner;  ///< null: its operators run
  std::mutex mutex;
  std::vector<Frame> idle;
  explicit Recording(SavedTape of) : tape(std::move(of)) {}
};

struct Function {
  std::string label;  ///< for texts: its name, or what the user of this reader calls it
  std::vector<std::unique_ptr<Recording>> recordings;
  bool writes = false;  ///< a call changes the state, so it needs that alone
};

/// For one thread. Calls of functions that write nothing may run side by side.
class Call {
 public:
  explicit Call(Function& function) : function_(function) {}

  void add(Given given) { given_.push_back(std::move(given)); }

  /// Find the recording that takes these arguments.
  ///
  /// Why::signature, ::dtype, ::shape or ::argument where none does, Why::state where a step of an optimizer would go
  /// another way or gradients are not there as they were.
  void choose(const State& state);

  /// After that: the recording, and places of the arguments that it changes.
  const Recording& recording() const noexcept { return *recording_; }
  std::vector<std::size_t> written() const;
  const Given& given(std::size_t place) const { return given_[place]; }

  /// Then run it under the settings of its file; gradients become arrays of the state. What an operator throws.
  void run(State& state, const CallSettings& settings);

  /// What comes out; containers with names as dicts or named tuples.
  c10::IValue result() const;
  const std::vector<at::Tensor>& tensors() const noexcept { return tensors_; }

  /// Let the arguments go.
  void forget();

 private:
  bool set_order(const SavedTape& tape);
  std::optional<Why> why_not(const SavedTape& tape, std::size_t place);
  bool is_made_for(const SavedTape& tape, bool of_all_axes) const;
  const at::Tensor& tensor(std::size_t place) const { return given_[order_[place]].value.toTensor(); }
  [[noreturn]] void refuse(Why why) const;
  at::DimVector strides_of(const SavedInput& input) const;
  void require_apart(std::size_t place) const;
  void set_input(Frame& frame, const SavedInput& input, std::size_t place);
  void give_back(std::size_t place);

  Function& function_;
  c10::SmallVector<Given, 8> given_;
  c10::SmallVector<std::size_t, 8> order_;  ///< of the arguments, as the recording has them
  std::vector<std::pair<std::size_t, at::Tensor>> copies_;
  std::vector<double> numbers_;
  std::vector<at::Tensor> tensors_;
  Recording* recording_ = nullptr;
  int64_t batch_ = 0;
};

/// A constant of a result, or what is built of them and tensors.
[[nodiscard]] c10::IValue filled_result(const SavedNode& node, const std::vector<at::Tensor>& tensors);

/// What is in the slots of a tape after a run.
[[nodiscard]] Outcome outcome_in(const Frame& frame, const SavedTape& tape);

}  // namespace ftr
