// SPDX-License-Identifier: MIT
/// What an array becomes for a script. With the interpreter lock held.
#pragma once

#include "torch/framework.hpp"

namespace fpt {

/// What an array has to become for the script.
struct Wish {
  Framework framework;
  bool same_layout;  ///< keep the axis order instead of reversing it
  int32_t dtype;     ///< element type the script gets; that of the array unless a conversion is wanted
  bool own_memory;   ///< copy the data into memory of the object
  bool read_only;

  bool copies(const Array& array) const noexcept {
    return own_memory || dtype != array.dtype ||
           (framework == Framework::torch && is_misaligned(array.data, array.dtype));
  }
  Array in_script_order(const Array& array) const noexcept { return same_layout ? array : reversed(array); }
};

/// An array object on the memory of `array`, or on a converted copy of it (host memory only), with `seen` set to the
/// memory in Fortran axis order that the script works on. FPT_ERR_DEVICE, FPT_ERR_STRIDE.
Made make_wished(const Array& array, const Wish& wish, Array& seen);

}  // namespace fpt
