// SPDX-License-Identifier: MIT
#include "plugin/eager/dtypes.hpp"

#include "arrays/dtype.hpp"
#include "plugin/eager/schema_call.hpp"
#include "plugin/tensors.hpp"

namespace fpt::direct {

at::ScalarType dtype_named(std::string_view name) {
  if (name.substr(0, 6) == "torch.") name.remove_prefix(6);
  const int32_t dtype = find_dtype([name](const DtypeFacts& facts) { return name == facts.name; });
  if (dtype == FPT_NONE) throw NotHere();
  return scalar_type_of(dtype);
}

at::Device device_named(const std::string& name) {
  try {
    return at::Device(name);
  } catch (const c10::Error&) {
    throw NotHere();
  }
}

}  // namespace fpt::direct
