// SPDX-License-Identifier: MIT
#include "arrays/array.hpp"

#include <algorithm>

namespace fpt {
namespace {

struct Facts {
  std::size_t size;
  const char* name;
  const char* fortran;
  char group;      // b(ool), i(nteger), f(loat), c(omplex), l(ogical of Fortran)
  int exact_bits;  // integers of this many bits are exact
};

constexpr Facts facts[] = {
    {0, "nothing", "nothing", '-', 0},
    {1, "bool", "logical(c_bool)", 'b', 1},
    {1, "int8", "integer(int8)", 'i', 7},
    {2, "int16", "integer(int16)", 'i', 15},
    {4, "int32", "integer(int32)", 'i', 31},
    {8, "int64", "integer(int64)", 'i', 63},
    {4, "float32", "real(real32)", 'f', 24},
    {8, "float64", "real(real64)", 'f', 53},
    {8, "complex64", "complex(real32)", 'c', 24},
    {16, "complex128", "complex(real64)", 'c', 53},
    {0, "str", "character", '-', 0},
    {1, "uint8", "an unsigned integer", 'i', 8},
    {2, "float16", "a half-precision real", 'f', 11},
    {2, "bfloat16", "a bfloat16 real", 'f', 8},
    {2, "bool", "logical of 2 bytes", 'l', 1},
    {4, "bool", "logical of 4 bytes", 'l', 1},
    {8, "bool", "logical of 8 bytes", 'l', 1},
};

const Facts& of(int32_t dtype) {
  constexpr int32_t last = static_cast<int32_t>(sizeof facts / sizeof *facts) - 1;
  return facts[dtype < 0 || dtype > last ? 0 : dtype];
}

}  // namespace

std::size_t dtype_size(int32_t dtype) noexcept { return of(dtype).size; }
const char* dtype_name(int32_t dtype) noexcept { return of(dtype).name; }
const char* dtype_fortran_name(int32_t dtype) noexcept { return of(dtype).fortran; }
bool is_float(int32_t dtype) noexcept { return of(dtype).group == 'f'; }
bool is_complex(int32_t dtype) noexcept { return of(dtype).group == 'c'; }
bool is_logical(int32_t dtype) noexcept { return of(dtype).group == 'l' || of(dtype).group == 'b'; }

bool is_widening(int32_t from, int32_t to) noexcept {
  if (from == to) return true;
  const Facts& source = of(from);
  const Facts& target = of(to);
  if (is_logical(from) || is_logical(to)) return is_logical(from) && is_logical(to);
  if (source.exact_bits == 0 || target.exact_bits == 0) return false;
  if (to == FPT_UINT8) return false;  // no sign
  // bfloat16 has the exponent of float32, which float16 has not
  if (from == FPT_BFLOAT16 && to == FPT_FLOAT16) return false;
  const std::string order = "ifc";
  return order.find(source.group) <= order.find(target.group) && source.exact_bits <= target.exact_bits;
}

bool is_castable(int32_t from, int32_t to) noexcept {
  if (is_widening(from, to)) return true;
  if (is_logical(from) || is_logical(to)) return false;
  const std::string order = "ifc";
  const auto source = order.find(of(from).group), target = order.find(of(to).group);
  return source != std::string::npos && target != std::string::npos && source <= target;
}

[[gnu::hot]]
int64_t element_count(const Array& array) noexcept {
  int64_t count = 1;
  for (int i = 0; i < array.rank; ++i) count *= array.extents[i];
  return count;
}

[[gnu::hot]]
bool is_contiguous(const Array& array) noexcept {
  if (element_count(array) == 0) return true;
  int64_t expected = static_cast<int64_t>(dtype_size(array.dtype));
  for (int i = 0; i < array.rank; ++i) {
    if (array.extents[i] != 1 && array.strides[i] != expected) return false;
    expected *= array.extents[i];
  }
  return true;
}

bool has_negative_stride(const Array& array) noexcept {
  return std::any_of(array.strides, array.strides + array.rank, [](int64_t stride) { return stride < 0; });
}

[[gnu::hot]]
bool same_shape(const Array& a, const Array& b) noexcept {
  return a.rank == b.rank && std::equal(a.extents, a.extents + a.rank, b.extents);
}

[[gnu::hot]]
Range memory_range(const Array& array) noexcept {
  const char* begin = static_cast<const char*>(array.data);
  const char* end = begin;
  if (element_count(array) == 0) return {begin, end};
  for (int i = 0; i < array.rank; ++i) {
    const int64_t reach = (array.extents[i] - 1) * array.strides[i];
    (reach < 0 ? begin : end) += reach;
  }
  return {begin, end + dtype_size(array.dtype)};
}

[[gnu::hot]]
bool overlap(const Array& a, const Array& b) noexcept {
  const Range one = memory_range(a), other = memory_range(b);
  return one.begin < other.end && other.begin < one.end;
}

[[gnu::hot]]
Array reversed(const Array& array) noexcept {
  Array result;
  result.data = array.data;
  result.dtype = array.dtype;
  result.rank = array.rank;
  result.on_host = array.on_host;
  for (int from = array.rank - 1, to = 0; from >= 0; --from, ++to) {
    result.extents[to] = array.extents[from];
    result.strides[to] = array.strides[from];
  }
  return result;
}

void set_contiguous(Array& array) noexcept {
  int64_t stride = static_cast<int64_t>(dtype_size(array.dtype));
  for (int i = 0; i < array.rank; ++i) {
    array.strides[i] = stride;
    stride *= std::max<int64_t>(array.extents[i], 1);
  }
}

std::string shape_text(const Array& array) {
  std::string text = "(";
  for (int i = 0; i < array.rank; ++i) text += (i ? ", " : "") + std::to_string(array.extents[i]);
  return text + (array.rank == 1 ? ",)" : ")");
}

}  // namespace fpt
