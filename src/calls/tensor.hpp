// SPDX-License-Identifier: MIT
/// The objects behind torch_tensor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "base/error.hpp"
#include "base/handle.hpp"
#include "python/pyref.hpp"

namespace fpt {

/// Axis order by its number in the interface: 0 reversed, 1 that of Fortran. FPT_ERR_ARGUMENT.
bool is_same_layout(int32_t layout);

class Tensor;
using TensorPtr = std::shared_ptr<Tensor>;

/// What a torch_tensor stands for: memory of the caller or a result, a scalar, a tensor of torch, the gradient of one,
/// or an operation that failed. Handles share it: assigning one torch_tensor to another copies nothing.
class Tensor {
  enum class Kind : uint8_t { memory, object, gradient, failure };

 public:
  /// For the functions that follow.
  Tensor(Kind kind, bool same_layout) noexcept : kind_(kind), same_layout_(same_layout) {}
  /// Argument, or the tensor that an argument refers to. Takes a torch_copy over.
  /// @param same_layout  axis order in which torch sees the memory
  static TensorPtr of_arg(const fpt_arg& arg, bool same_layout = false);
  /// Memory of a result, with its axes in the order of the script, as long as `owner` lives.
  static TensorPtr of_memory(const Array& seen, std::shared_ptr<void> owner, bool same_layout);
  /// An array object of Python. With the interpreter lock.
  static TensorPtr of_object(Ref object, bool same_layout);
  /// Whatever gradient `tensor` has when this is used.
  static TensorPtr gradient_of(TensorPtr tensor);
  /// Using it fails with `error`.
  static TensorPtr of_failure(const Error& error);

  ~Tensor();
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  /// What an operation failed with whose result this is, else null.
  const Error* failure() const noexcept { return failure_.get(); }
  /// A scalar of Fortran, which has no memory.
  bool is_value() const noexcept;
  /// Memory of the caller.
  bool is_of_caller() const noexcept { return kind_ == Kind::memory && !owner_; }
  bool same_layout() const noexcept { return same_layout_; }

  /// Memory, axes in the order of Fortran, as long as owner() lives. A tensor of torch is looked into when this is
  /// first asked. FPT_ERR_ARGUMENT for a gradient that is not there, FPT_ERR_RANK for more than FPT_MAX_RANK axes.
  const Array& array();
  /// Of what array() shows, or of the value; null for memory of the caller.
  const std::shared_ptr<void>& owner() const noexcept { return owner_; }
  /// The tensor described as memory or as a value, with the name of an argument that refers to it.
  fpt_arg described_as(const fpt_arg& reference);

  /// The array object of Python, borrowed; null where none was made yet. With the interpreter lock, as what follows.
  PyObject* object();
  /// The tensor of torch, made of the memory if need be, and the same as long as the tensor lives.
  PyObject* torch_object();

 private:
  void look();
  void refresh_gradient();

  Kind kind_;
  bool same_layout_;
  std::atomic<bool> looked_{false};  // array_ is there
  std::unique_ptr<Array> array_;
  std::unique_ptr<fpt_arg> arg_;  // of memory
  std::shared_ptr<void> owner_;
  Ref object_, seen_;  // seen_: what array_ shows, where that is not the object itself
  TensorPtr source_;   // of a gradient
  std::unique_ptr<const Error> failure_;
};

/// FPT_ERR_NOT_LOADED, FPT_ERR_FREED, and what an operation failed with whose result this is.
TensorPtr tensor_at(int64_t handle);
/// What a handle names, a failure included; null for nothing.
TensorPtr find_tensor(int64_t handle) noexcept;
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
/// A new handle, for the result of an operation. Those outside of every scope are counted.
int64_t insert_result(TensorPtr tensor);
/// A handle that belongs to no scope.
int64_t insert_unscoped(TensorPtr tensor);
/// @param end  see HandleTable::remove()
void free_tensor(int64_t handle, HandleEnd end = nullptr) noexcept;

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
fpt_arg tensor_argument(int64_t handle);

/// An output as an argument that describes memory, where it is a tensor: FPT_ERR_ARGUMENT for a tensor that has none of
/// the caller.
fpt_arg described_output(const fpt_arg& output);

/// Host memory of a tensor for a caller that expects `dtype` and `rank`. FPT_ERR_DTYPE, FPT_ERR_RANK, FPT_ERR_DEVICE.
/// `label` names it in messages: "result 1".
void require_memory(const Array& array, int32_t dtype, int32_t rank, const std::string& label);

}  // namespace fpt
