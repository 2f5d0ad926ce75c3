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

at::Tensor as_tensor(const at::Scalar& scalar) { return at::native::wrapped_scalar_tensor(scalar); }
const at::Tensor& as_tensor(const at::Tensor& tensor) { return tensor; }

template <class Right>
at::Tensor computed_with(int32_t operation, const at::Tensor& left, const Right& right) {
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
      fail(FPT_ERR_PYTHON, "TypeError: matmul takes tensors, and one operand is a number");
  }
}

const char* python_name_of(const std::exception& exception) {
  if (dynamic_cast<const c10::IndexError*>(&exception)) return "IndexError";
  if (dynamic_cast<const c10::ValueError*>(&exception)) return "ValueError";
  if (dynamic_cast<const c10::TypeError*>(&exception)) return "TypeError";
  if (dynamic_cast<const c10::NotImplementedError*>(&exception)) return "NotImplementedError";
  return "RuntimeError";
}

}  // namespace

at::Tensor computed(int32_t operation, const at::Tensor& left, const at::Tensor& right) {
  return computed_with(operation, left, right);
}

at::Tensor computed(int32_t operation, const at::Tensor& left, const at::Scalar& right) {
  return computed_with(operation, left, right);
}

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

void rethrow_as_python(const std::string& context, const std::string& end) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& exception) {
    const char* type = python_name_of(exception);
    rethrow_as(FPT_ERR_PYTHON, context.empty() ? type : concat(context, ": ", type), end);
  }
}

}  // namespace fpt::direct
