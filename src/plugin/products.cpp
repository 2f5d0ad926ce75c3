// SPDX-License-Identifier: MIT
#include "plugin/products.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/vdot.h>

#include "plugin/torch.hpp"

namespace fpt::direct {
namespace {

/// Whole numbers up to 4, times 1 + 2i where they are complex.
at::Tensor numbers(at::IntArrayRef shape, at::ScalarType type, int64_t first) {
  const at::Tensor values =
      at::arange(first, first + c10::multiply_integers(shape), at::kLong).remainder(5).view(shape).to(type);
  return c10::isComplexType(type) ? values * at::Scalar(c10::complex<double>(1, 2)) : values;
}

/// Rows times columns, by products of elements and sums alone.
at::Tensor product(const at::Tensor& a, const at::Tensor& b) { return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2); }

const char* wrong_of(at::ScalarType type) {
  for (const int64_t n : {int64_t{3}, int64_t{40}}) {
    const at::Tensor a = numbers({2, n, n}, type, 0), b = numbers({2, n, n}, type, 2);
    const at::Tensor x = a[0][1], y = b[1][2];
    if (!at::mm(a[0], b[0]).equal(product(a[0], b[0]))) return "mm";
    if (!at::bmm(a, b).equal(product(a, b))) return "bmm";
    if (!at::mv(a[0], y).equal((a[0] * y).sum(-1))) return "mv";
    if (!at::dot(x, y).equal((x * y).sum())) return "dot";
    if (!at::vdot(x, y).equal((x.conj().resolve_conj() * y).sum())) return "vdot";
  }
  const at::Tensor factor = numbers({3, 3}, type, 1).tril(-1) + at::eye(3, type) * 2;
  const at::Tensor found = std::get<0>(at::linalg_cholesky_ex(product(factor, factor.mH().resolve_conj())));
  if (!found.allclose(factor, 1e-3, 1e-3)) return "linalg.cholesky";
  return nullptr;
}

}  // namespace

const char* wrong_product() {
  const at::NoGradGuard without_graph;
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kComplexFloat, at::kComplexDouble})
    if (const char* wrong = wrong_of(type)) return wrong;
  return nullptr;
}

}  // namespace fpt::direct
