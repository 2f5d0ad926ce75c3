// SPDX-License-Identifier: MIT
/// The objects behind torch_tensor and torch_tensor_wrap.
#pragma once

#include <memory>
#include <vector>

#include "arrays/arg.hpp"
#include "torch/framework.hpp"

namespace fpt {

/// Memory that Fortran described, a copy of it, an array object that Python made, or memory of the direct path.
struct Tensor {
  fpt_arg arg{};             ///< description of Fortran memory; unused when `object` is set
  Storage storage;           ///< of a torch_copy
  Ref object;                ///< result of a script
  Array array;               ///< memory in Fortran axis order
  Ref keep;                  ///< holds the memory of `array`
  std::shared_ptr<void> owner;  ///< of memory that the direct path made, described by `arg`
  bool same_layout = false;  ///< axis order in which the script sees `object`
  bool set = false;

  /// Array object `value` of a script; brought to the host where `to_host`. FPT_ERR_RESULT_TYPE.
  static Tensor of_object(PyObject* value, bool same_layout, bool to_host);
  /// Result of the direct path; `array` in Fortran axis order, its memory held by `owner`.
  static Tensor of_owned(const Array& array, std::shared_ptr<void> owner, bool same_layout);
  /// Argument, or another tensor that an argument refers to. Takes a torch_copy over.
  static Tensor of_arg(const fpt_arg& arg);
  Tensor duplicate() const;
};

/// Destroys Python references only while Python's lock is held, which the caller need not hold.
void release(std::unique_ptr<Tensor> tensor) noexcept;

/// FPT_ERR_NOT_LOADED, FPT_ERR_FREED.
Tensor& tensor_at(int64_t handle);
Tensor* find_tensor(int64_t handle) noexcept;
bool is_tensor_handle(int64_t handle) noexcept;
/// New contents for a handle, which becomes a new one if it was 0 or stale.
void store_tensor(int64_t* handle, Tensor tensor);
void free_tensor(int64_t handle) noexcept;

/// An output as an argument that describes memory, where it is a tensor: FPT_ERR_ARGUMENT for a tensor that has none of
/// the caller.
fpt_arg described_output(const fpt_arg& output);

/// "cpu", or what torch calls the device: "cuda:0".
std::string device_of(const Tensor& tensor);

/// Host memory of a tensor for a caller that expects `dtype` and `rank`. FPT_ERR_DTYPE, FPT_ERR_RANK, FPT_ERR_DEVICE.
/// `label` names it in texts: "result 1".
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
  fpt_arg* data() noexcept { return args_.data(); }
  int32_t size() const noexcept { return static_cast<int32_t>(args_.size()); }

 private:
  std::vector<fpt_arg> args_;
};

ArgumentList& wrap_at(int64_t handle);
void create_wrap(int64_t* handle);
void free_wrap(int64_t handle) noexcept;

}  // namespace fpt
