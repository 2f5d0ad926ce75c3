// SPDX-License-Identifier: MIT
#include "values/python_value.hpp"

#include <variant>

#include "arrays/scalar.hpp"
#include "arrays/texts.hpp"
#include "python/interpreter.hpp"

namespace fpt {

Ref python_value(const fpt_arg& arg) {
  const auto owner = has_kept_text(arg) ? text_owner(arg, arg.name[0] ? arg.name : "an argument") : nullptr;
  return checked(std::visit(ToPython(), scalar_of(arg)).release(), "passing a scalar");
}

}  // namespace fpt
