// SPDX-License-Identifier: MIT
#include "arrays/pinned.hpp"

#include "arrays/arg.hpp"
#include "arrays/array.hpp"
#include "base/cuda_driver.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

constexpr unsigned for_all_contexts = 1;  // CU_MEMHOSTREGISTER_PORTABLE
constexpr int error_invalid_value = 1, error_out_of_memory = 2, error_invalid_context = 201,
              error_already_registered = 712, error_not_registered = 713;  // CUresult

Array pages_of(const fpt_arg& arg) {
  require_described(arg, "the array");
  const bool has_memory = arg.rank > 0 || arg.access == FPT_OUT;
  if (arg.handle != 0 || arg.dtype == FPT_TEXT || !has_memory)
    fail(FPT_ERR_ARGUMENT, "arrays of the program can be pinned, no tensors, copies, values and strings: ",
         "describe an array by torch_in or torch_out");
  const Array array = placed_array_of(arg);
  if (!is_contiguous(array))
    fail(FPT_ERR_STRIDE, "the elements of the array do not follow each other: pin the whole array");
  return array;
}

void require_pageable(const Array& array, const CudaDriver& driver) {
  const bool is_managed = cuda_pointer(&driver, array.data).is_managed;
  if (is_managed || !array.device.is_host())
    fail(FPT_ERR_DEVICE, "the array is in ", is_managed ? "managed memory" : "memory of " + device_name(array.device),
         ", which GPUs reach as it is: pin host memory only");
  if (!driver.register_memory || !driver.unregister_memory)
    fail(FPT_ERR_DEVICE, "the driver of CUDA is too old to pin memory");
}

void require_success(int error, const char* verb) {
  switch (error) {
    case 0:
      return;
    case error_out_of_memory:
      fail(FPT_ERR_MEMORY, "the system gives no memory to ", verb, " the array");
    case error_invalid_context:
      fail(FPT_ERR_DEVICE, "this thread uses no GPU yet: call ftn_pytorch_init(device=\"cuda:0\") before");
    case error_already_registered:
      fail(FPT_ERR_ARGUMENT,
           "the array, or a part of it, is pinned already; or memory that was pinned at this address ",
           "was deallocated without torch_unpin");
    case error_not_registered:
      fail(FPT_ERR_ARGUMENT, "no array that is pinned begins at this address");
    default:
      fail(FPT_ERR_DEVICE, "the driver of CUDA cannot ", verb, " the array (error ", error, ")");
  }
}

}  // namespace

void pin(const fpt_arg& arg) {
  const Array array = pages_of(arg);
  const std::size_t bytes = byte_count(array);
  if (bytes == 0) return;
  const CudaDriver& driver = open_cuda_driver();
  require_pageable(array, driver);
  require_success(driver.register_memory(array.data, bytes, for_all_contexts), "pin");
}

void unpin(const fpt_arg& arg) {
  const Array array = pages_of(arg);
  if (element_count(array) == 0) return;
  const CudaDriver& driver = open_cuda_driver();
  require_pageable(array, driver);
  const int error = driver.unregister_memory(array.data);
  require_success(error == error_invalid_value ? error_not_registered : error, "unpin");
}

}  // namespace fpt
