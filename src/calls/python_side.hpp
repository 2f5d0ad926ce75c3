// SPDX-License-Identifier: MIT
/// What the Python side does for the rest of the library. Knows nothing of Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calls/options.hpp"
#include "calls/runner.hpp"
#include "torch/torch_location.hpp"

namespace fpt {

/// What fpt_diagnose() says.
struct Diagnosis {
  fpt_status status = FPT_OK;
  std::string reason;  ///< what is wrong
  std::string lines;
};

/// What the Python side cannot find out by itself.
struct DiagnosedFacts {
  std::string floating_point, core, direct_torch, direct_obstacle;
  int openmp_threads;
};

/// Its methods start the interpreter where they need it and it does not run, and take its lock.
class FPT_API PythonSide {
 public:
  virtual ~PythonSide() = default;

  /// Start the interpreter or adopt the one that runs; does nothing once that has succeeded. See fpt_init().
  virtual void start(const std::string& python) = 0;
  virtual bool is_started() const noexcept = 0;
  /// See fpt_keep_lock().
  virtual void keep_lock(bool keeps) = 0;
  /// Whether it was started, and is no interpreter of the program.
  virtual bool is_own() const noexcept = 0;
  virtual void set_threads(int64_t n) = 0;
  /// Tell all scripts: values that have names.
  virtual void set_host(Args values) = 0;
  virtual Diagnosis diagnose(const DiagnosedFacts& facts) = 0;
  /// The torch that the running interpreter has imported or would import; asked without importing it.
  virtual TorchLocation torch() = 0;

  /// Load a file that Python runs: a script, or a saved model without the direct path.
  /// @param kind    what is expected, see fpt_module_load()
  /// @param given   the options as parse_options() has read them
  /// @param config  named values, handed to ftn_pytorch_setup
  virtual std::unique_ptr<Runner> load(int32_t kind, const std::string& file, const Options& options, Args given,
                                       Args config) = 0;
  /// Ranks of a node load together in this process: scripts get their rank when they have been forked.
  virtual void join_node(int32_t communicator, int32_t size) = 0;
  /// This process computes for the ranks of a GPU, whose arrays lie in memory with locked pages.
  virtual void serve_ranks() = 0;
  /// Before the first fork of a process that has loaded for others. FPT_ERR_ARGUMENT where what is loaded cannot be
  /// forked.
  virtual void prepare_fork() = 0;
  /// fork() as Python wants it; what that returns.
  virtual int fork_process() = 0;
  /// In the process that was forked for a rank, whose environment is that of the rank.
  /// @param threads  that the program has asked for, 0 if none
  /// @param parent   process that has started the rank
  virtual void become_worker(const std::vector<std::string>& variables, int32_t rank, int64_t threads,
                             int64_t parent) = 0;

  /// The functions of torch.
  virtual std::unique_ptr<Runner> torch_functions(bool same_layout) = 0;
  /// A tensor of torch, or memory on a device, as the result of a call.
  virtual std::shared_ptr<Answer> answer_of(Tensor& tensor, const CallName& call) = 0;
  /// Throw what Python has raised on this thread and nobody has taken, if there is such an exception. torch's engine of
  /// gradients leaves it there, and what is called next in Python would fail with it.
  virtual void throw_raised() = 0;
};

/// The Python side; opened when it is first asked for: open_python_library().
FPT_API PythonSide& python_side();
/// Whether it has been opened and the interpreter has been started or adopted.
FPT_API bool python_is_started() noexcept;
/// Whether Python runs that this library has not started: the program is a Python program, or has an interpreter.
bool program_runs_python() noexcept;
/// The Python side of the process, which lives as long; called while its library is opened.
FPT_API void provide_python_side(PythonSide& made) noexcept;

}  // namespace fpt
