// SPDX-License-Identifier: MIT
/// Memory of a result as it crosses the boundary of the plug-in.
#pragma once

#include <cstring>

#include "arrays/array.hpp"
#include "direct/fpt_direct.h"

namespace fpt {

inline bool is_on_host(const fpt_direct_value& value) noexcept { return value.device_type == Device::host_type; }

inline Array array_of_value(const fpt_direct_value& value) noexcept {
  Array array;
  array.data = value.data;
  array.dtype = value.dtype;
  array.rank = value.rank;
  array.device = {value.device_type, value.device_index};
  std::memcpy(array.extents, value.extents, sizeof array.extents);
  std::memcpy(array.strides, value.strides, sizeof array.strides);
  return array;
}

inline void set_memory(fpt_direct_value& value, const Array& array) noexcept {
  value.data = array.data;
  value.dtype = array.dtype;
  value.rank = array.rank;
  value.device_type = array.device.type;
  value.device_index = array.device.index;
  get_axes(array, value.extents, value.strides);
}

}  // namespace fpt
