// SPDX-License-Identifier: MIT
/// The objects behind torch_tensor and torch_tensor_wrap.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "base/handle.hpp"
#include "python/pyref.hpp"

namespace fpt {

/// Memory that calls can read, or write where it is the caller's. A plain value: copies share what owns the memory.
struct Tensor {
  fpt_arg arg{};                ///< describes `array`, or is a scalar by value
  Array array;                  ///< axes in Fortran order
  std::shared_ptr<void> owner;  ///< of the memory, released on any thread; null for memory of the caller
  PyObject* object = nullptr;   ///< array object of a script on this memory, which `owner` holds; else null
  bool same_layout = false;     ///< axis order in which a script sees `object`

  /// Argument, or another tensor that an argument refers to. Takes a torch_copy over.
  static Tensor of_arg(const fpt_arg& arg);
  /// A result; `seen` has its axes in the order of the script.
  static Tensor of_result(const Array& seen, std::shared_ptr<void> owner, PyObject* object, bool same_layout);

  /// `arg` with the name of an argument that refers to the tensor.
  fpt_arg named_as(const fpt_arg& reference) const noexcept;
};

/// FPT_ERR_NOT_LOADED, FPT_ERR_FREED.
Tensor& tensor_at(int64_t handle);
Tensor* find_tensor(int64_t handle) noexcept;
constexpr bool is_tensor_handle(int64_t handle) noexcept { return is_handle_of(HandleKind::tensor, handle); }
/// New contents for a handle, which becomes a new one if it was 0 or stale.
void store_tensor(int64_t* handle, Tensor tensor);
void free_tensor(int64_t handle) noexcept;

/// An argument that refers to a tensor. FPT_ERR_NOT_LOADED, FPT_ERR_FREED.
fpt_arg tensor_argument(int64_t handle);

/// An output as an argument that describes memory, where it is a tensor: FPT_ERR_ARGUMENT for a tensor that has none of
/// the caller.
fpt_arg described_output(const fpt_arg& output);

/// Host memory of a tensor for a caller that expects `dtype` and `rank`. FPT_ERR_DTYPE, FPT_ERR_RANK, FPT_ERR_DEVICE.
/// `label` names it in messages: "result 1".
void require_memory(const Array& array, int32_t dtype, int32_t rank, const std::string& label);

/// Arguments of a torch_tensor_wrap. Tensors among them are private duplicates.
class ArgumentList {
 public:
  ArgumentList() = default;
  ~ArgumentList() { clear(); }
  ArgumentList(const ArgumentList&) = delete;
  ArgumentList& operator=(const ArgumentList&) = delete;
  void add(const fpt_arg& arg);
  void clear() noexcept;

 private:
  friend class HeldArguments;

  std::vector<fpt_arg> args_;
};

/// The arguments of a list for one call, which may change or free the list.
class HeldArguments {
 public:
  explicit HeldArguments(const ArgumentList& list);
  Args get() noexcept { return {args_.data(), static_cast<int32_t>(args_.size())}; }

 private:
  std::vector<fpt_arg> args_;
  std::vector<std::shared_ptr<void>> owners_;  // of tensors among them
};

ArgumentList& wrap_at(int64_t handle);
void create_wrap(int64_t* handle);
void free_wrap(int64_t handle) noexcept;

}  // namespace fpt
