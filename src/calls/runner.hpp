// SPDX-License-Identifier: MIT
/// What runs a loaded file: the script path and the direct path behind one interface. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.hpp"
#include "calls/results.hpp"

namespace fpt {

/// Names of the functions that the library itself calls.
constexpr std::string_view forward_hook = "ftn_pytorch_forward", train_hook = "ftn_pytorch_train";

/// What a training step says.
struct Training {
  int32_t completed = 0;
  double loss = 0;
};

/// Memory of a parameter, with axes in the order of Python.
struct NamedArray {
  std::string name;
  Array array;
};

/// A loaded file. Methods may be called from any thread, in the floating-point environment of Python and torch
/// (guard.hpp); each takes the locks that it needs. Inputs that own a copy (torch_copy) are taken over, others are left
/// alone.
class Runner {
 public:
  virtual ~Runner() = default;

  /// False for what leaves no modes of torch behind, see base/last_script.hpp.
  bool is_script() const noexcept { return number_ != 0; }

  /// What runs the file: "script", "torchscript", "exported", "aoti", "onnx", "pickle", "direct".
  virtual const std::string& backend() const noexcept = 0;
  virtual bool has(const std::string& function) = 0;
  virtual void reload() = 0;
  virtual void save(const std::string& file) = 0;
  virtual void checkpoint(const std::string& folder, int64_t keep, int64_t step) = 0;
  /// The step of what was read, -1 if it has none.
  virtual int64_t restore(const std::string& file, bool fallback, int64_t step) = 0;

  /// Give another model the weights of a network of this one, which is a script. Empty name: its only network.
  virtual void publish(const std::string& network, Runner& target) = 0;
  /// Copy these to all parameters and buffers, host memory by name. FPT_ERR_SHAPE, and nothing is changed.
  virtual void assign(const std::vector<NamedArray>& values) = 0;

  /// Call the function that predicts. @param flags  FPT_USE_...
  virtual void forward(Args inputs, const Targets& targets, int32_t flags) = 0;
  /// The same for a torch_tensor_wrap; its one tensor.
  virtual TensorPtr forward_list(Args inputs, int32_t flags) = 0;
  /// Call any function by its name.
  virtual void call(std::string_view function, Args inputs, const Targets& targets) = 0;
  /// An object that a function of that name makes. FPT_ERR_HOOK where there is none.
  virtual std::unique_ptr<Runner> create(std::string_view function, Args inputs) = 0;
  /// @param is_list  the inputs are those of a torch_tensor_wrap
  virtual Training train(Args inputs, Args targets, bool is_list) = 0;

  /// Let calls work on a CUDA stream of the program, null for the default one.
  /// @param waits  a call with arrays on a device returns when its work is done
  virtual void set_stream(void* stream, bool waits) = 0;
  /// Until the work of calls is done.
  virtual void wait() = 0;

 protected:
  uint64_t number_ = 0;  ///< of a script
};

using RunnerTable = HandleTable<Runner, HandleKind::module>;

RunnerTable& runners();

/// A runner in use: freeing or replacing it meanwhile takes effect when the last call has ended.
class RunnerUse : public RunnerTable::Use {
 public:
  explicit RunnerUse(int64_t handle, std::string_view call = {}) : Use(runners(), handle, call) {}
};

}  // namespace fpt
