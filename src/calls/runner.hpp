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

  void tell(int32_t* to_completed, double* to_loss) const noexcept {
    *to_completed = completed;
    *to_loss = loss;
  }
};

class Runner;

/// One call of a function, whichever way the program asks for it.
struct CallRequest {
  std::string_view function;             ///< forward_hook, train_hook, or any other
  Args inputs{nullptr, 0};               ///< as arguments, or as one list
  Targets targets = {};                  ///< where results go, unless one of the last two says so
  int32_t flags = 0;                     ///< FPT_USE_..., of forward_hook
  bool is_list = false;                  ///< the inputs are those of a torch_tensor_wrap
  Args goals{nullptr, 0};                ///< arguments that follow those of a training step
  Training* training = nullptr;          ///< the function is a training step, and says this
  std::unique_ptr<Runner>* object = {};  ///< the function makes an object

  /// The same with other inputs.
  CallRequest with(Args others) const {
    CallRequest changed = *this;
    changed.inputs = others;
    return changed;
  }
};

/// Memory of a parameter, with axes in the order of Python.
struct NamedArray {
  std::string name;
  Array array;
};

/// A loaded file. Methods may be called from any thread, in the floating-point environment of Python and torch
/// (guard.hpp); each takes the locks that it needs. Inputs that own a copy (torch_copy) are taken over, others are left
/// alone.
class FPT_API Runner {
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

  /// Call a function. FPT_ERR_HOOK where there is none of that name. What it gives counts if nothing is thrown.
  virtual void run(const CallRequest& request) = 0;

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

/// The object that a function makes.
inline std::unique_ptr<Runner> create(Runner& maker, std::string_view function, Args inputs) {
  std::unique_ptr<Runner> made;
  CallRequest request{function, inputs};
  request.object = &made;
  maker.run(request);
  return made;
}

/// A runner in use: freeing or replacing it meanwhile takes effect when the last call has ended.
class RunnerUse : public RunnerTable::Use {
 public:
  explicit RunnerUse(int64_t handle, std::string_view call = {}) : Use(runners(), handle, call) {}
};

}  // namespace fpt
