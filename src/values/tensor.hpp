// SPDX-License-Identifier: MIT
/// The objects behind torch_tensor. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "base/error.hpp"
#include "base/handle.hpp"

namespace fpt {

/// Axis order by its number in the interface: 0 reversed, 1 that of Fortran. FPT_ERR_ARGUMENT.
bool is_same_layout(int32_t layout);

class Tensor;
using TensorPtr = std::shared_ptr<Tensor>;

/// What a torch_tensor stands for: memory of the caller or a result, a tensor of torch, the gradient of one, or an
/// operation that failed. Handles share it: assigning one torch_tensor to another copies nothing.
///
/// torch may change shape, type and memory of a tensor at any time, so nothing that it said is kept: each question is
/// answered anew, by value. Methods may be called from any thread, and take the locks that they need.
class FPT_API Tensor {
 public:
  /// Argument, or the tensor that an argument refers to. Takes a torch_copy over; a scalar by value becomes memory.
  /// @param same_layout  axis order in which torch sees the memory
  static TensorPtr of_arg(const fpt_arg& arg, bool same_layout = false);
  /// Memory of a result, with its axes in the order of the script, as long as `owner` lives.
  static TensorPtr of_memory(const Array& seen, std::shared_ptr<void> owner, bool same_layout);
  /// Using it fails with `error`.
  static TensorPtr of_failure(const Error& error);
  /// Whatever gradient `source` has when this is used.
  static TensorPtr of_gradient(TensorPtr source);

  virtual ~Tensor() = default;
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  /// What an operation failed with whose result this is, else null.
  virtual const Error* failure() const noexcept { return nullptr; }
  /// For a gradient the tensor that it is now, else null. FPT_ERR_ARGUMENT where there is none.
  virtual TensorPtr now() { return nullptr; }
  /// Memory of the caller, which torch has not replaced.
  virtual bool is_of_caller() { return false; }
  /// Memory of which no tensor of torch was made: needs no torch.
  virtual bool is_plain_memory() const noexcept { return false; }
  /// A tensor of torch that Python may never have seen.
  virtual bool is_of_libtorch() const noexcept { return false; }
  bool same_layout() const noexcept { return same_layout_; }

  /// Memory as it is now, axes in the order of Fortran. It is there until torch gives the tensor other memory, and not
  /// longer than the tensor. FPT_ERR_RANK for more than FPT_MAX_RANK axes.
  virtual Array array() = 0;
  /// Of plain memory; null for memory of the caller, and for all else.
  virtual std::shared_ptr<void> owner() const { return nullptr; }
  /// The tensor described as memory, with the name of an argument that refers to it.
  fpt_arg described_as(const fpt_arg& reference);

  /// The tensor of torch that this is, or that is made of its memory if need be: by the engine (engine.hpp), and the
  /// same as long as this lives.
  virtual Tensor& in_torch() = 0;
  /// The same as an object of Python: of object_tensor.hpp.
  virtual Tensor& in_python() { return in_torch().in_python(); }

 protected:
  explicit Tensor(bool same_layout) noexcept : same_layout_(same_layout) {}
  virtual fpt_arg description() { return argument_of(array()); }
  /// Between the orders of Fortran and of torch.
  Array turned(const Array& array) const noexcept { return same_layout_ ? array : reversed(array); }

 private:
  const bool same_layout_;
};

/// The tensor; in place of a tensor of torch an alias, which holds the memory as it is when torch gives the tensor
/// another: for what outlives the call.
[[nodiscard]] FPT_API TensorPtr holding_memory(const TensorPtr& tensor);

/// What a handle names now. FPT_ERR_NOT_LOADED, FPT_ERR_FREED, what an operation failed with whose result this is,
/// FPT_ERR_ARGUMENT for a gradient that is not there.
FPT_API TensorPtr tensor_at(int64_t handle);
/// The same where a gradient stays what it will be when it is used.
TensorPtr named_at(int64_t handle);
/// What a handle names, a failure included; null for nothing.
[[nodiscard]] FPT_API TensorPtr find_tensor(int64_t handle) noexcept;
/// Whether a handle names anything but a failure.
bool is_tensor_set(int64_t handle) noexcept;
/// Address that identifies a handle, null for nothing.
const void* tensor_address(int64_t handle) noexcept;
constexpr bool is_tensor_handle(int64_t handle) noexcept { return is_handle_of(HandleKind::tensor, handle); }

/// New contents for a handle. One that is 0 or stale becomes a new one, which belongs to the innermost scope of this
/// thread (scopes.hpp).
void store_tensor(int64_t* handle, TensorPtr tensor);
/// Whether a handle was made of an array of the caller, into which assignment writes. Other names of the same tensor
/// were not.
bool is_bound(int64_t handle) noexcept;
/// left = right: into memory of the caller the values are written, else `left` becomes another name of what `right`
/// names, in the innermost scope. FPT_ERR_SHAPE, FPT_ERR_DTYPE, and FPT_ERR_PYTHON for what torch refuses.
void assign_tensor(int64_t* left, int64_t right);
/// A new handle, for the result of an operation. Those outside of every scope are counted.
[[nodiscard]] FPT_API int64_t insert_result(TensorPtr tensor);
/// A handle that belongs to no scope.
[[nodiscard]] FPT_API int64_t insert_unscoped(TensorPtr tensor);
/// @param end  see HandleTable::remove()
FPT_API void free_tensor(int64_t handle, HandleEnd end = nullptr) noexcept;

/// Let the variable at `home` own the tensor that it names: it is freed with the variable. None is owned within a
/// scope.
/// @param before  what the variable named until now; freed if the variable owned it
void own_tensor(const int64_t* home, int64_t before);
/// The variable at `home` has got another tensor. What it named before is freed if the variable owned it.
void disown_tensor(const int64_t* home, int64_t before);
/// The variable at `home` ends its life; or there is none. It is read only if it has owned a tensor, and names none
/// then.
void end_owner(int64_t* home);

/// An argument that refers to a tensor. FPT_ERR_NOT_LOADED, FPT_ERR_FREED.
[[nodiscard]] FPT_API fpt_arg tensor_argument(int64_t handle);

/// A tensor as output of a call, which writes into its memory. Torch is told of the change, so that a gradient
/// which needs the values before is refused.
class TensorOutput {
 public:
  /// FPT_ERR_ARGUMENT for a tensor of an array that torch gave other memory, for memory that may have several elements
  /// at the same place, for a view of a tensor with a graph, and for arrays of NumPy.
  explicit TensorOutput(const fpt_arg& output);

  /// As an argument that describes memory, which lives as long as this.
  const fpt_arg& described() const noexcept { return described_; }
  /// Its memory was written.
  FPT_API void written() const noexcept;

 private:
  TensorPtr of_torch_, memory_;  // null for plain memory
  fpt_arg described_;
};

/// Host memory of a tensor for a caller that expects `dtype` and `rank`. FPT_ERR_DTYPE, FPT_ERR_RANK, FPT_ERR_DEVICE.
/// `label` names it in messages: "result 1".
FPT_API void require_memory(const Array& array, int32_t dtype, int32_t rank, const std::string& label);
/// The same for a pointer, through which a program may write. FPT_ERR_ARGUMENT for memory that is protected from that.
void require_pointer(const Array& array, int32_t dtype, int32_t rank, const std::string& label);

}  // namespace fpt
