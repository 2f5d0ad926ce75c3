// SPDX-License-Identifier: MIT
/// What computes with tensors of torch, as torch_tensor sees it. Knows nothing of Python.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "values/tensor.hpp"

namespace fpt {

/// Its methods take the locks that they need, and start what they need. They may be called from any thread. Tensors
/// that they are given are its own: engine_of() says whose they are.
class Engine {
 public:
  virtual ~Engine() = default;

  /// A tensor of torch that shows memory. FPT_ERR_STRIDE, FPT_ERR_DEVICE for memory that torch cannot use.
  /// @param seen   axes in the order of torch
  /// @param owner  of the memory, let go with the tensor; null for memory of the caller
  virtual TensorPtr tensor_of(const Array& seen, std::shared_ptr<void> owner, bool same_layout) = 0;
  /// The tensor whose at::Tensor lies at an address: the same one, with its graph.
  virtual TensorPtr tensor_at(void* address, bool same_layout) = 0;
  /// Let `use` have the address of the at::Tensor of a tensor, as long as it runs. It is not called for a tensor of a
  /// class of its own, and for what is none of torch.
  virtual void with_address(Tensor& tensor, const std::function<void(void* address)>& use) = 0;
  /// Whatever gradient `tensor` has when this is used.
  virtual TensorPtr gradient_of(TensorPtr tensor) = 0;
  /// Number of the latest tensor on memory of the caller.
  virtual uint64_t last_on_memory() noexcept = 0;
  /// Whether a tensor lies in memory of the caller of which a tensor was made after the one of that number.
  virtual bool is_on_memory(Tensor& tensor, uint64_t after) = 0;
  /// An alias of a tensor of torch that keeps the memory as it is now; the tensor itself where it is none.
  virtual TensorPtr holding_memory(const TensorPtr& tensor) = 0;
  /// The result of an operator, with the axes of its operands.
  /// @param operation    FPT_ADD, ...
  /// @param left, right  a tensor, or null for `scalar`
  /// FPT_ERR_PYTHON with the shapes of both operands.
  virtual TensorPtr operate(int32_t operation, const TensorPtr& left, const TensorPtr& right,
                            const fpt_arg* scalar) = 0;
  /// Write values into a tensor that is memory of the caller. FPT_ERR_SHAPE, FPT_ERR_DTYPE, FPT_ERR_PYTHON.
  virtual void write(Tensor& target, Tensor& value) = 0;

  /// FPT_ERR_ARGUMENT for an array of NumPy, and for a view of a tensor with a graph, whose gradient would lack a part.
  virtual void require_writable(Tensor& target) = 0;
  /// The core has written into the memory of a tensor: torch counts the change, and the graph of the values that it had
  /// ends.
  virtual void written(Tensor& target) noexcept = 0;

  /// Whether torch would record what is computed with a tensor: it requires gradients, and they are on for this thread.
  virtual bool records_gradients(Tensor& tensor) = 0;
  /// Compute gradients on this thread, or none; what it was before.
  virtual bool exchange_gradients(bool wanted) = 0;
  /// torch.autocast on this thread; empty texts for torch's defaults. What leave_scope() takes.
  virtual void* enter_autocast(const std::string& device, const std::string& dtype) = 0;
  /// A scope of this thread ends: `free` lets go of its tensors, then autocasts end in reverse, then gradients are what
  /// they were. All under one lock; `free` alone where torch cannot be used any more.
  virtual void leave_scope(const std::function<void()>& free, const std::vector<void*>& autocasts,
                           std::optional<bool> gradients) = 0;
};

/// The engine of the process: libtorch where that is possible, else Python. Opens it when it is first asked for.
Engine& engine();
/// The engine that computes with a tensor: that of the process, or Python for an object of a class of its own.
Engine& engine_of(Tensor& tensor);
/// With both: Python where one of them is such an object.
Engine& engine_of(Tensor& one, Tensor& other);
/// libtorch as an engine, without Python and beside it. Null where the plug-in cannot be used, where the program has an
/// interpreter of its own, whose lock its calls may hold, and with FTN_PYTORCH_DIRECT_TENSORS=0.
Engine* libtorch_engine();
/// The engine if there is one already, else null.
Engine* opened_engine() noexcept;
/// Python as an engine. Opened when it is first asked for: open_python_library().
Engine& python_engine();
/// Called while its library is opened.
void provide_python_engine(Engine& made) noexcept;

}  // namespace fpt
