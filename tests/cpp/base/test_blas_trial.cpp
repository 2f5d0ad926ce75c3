// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <complex>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "base/blas_trial.hpp"

namespace fpt {
namespace {

template <class Integer, class Number>
void multiply(const char*, const char*, const Integer* m, const Integer* n, const Integer* k, const Number* alpha,
              const Number* a, const Integer* lda, const Number* b, const Integer* ldb, const Number* beta, Number* c,
              const Integer* ldc) {
  for (Integer j = 0; j < *n; ++j)
    for (Integer i = 0; i < *m; ++i) {
      Number sum = 0;
      for (Integer l = 0; l < *k; ++l) sum += a[i + l * *lda] * b[l + j * *ldb];
      c[i + j * *ldc] = *alpha * sum + *beta * c[i + j * *ldc];
    }
}

template <class Integer, class Number>
Number sum_of_products(const Integer* n, const Number* x, const Integer* step_x, const Number* y,
                       const Integer* step_y) {
  Number sum = 0;
  for (Integer i = 0; i < *n; ++i) sum += x[i * *step_x] * y[i * *step_y];
  return sum;
}

template <class Integer, class Number>
void decompose(const char*, const Integer* n, Number* a, const Integer* lda, Integer* info) {
  *info = 0;
  for (Integer j = 0; j < *n; ++j) {
    for (Integer l = 0; l < j; ++l) a[j + j * *lda] -= a[j + l * *lda] * a[j + l * *lda];
    a[j + j * *lda] = std::sqrt(a[j + j * *lda]);
    for (Integer i = j + 1; i < *n; ++i) a[i + j * *lda] /= a[j + j * *lda];
  }
}

void zeros(const char*, const char*, const int*, const int*, const int*, const void*, const void*, const int*,
           const void*, const int*, const void*, float* c, const int*) {
  *c = 0;
}
void crashes() { std::raise(SIGSEGV); }
void ends() { std::exit(0); }

template <class Function>
ProgramFunction function(const char* name, Function* address) {
  return {name, reinterpret_cast<void*>(address), "libmodel.so"};
}

TEST(BlasTrial, RightIsWhatTorchCanUse) {
  using single = std::complex<float>;
  using twice = std::complex<double>;
  EXPECT_EQ(try_blas({}), "");
  EXPECT_EQ(
      try_blas({function("sgemm_", multiply<int32_t, float>), function("dgemm_", multiply<int32_t, double>),
                function("cgemm_", multiply<int32_t, single>), function("zgemm_", multiply<int32_t, twice>),
                function("sdot_", sum_of_products<int32_t, float>), function("ddot_", sum_of_products<int32_t, double>),
                function("spotrf_", decompose<int32_t, float>), function("dpotrf_", decompose<int32_t, double>),
                function("cpotrf_", decompose<int32_t, single>), function("zpotrf_", decompose<int32_t, twice>),
                function("cdotc_", crashes)}),
      "");
}

TEST(BlasTrial, IntegersOfEightBytesAreSeen) {
  const std::string wide = " of libmodel.so takes integers of 8 bytes, and torch gives it such of 4";
  EXPECT_EQ(try_blas({function("sgemm_", multiply<int64_t, float>)}), "sgemm_" + wide);
  EXPECT_EQ(try_blas({function("ddot_", sum_of_products<int64_t, double>)}), "ddot_" + wide);
  EXPECT_EQ(try_blas({function("zpotrf_", decompose<int64_t, std::complex<double>>)}), "zpotrf_" + wide);
}

TEST(BlasTrial, AnythingElseUnderSuchANameIsSeen) {
  const std::string other = " of libmodel.so does not compute what torch's own does";
  EXPECT_EQ(try_blas({function("sgemm_", multiply<int32_t, double>)}), "sgemm_" + other);
  EXPECT_EQ(try_blas({function("ddot_", sum_of_products<int32_t, float>)}), "ddot_" + other);
  EXPECT_EQ(try_blas({function("sgemm_", zeros)}), "sgemm_" + other);
  EXPECT_EQ(try_blas({function("dgemm_", crashes)}), "dgemm_" + other);
  EXPECT_EQ(try_blas({function("dgemm_", multiply<int32_t, double>), function("spotrf_", ends)}), "spotrf_" + other);
}

}  // namespace
}  // namespace fpt
