// SPDX-License-Identifier: MIT
/// Memory with a shape: what crosses the boundary, whoever owns it. Knows nothing of Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "arrays/device.hpp"
#include "arrays/dtype.hpp"

namespace fpt {

/// View of memory that somebody else owns. Axes in Fortran order; strides in bytes, of any sign.
///
/// Extents and strides beyond the rank mean nothing: clearing them takes 10 ns, and views are made in every call.
struct Array {
  void* data = nullptr;
  int32_t dtype = FPT_NONE;
  int32_t rank = 0;
  Device device;
  bool is_protected = false;  ///< somebody may read it and nobody write: a constant, a file, a broadcast
  int64_t extents[FPT_MAX_RANK];
  int64_t strides[FPT_MAX_RANK];
};

/// Extents and strides of an array for a caller to whom those beyond the rank are zero.
inline void get_axes(const Array& array, int64_t* extents, int64_t* strides) noexcept {
  for (int32_t i = 0; i < FPT_MAX_RANK; ++i) {
    extents[i] = i < array.rank ? array.extents[i] : 0;
    strides[i] = i < array.rank ? array.strides[i] : 0;
  }
}

/// What an array looks like to a caller who knows its rank.
inline void hand_out_memory(const Array& array, void** data, int64_t* extents, int64_t* strides) noexcept {
  *data = array.data;
  for (int32_t i = 0; i < array.rank; ++i) {
    extents[i] = array.extents[i];
    strides[i] = array.strides[i];
  }
}

FPT_API int64_t element_count(const Array& array) noexcept;
/// Of its elements, packed.
std::size_t byte_count(const Array& array) noexcept;
bool is_contiguous(const Array& array) noexcept;
bool has_negative_stride(const Array& array) noexcept;
/// Whether torch can express all strides: none is negative, and each is a multiple of the element.
FPT_API bool has_plain_strides(const Array& array) noexcept;
/// Make them so. The stride of a single element, or of none, leads nowhere, but torch and models look at it: it becomes
/// that of an element. FPT_ERR_STRIDE for an axis of several elements.
FPT_API void make_strides_plain(Array& array);
bool same_shape(const Array& a, const Array& b) noexcept;
/// The same elements, of the same type, shape and place.
FPT_API bool is_same_memory(const Array& a, const Array& b) noexcept;

/// A complex array at an address that is no multiple of its elements' size. Fortran aligns complex numbers as their
/// parts, c10::complex wants the whole aligned, and torch crashes on others.
inline bool is_misaligned(const void* data, int32_t dtype) noexcept {
  return is_complex(dtype) && reinterpret_cast<std::uintptr_t>(data) % dtype_size(dtype) != 0;
}
/// FPT_ERR_ARGUMENT for such an array, where it cannot be copied.
FPT_API void require_alignment(const Array& array);

/// Lowest address and the one after the highest of the memory that an array touches.
struct Range {
  const char* begin;
  const char* end;
};
FPT_API Range memory_range(const Array& array) noexcept;
FPT_API bool overlap(const Array& a, const Array& b) noexcept;

/// Same axes in the opposite order: what Fortran calls (nx, ny) and Python (ny, nx).
FPT_API Array reversed(const Array& array) noexcept;

/// Contiguous strides in Fortran order for the extents that are there.
FPT_API void set_contiguous(Array& array) noexcept;

/// "(3, 4)", in the order of the extents.
FPT_API std::string shape_text(const Array& array);

}  // namespace fpt
