// SPDX-License-Identifier: MIT
/// What computes with tensors of torch, as torch_tensor sees it. Knows nothing of Python.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "values/tensor.hpp"
#include "values/torch_value.hpp"

namespace fpt {

/// Behind the constants of ftn_pytorch.h.
inline constexpr int32_t copy_operation = FPT_MATMUL + 1;

/// Its methods take the locks that they need, and start what they need. They may be called from any thread. Tensors
/// that they are given are its own: engine_of() says whose they are.
class FPT_API Engine {
 public:
  virtual ~Engine() = default;

  /// Call a function of torch by the name that Python has for it below torch: "sum", "linalg.norm", or "Tensor.to" for
  /// a method. Of several results that is the first; one that changes its tensor, "Tensor.add_", gives nothing, since
  /// the caller has that. FPT_ERR_PYTHON with the text of Python for an exception.
  /// @param given        tensors of any engine, as torch sees them; a text at "dtype" is the name of a type
  /// @param same_layout  of a tensor that comes out
  /// None where nothing was done, and Python is to be asked.
  virtual std::optional<TorchValue> call(std::string_view function, const TorchArguments& given, bool same_layout) = 0;
  /// What torch says of a tensor now.
  virtual TensorFacts describe(Tensor& tensor) = 0;
  /// The part of it without texts and lists, which each assignment and each call with a tensor asks for.
  virtual TensorFlags flags_of(Tensor& tensor) { return TensorFlags(describe(tensor)); }
  /// All of the memory behind a tensor.
  virtual Range memory_of(Tensor& tensor) = 0;
  /// That memory has changed: torch counts it.
  virtual void written(Tensor& tensor) = 0;

  /// A tensor of torch that shows memory. FPT_ERR_STRIDE, FPT_ERR_DEVICE for memory that torch cannot use.
  /// @param seen   axes in the order of torch
  /// @param owner  of the memory, let go with the tensor; null for memory of the caller
  virtual TensorPtr tensor_of(const Array& seen, std::shared_ptr<void> owner, bool same_layout) = 0;
  /// The tensor whose at::Tensor lies at an address: the same one, with its graph.
  virtual TensorPtr tensor_at(void* address, bool same_layout) = 0;
  /// Let `use` have the address of the at::Tensor of a tensor, as long as it runs. It is not called for a tensor of a
  /// class of its own, and for what is none of torch.
  virtual void with_address(Tensor& tensor, const std::function<void(void* address)>& use) = 0;
  /// The gradient that `tensor` has now; null without one.
  virtual TensorPtr gradient_of(Tensor& tensor) = 0;
  /// Number of the latest tensor on memory of the caller.
  virtual uint64_t last_on_memory() noexcept = 0;
  /// Whether a tensor lies in memory of the caller of which a tensor was made after the one of that number.
  virtual bool is_on_memory(Tensor& tensor, uint64_t after) = 0;
  /// What Python computes for an operator: a function of torch whose name is a number, since it is called most.
  /// @param operation    FPT_ADD to FPT_MATMUL, or copy_operation, which is "Tensor.copy_" of both and gives nothing
  /// @param left, right  tensors of this engine as torch sees them, one of them null for `scalar`
  /// FPT_ERR_PYTHON as for call().
  virtual TensorPtr operate(int32_t operation, Tensor* left, Tensor* right, const fpt_arg* scalar,
                            bool same_layout) = 0;
  /// Values as of fpt_tensor_let(), and Tensor.backward, as call() has them and with less on the way, for tensors of
  /// this engine in one order of axes. Null, or false, where nothing was done, and call() is to be asked.
  /// @param second     target of a loss, else null
  /// @param reduction  0 none, 1 mean, 2 sum
  virtual TensorPtr values(int32_t /*what*/, Tensor& /*first*/, Tensor* /*second*/, int32_t /*reduction*/) {
    return nullptr;
  }
  virtual bool backward(Tensor& /*tensor*/, Tensor* /*gradient*/, bool /*keeps_graph*/) { return false; }
  /// Whether gradients are computed on this thread, and to compute them, or none.
  virtual bool computes_gradients() = 0;
  virtual void compute_gradients(bool wanted) = 0;
  /// torch.autocast on this thread; empty texts for torch's defaults. What leave_scope() takes.
  virtual void* enter_autocast(const std::string& device, const std::string& dtype) = 0;
  /// A scope of this thread ends: `free` lets go of its tensors, then autocasts end in reverse. All under one lock;
  /// `free` alone, and false, where torch cannot be used any more.
  virtual bool leave_scope(const std::function<void()>& free, const std::vector<void*>& autocasts) = 0;
};

/// Call a function of torch: by the engine of the process or, what that cannot do, by Python. See Engine::call().
TorchValue call_torch(std::string_view function, const TorchArguments& given, bool same_layout);
/// The same for one that gives a tensor.
[[nodiscard]] TensorPtr call_for_tensor(std::string_view function, const TorchArguments& given, bool same_layout);
/// Tell the log, once for each function, that only Python can call it.
FPT_API void tell_of_python(std::string_view function);

/// The engine of the process: libtorch where that is possible, else Python. Opens it when it is first asked for.
FPT_API Engine& engine();
/// The engine that computes with a tensor: that of the process, or Python for an object of a class of its own.
Engine& engine_of(Tensor& tensor);
/// With both: Python where one of them is such an object.
Engine& engine_of(Tensor& one, Tensor& other);
/// libtorch as an engine, without Python and beside it. Null where the plug-in cannot be used, where the program has an
/// interpreter of its own, whose lock its calls may hold, and with FTN_PYTORCH_DIRECT_TENSORS=0.
FPT_API Engine* libtorch_engine();
/// The engine if there is one already, else null.
Engine* opened_engine() noexcept;
/// Python as an engine. Opened when it is first asked for: open_python_library().
FPT_API Engine& python_engine();
/// What torch says of a tensor now.
[[nodiscard]] TensorFacts facts_of(const TensorPtr& tensor);
/// Called while its library is opened.
FPT_API void provide_python_engine(Engine& made) noexcept;

}  // namespace fpt
