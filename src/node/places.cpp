// SPDX-License-Identifier: MIT
#include "node/places.hpp"

#include "arrays/scalar.hpp"
#include "values/tensor.hpp"

namespace fpt {

std::string form_of(const Request& request, Args inputs, Args outputs, bool ignores_rows) {
  if (request.is_list || request.second != 0) return {};
  std::string form =
      concat(static_cast<int64_t>(request.wish), ' ', request.first, ' ', request.gradients, request.text, '\n');
  const auto add = [&form](int64_t number) { form.append(reinterpret_cast<const char*>(&number), sizeof number); };
  for (const Args args : {inputs, outputs}) {
    add(args.count);
    for (const fpt_arg& arg : args) {
      if (arg.status != FPT_OK || is_tensor_handle(arg.handle)) return {};
      add(arg.dtype);
      add(arg.rank);
      add(arg.access);
      form += arg.name;
      form += '\n';
      for (int32_t axis = 0; !is_value(arg) && axis + ignores_rows < arg.rank; ++axis) add(arg.u.array.extents[axis]);
    }
  }
  return form;
}

}  // namespace fpt
