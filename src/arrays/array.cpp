// SPDX-License-Identifier: MIT
#include "arrays/array.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace fpt {

int64_t element_count(const Array& array) noexcept {
  int64_t count = 1;
  for (int i = 0; i < array.rank; ++i) count *= array.extents[i];
  return count;
}

std::size_t byte_count(const Array& array) noexcept {
  return static_cast<std::size_t>(element_count(array)) * dtype_size(array.dtype);
}

bool is_contiguous(const Array& array) noexcept {
  if (element_count(array) == 0) return true;
  int64_t expected = static_cast<int64_t>(dtype_size(array.dtype));
  for (int i = 0; i < array.rank; ++i) {
    if (array.extents[i] != 1 && array.strides[i] != expected) return false;
    expected *= array.extents[i];
  }
  return true;
}

bool has_negative_stride(const Array& array) noexcept {
  return std::any_of(array.strides, array.strides + array.rank, [](int64_t stride) { return stride < 0; });
}

bool has_plain_strides(const Array& array) noexcept {
  const int64_t rest = static_cast<int64_t>(dtype_size(array.dtype)) - 1;  // the size of an element is a power of two
  return std::none_of(array.strides, array.strides + array.rank,
                      [rest](int64_t stride) { return stride < 0 || (stride & rest) != 0; });
}

void make_strides_plain(Array& array) {
  if (has_plain_strides(array)) return;
  const auto size = static_cast<int64_t>(dtype_size(array.dtype));
  const bool is_empty = element_count(array) == 0;
  for (int32_t i = 0; i < array.rank; ++i) {
    int64_t& stride = array.strides[i];
    const bool leads_on = array.extents[i] > 1 && !is_empty;
    if (stride >= 0 && stride % size == 0) continue;
    if (leads_on && stride >= 0)
      fail(FPT_ERR_STRIDE, "the array has elements of ", size, " bytes every ", stride, " bytes, which torch tensors ",
           "cannot express: copy it in the script (numpy.ascontiguousarray), or receive it with copy_to");
    if (leads_on)
      fail(FPT_ERR_STRIDE, "an axis runs backwards (negative stride), which torch tensors cannot express: pass ",
           "the array itself and flip the tensor (torch.flip), or torch_copy of a section that is only read");
    stride = size;
  }
}

bool same_shape(const Array& a, const Array& b) noexcept {
  return a.rank == b.rank && std::equal(a.extents, a.extents + a.rank, b.extents);
}

bool is_same_memory(const Array& a, const Array& b) noexcept {
  if (a.dtype != b.dtype || a.device != b.device || !same_shape(a, b)) return false;
  const bool is_empty = element_count(a) == 0;
  for (int32_t i = 0; i < a.rank && !is_empty; ++i)
    if (a.extents[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return is_empty || a.data == b.data;
}

void require_alignment(const Array& array) {
  if (is_misaligned(array.data, array.dtype) && element_count(array) > 0)
    fail(FPT_ERR_ARGUMENT, "the array of type ", dtype_fortran_name(array.dtype), " begins at an address that is no ",
         "multiple of ", dtype_size(array.dtype), " bytes, as torch needs it to compute in place: pass torch_copy of ",
         "it, or put it first in its type");
}

Range memory_range(const Array& array) noexcept {
  const char* begin = static_cast<const char*>(array.data);
  const char* end = begin;
  if (element_count(array) == 0) return {begin, end};
  for (int i = 0; i < array.rank; ++i) {
    const int64_t reach = (array.extents[i] - 1) * array.strides[i];
    (reach < 0 ? begin : end) += reach;
  }
  return {begin, end + dtype_size(array.dtype)};
}

bool overlap(const Array& a, const Array& b) noexcept {
  const Range one = memory_range(a), other = memory_range(b);
  return one.begin < other.end && other.begin < one.end;
}

Array reversed(const Array& array) noexcept {
  Array result;
  result.data = array.data;
  result.dtype = array.dtype;
  result.rank = array.rank;
  result.device = array.device;
  result.is_protected = array.is_protected;
  for (int from = array.rank - 1, to = 0; from >= 0; --from, ++to) {
    result.extents[to] = array.extents[from];
    result.strides[to] = array.strides[from];
  }
  return result;
}

void set_contiguous(Array& array) noexcept {
  int64_t stride = static_cast<int64_t>(dtype_size(array.dtype));
  for (int i = 0; i < array.rank; ++i) {
    array.strides[i] = stride;
    stride *= std::max<int64_t>(array.extents[i], 1);
  }
}

std::string shape_text(const Array& array) {
  std::string text = "(";
  for (int i = 0; i < array.rank; ++i) text += (i ? ", " : "") + std::to_string(array.extents[i]);
  return text + (array.rank == 1 ? ",)" : ")");
}

}  // namespace fpt
