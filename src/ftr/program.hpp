// SPDX-License-Identifier: MIT
/// A file of recorded functions, ready to predict and to train:
///
///     ftr::Program program("closure.ftr");
///     c10::IValue loss = program.run("ftn_pytorch_train", {{x}, {target}});
///     program.state().set_number("lr", 1e-4);
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ftr/call.hpp"
#include "ftr/state_text.hpp"

namespace ftr {

/// Averages over ranks: the arguments of ftn_pytorch::all_reduce_mean on the stack become its result.
using Average = std::function<void(c10::Stack&)>;

struct Options {
  std::optional<at::Device> device;  ///< where all tensors of the file live; none for the host
  bool starts_generator = true;      ///< torch's generator goes on from its state in the file
  /// What averages in a function; where nothing is given, a call that averages fails.
  std::function<Average(const std::string& function)> average_of;
};

/// What is said of a file whose functions cannot be run.
inline std::string unrunnable(const std::string& file, const std::string& reason) {
  return concat(file, " is no recording that can be run: ", reason);
}

/// The state and everything that runs on it. Nothing here takes a lock: a call of a function that writes, and all that
/// changes the state, needs it alone.
class Program {
 public:
  /// Why::file, ::corrupt or ::format with what is wrong; no operator has run then.
  explicit Program(const std::string& file, const Options& options = {});

  /// Call a function. Why::function where there is none of that name; what Call and operators throw.
  c10::IValue run(std::string_view name, const std::vector<Given>& given);

  /// Why::function with the names there are.
  Function& function(std::string_view name);
  bool has(std::string_view name) const { return functions_.find(name) != functions_.end(); }
  std::map<std::string, Function, std::less<>>& functions() noexcept { return functions_; }
  const std::map<std::string, Function, std::less<>>& functions() const noexcept { return functions_; }

  /// Arrays and numbers of optimizers, by name.
  State& state() noexcept { return state_; }
  const State& state() const noexcept { return state_; }
  const CallSettings& settings() const noexcept { return *settings_; }
  /// Names of the parameters, and of their arrays; none in a file of an earlier version.
  const std::vector<std::pair<std::string, std::string>>& parameters() const noexcept { return parameters_; }

  /// Go on from what another file holds, a recording or a checkpoint; see State::restore.
  void restore(Content content, const std::string& path);

 private:
  void read(const Options& options);
  void read_parameters(const c10::IValue& recording);
  void note_reads(const c10::IValue& recording);
  void require_as_read(const Content& content, const std::string& path) const;
  void note_uses(const SavedTape& tape);

  /// A value of the state that recordings took as it was.
  struct Read {
    std::string what;
    TextWay way;
    bool may_lack = false;            ///< an earlier torch did not write it, and it is what that computed with
    std::optional<std::string> text;  ///< none where nothing has changed it since the load of the script
  };

  std::string file_;
  State state_;
  std::optional<CallSettings> settings_;
  std::map<std::string, Function, std::less<>> functions_;
  std::map<std::string, at::Tensor> arrays_;  ///< those that tapes use
  std::set<std::size_t> numbers_;             ///< places of those that tapes use
  std::vector<std::pair<std::string, std::string>> parameters_;
  std::vector<Read> reads_;
};

}  // namespace ftr
