// SPDX-License-Identifier: MIT
#include "plugin/eager/eager_tensor.hpp"

#include <ATen/ScalarOps.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sub.h>

#include "plugin/failure.hpp"
#include "plugin/scalars.hpp"

namespace fpt::direct {
namespace {

constexpr const char* symbols[] = {"+", "-", "*", "/", "**", "==", "/=", "<", "<=", ">", ">=", "matmul"};

at::Tensor as_tensor(const at::Scalar& scalar) { return at::native::wrapped_scalar_tensor(scalar); }
const at::Tensor& as_tensor(const at::Tensor& tensor) { return tensor; }

/// @param right  a tensor, or a scalar, which stays one where Python has a form of the operator for it
template <class Right>
at::Tensor computed(int32_t operation, const at::Tensor& left, const Right& right) {
  switch (operation) {
    case FPT_ADD:
      return at::add(left, as_tensor(right));
    case FPT_SUBTRACT:
      return at::sub(left, as_tensor(right));
    case FPT_MULTIPLY:
      return at::mul(left, as_tensor(right));
    case FPT_DIVIDE:
      return at::div(left, as_tensor(right));
    case FPT_POWER:
      return at::pow(left, right);
    case FPT_EQUAL:
      return at::eq(left, right);
    case FPT_NOT_EQUAL:
      return at::ne(left, right);
    case FPT_LESS:
      return at::lt(left, right);
    case FPT_LESS_EQUAL:
      return at::le(left, right);
    case FPT_GREATER:
      return at::gt(left, right);
    case FPT_GREATER_EQUAL:
      return at::ge(left, right);
    default:
      if constexpr (std::is_same_v<Right, at::Tensor>) return at::matmul(left, right);
      fail(FPT_ERR_PYTHON, "matmul: TypeError: matmul takes tensors, and one operand is a number");
  }
}

/// What the methods for operands on the right do: __radd__, __rsub__, ...
at::Tensor computed_from_right(int32_t operation, const at::Scalar& left, const at::Tensor& right) {
  switch (operation) {
    case FPT_SUBTRACT:
      return at::rsub(right, left);
    case FPT_DIVIDE:
      return at::mul(right.reciprocal(), as_tensor(left));
    case FPT_POWER:
      return at::pow(left, right);
    case FPT_LESS:
      return at::gt(right, left);
    case FPT_LESS_EQUAL:
      return at::ge(right, left);
    case FPT_GREATER:
      return at::lt(right, left);
    case FPT_GREATER_EQUAL:
      return at::le(right, left);
    default:
      return computed(operation, right, left);
  }
}

std::string kind_of_operand(const Operand& operand, bool same_layout) {
  return operand.tensor ? kind_of(*operand.tensor, same_layout) : text_of(scalar_of(*operand.scalar));
}

/// Address of the first byte of the memory behind a tensor, and of the one after the last.
std::pair<const char*, const char*> reach_of(const at::Tensor& tensor) {
  const at::Storage& storage = tensor.storage();
  const auto* begin = static_cast<const char*>(storage.data());
  return {begin, begin + storage.nbytes()};
}

/// All of the memory, since a needless copy does no harm.
bool overlap(const at::Tensor& one, const at::Tensor& other) {
  const auto [begin, end] = reach_of(one);
  const auto [other_begin, other_end] = reach_of(other);
  return begin < other_end && other_begin < end && one.device() == other.device();
}

const char* python_name_of(const std::exception& exception) {
  if (dynamic_cast<const c10::IndexError*>(&exception)) return "IndexError";
  if (dynamic_cast<const c10::ValueError*>(&exception)) return "ValueError";
  if (dynamic_cast<const c10::TypeError*>(&exception)) return "TypeError";
  if (dynamic_cast<const c10::NotImplementedError*>(&exception)) return "NotImplementedError";
  return "RuntimeError";
}

}  // namespace

void rethrow_as_python(const std::string& context, const std::string& end) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& exception) {
    rethrow_as(FPT_ERR_PYTHON, concat(context, ": ", python_name_of(exception)), end);
  }
}

at::Tensor operate(int32_t operation, const Operand& left, const Operand& right, bool same_layout) {
  if (operation < 0 || operation > FPT_MATMUL) fail(FPT_ERR_ARGUMENT, "there is no operator ", operation);
  try {
    // the product of the matrices that Fortran sees: (A B) transposed is B transposed, A transposed
    const bool swaps = operation == FPT_MATMUL && !same_layout;
    const Operand &first = swaps ? right : left, &second = swaps ? left : right;
    if (!second.tensor) return computed(operation, *first.tensor, number_of(*second.scalar));
    if (!first.tensor) return computed_from_right(operation, number_of(*first.scalar), *second.tensor);
    return computed(operation, *first.tensor, *second.tensor);
  } catch (...) {
    rethrow_as_python(symbols[operation], concat("\n  left: ", kind_of_operand(left, same_layout),
                                                 "\n  right: ", kind_of_operand(right, same_layout)));
  }
}

void write_tensor(const at::Tensor& target, const at::Tensor& given, bool same_layout) {
  const bool fits = target.sizes() == given.sizes();
  if (!fits || target.scalar_type() != given.scalar_type())
    fail(fits ? FPT_ERR_DTYPE : FPT_ERR_SHAPE, "the array is ", kind_of(target, same_layout),
         ", and what is assigned to its tensor ", kind_of(given, same_layout), "; nothing is broadcast or converted");
  try {
    if (target.grad_fn()) target.detach_();  // the graph of earlier values would grow with every assignment
    overwrite(target, given);
  } catch (...) {
    rethrow_as_python("assigning to a tensor made of an array");
  }
}

void require_writable(const at::Tensor& tensor) {
  if (tensor.grad_fn() && tensor.is_view())
    fail(FPT_ERR_ARGUMENT,
         "a view of a tensor with a graph cannot be an output: assign to it with torch_call(\"Tensor.",
         "copy_\", ...)");
}

void end_graph(const at::Tensor& tensor) {
  if (tensor.grad_fn() && !tensor.is_view()) tensor.detach_();
}

void note_write(const at::Tensor& tensor) {
  end_graph(tensor);
  // what inference mode made is kept for no gradient, and has no counter
  if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
}

void overwrite(const at::Tensor& target, const at::Tensor& value) {
  target.copy_(overlap(target, value) ? value.clone() : value);
}

void assign(const at::Tensor& target, const at::Tensor& value) {
  if (target.grad_fn()) target.detach_();  // as above
  if (target.requires_grad() && !value.requires_grad()) target.requires_grad_(false);
  const at::AutoGradMode mode(value.requires_grad());
  overwrite(target, value);
}

}  // namespace fpt::direct
