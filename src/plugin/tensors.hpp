// SPDX-License-Identifier: MIT
/// Memory of the caller as tensors, kept from call to call.
#pragma once

#include "plugin/model.hpp"
#include "values/torch_value.hpp"

namespace fpt::direct {

at::ScalarType scalar_type_of(int32_t dtype);
/// FPT_NONE for a type that does not cross the boundary.
FPT_API int32_t dtype_of(at::ScalarType type) noexcept;

/// View of a tensor, axes in Fortran order.
FPT_API Array array_of_tensor(const at::Tensor& tensor, bool same_layout);

using MemoryOwner = std::unique_ptr<void, void (*)(void*)>;

/// The tensor of an array, wherever that is, without a copy. FPT_ERR_STRIDE for strides that torch cannot express.
/// @param owner  of the memory, let go when torch needs it no more; none for memory of the caller
at::Tensor tensor_on(const Array& array, bool same_layout, MemoryOwner owner = {nullptr, nullptr});

/// The same memory with the axes in the other order.
[[nodiscard]] at::Tensor reversed_view(const at::Tensor& tensor);

[[nodiscard]] TensorFlags flags_of(const at::Tensor& tensor);
[[nodiscard]] TensorFacts facts_of(const at::Tensor& tensor);
/// "float64 (2, 3), Fortran (3, 2)"
[[nodiscard]] FPT_API std::string kind_of(const at::Tensor& tensor, bool same_layout);

/// Until what torch was asked to do on the current stream of a device is done, unless this thread does not wait.
void wait_for(Device device);

/// True if nobody else refers to the tensor or to its memory.
bool is_unshared(const at::Tensor& tensor) noexcept;

/// Tensors of one argument position, for one thread at a time. Bounded: the oldest go first.
class TensorCache {
 public:
  /// Tensor on the memory of an argument that is passed as it is. Valid until the next call of this function.
  const at::Tensor& get(const fpt_arg& arg, bool same_layout);
  /// Copy of an argument on the host in memory of torch, of another type perhaps. Valid likewise.
  const at::Tensor& copied(const fpt_arg& arg, int32_t dtype, bool same_layout);

 private:
  struct Entry {
    Array array;
    at::Tensor tensor;
    at::DimVector sizes, strides;  // it was made with
  };

  static bool is_of(const Entry& entry, const fpt_arg& arg) noexcept;
  static bool is_untouched(const Entry& entry) noexcept;

  static Entry made(const Array& array, bool same_layout);

  std::vector<Entry> entries_;
  std::size_t next_ = 0, oldest_ = 0;
  at::Tensor copy_;
};

}  // namespace fpt::direct
