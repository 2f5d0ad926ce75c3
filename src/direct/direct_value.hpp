// SPDX-License-Identifier: MIT
/// Memory of a result as it crosses the boundary of the plug-in.
#pragma once

#include <cstring>

#include "arrays/array.hpp"
#include "direct/fpt_direct.h"

namespace fpt {

inline Array array_of_value(const fpt_direct_value& value) noexcept {
  Array array;
  array.data = value.data;
  array.dtype = value.dtype;
  array.rank = value.rank;
  if (!value.on_host) array.device.type = 2;  // some device: kDLCUDA
  std::memcpy(array.extents, value.extents, sizeof array.extents);
  std::memcpy(array.strides, value.strides, sizeof array.strides);
  return array;
}

inline void set_memory(fpt_direct_value& value, const Array& array) noexcept {
  value.data = array.data;
  value.dtype = array.dtype;
  value.rank = array.rank;
  get_axes(array, value.extents, value.strides);
}

}  // namespace fpt
