// SPDX-License-Identifier: MIT
#include "values/operators.hpp"

#include <iterator>
#include <utility>

#include "arrays/scalar.hpp"
#include "base/error.hpp"
#include "values/assignment.hpp"
#include "values/engine.hpp"

namespace fpt {
namespace {

/// In the order of the constants in ftn_pytorch.h.
constexpr const char* symbols[] = {"+", "-", "*", "/", "**", "==", "/=", "<", "<=", ">", ">=", "matmul"};
static_assert(std::size(symbols) == FPT_MATMUL + 1, "one for each operator");

std::string text_of(const TensorPtr& operand, const fpt_arg* scalar, bool same_layout) {
  return operand ? text_of(facts_of(operand), same_layout) : python_text(scalar_of(*scalar));
}

}  // namespace

TensorPtr operate(int32_t operation, TensorPtr left, TensorPtr right, const fpt_arg* scalar) {
  if (operation < 0 || operation > FPT_MATMUL) fail(FPT_ERR_ARGUMENT, "there is no operator ", operation);
  Engine& chosen = left && right ? engine_of(*left, *right) : engine_of(left ? *left : *right);
  if (left && right && left->same_layout() != right->same_layout()) {
    const bool turns_left = chosen.describe(*left).rank() < chosen.describe(*right).rank();
    TensorPtr& turned = turns_left ? left : right;
    turned = reversed_view(turned, !turned->same_layout());
  }
  const bool same_layout = (left ? left : right)->same_layout();
  // (A B) transposed is B transposed, A transposed
  const bool swaps = operation == FPT_MATMUL && !same_layout;
  try {
    return chosen.operate(operation, (swaps ? right : left).get(), (swaps ? left : right).get(), scalar, same_layout);
  } catch (const Error& error) {
    if (error.status() != FPT_ERR_PYTHON) throw;
    throw Error(FPT_ERR_PYTHON,
                concat(symbols[operation], ": ", error.text(), "\n  left: ", text_of(left, scalar, same_layout),
                       "\n  right: ", text_of(right, scalar, same_layout)));
  }
}

}  // namespace fpt
