// SPDX-License-Identifier: MIT
/// Element types: one table with all that is known of each. Knows nothing of Python.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "ftn_pytorch.h"

namespace fpt {

enum class DtypeGroup : char {
  none,
  logical,  ///< one byte, as Python and C have it
  integer,  ///< signed or unsigned
  real,
  complex,
  fortran_logical,  ///< scalars of Fortran only
};

/// Who may have an element type.
enum class DtypeUse : char {
  none,
  argument,  ///< arrays and scalars of Fortran, and results
  result,    ///< results alone
  scalar,    ///< scalars of Fortran alone
};

struct DtypeFacts {
  std::size_t size;     ///< bytes of an element; 0 where elements have no size
  const char* name;     ///< as torch and NumPy call it: "float32"
  const char* fortran;  ///< "real(real32)"
  DtypeGroup group;
  DtypeUse use;
  int exact_bits;            ///< integers of this many bits are exact
  uint8_t dlpack_code;       ///< DLDataTypeCode, https://dmlc.github.io/dlpack/latest/c_api.html
  char buffer_format;        ///< letter of Python's module struct; 'i' stands for signed integers of all sizes
  int8_t torch_scalar_type;  ///< c10::ScalarType, part of torch's stable C interface
};

/// In the order of the constants in ftn_pytorch.h.
inline constexpr DtypeFacts dtype_table[] = {
    {0, "nothing", "nothing", DtypeGroup::none, DtypeUse::none, 0, 255, '-', -1},
    {1, "bool", "logical(c_bool)", DtypeGroup::logical, DtypeUse::argument, 1, 6, '?', 11},
    {1, "int8", "integer(int8)", DtypeGroup::integer, DtypeUse::argument, 7, 0, 'i', 1},
    {2, "int16", "integer(int16)", DtypeGroup::integer, DtypeUse::argument, 15, 0, 'i', 2},
    {4, "int32", "integer(int32)", DtypeGroup::integer, DtypeUse::argument, 31, 0, 'i', 3},
    {8, "int64", "integer(int64)", DtypeGroup::integer, DtypeUse::argument, 63, 0, 'i', 4},
    {4, "float32", "real(real32)", DtypeGroup::real, DtypeUse::argument, 24, 2, 'f', 6},
    {8, "float64", "real(real64)", DtypeGroup::real, DtypeUse::argument, 53, 2, 'd', 7},
    {8, "complex64", "complex(real32)", DtypeGroup::complex, DtypeUse::argument, 24, 5, 'F', 9},
    {16, "complex128", "complex(real64)", DtypeGroup::complex, DtypeUse::argument, 53, 5, 'D', 10},
    {0, "str", "character", DtypeGroup::none, DtypeUse::none, 0, 255, '-', -1},
    {1, "uint8", "an unsigned integer", DtypeGroup::integer, DtypeUse::result, 8, 1, 'B', 0},
    {2, "float16", "a half-precision real", DtypeGroup::real, DtypeUse::result, 11, 2, 'e', 5},
    {2, "bfloat16", "a bfloat16 real", DtypeGroup::real, DtypeUse::result, 8, 4, '-', 15},
    {2, "bool", "logical of 2 bytes", DtypeGroup::fortran_logical, DtypeUse::scalar, 1, 255, '-', -1},
    {4, "bool", "logical of 4 bytes", DtypeGroup::fortran_logical, DtypeUse::scalar, 1, 255, '-', -1},
    {8, "bool", "logical of 8 bytes", DtypeGroup::fortran_logical, DtypeUse::scalar, 1, 255, '-', -1},
};
inline constexpr int32_t dtype_count = static_cast<int32_t>(sizeof dtype_table / sizeof *dtype_table);
static_assert(dtype_count == FPT_LOGICAL64 + 1, "one row for each element type");

/// The row of an element type; that of FPT_NONE for a number that is none.
constexpr const DtypeFacts& dtype_facts(int32_t dtype) noexcept {
  return dtype_table[dtype < 0 || dtype >= dtype_count ? FPT_NONE : dtype];
}

constexpr std::size_t dtype_size(int32_t dtype) noexcept { return dtype_facts(dtype).size; }
constexpr const char* dtype_name(int32_t dtype) noexcept { return dtype_facts(dtype).name; }
constexpr const char* dtype_fortran_name(int32_t dtype) noexcept { return dtype_facts(dtype).fortran; }
constexpr bool is_real(int32_t dtype) noexcept { return dtype_facts(dtype).group == DtypeGroup::real; }
constexpr bool is_complex(int32_t dtype) noexcept { return dtype_facts(dtype).group == DtypeGroup::complex; }
constexpr bool is_logical(int32_t dtype) noexcept {
  return dtype_facts(dtype).group == DtypeGroup::logical || dtype_facts(dtype).group == DtypeGroup::fortran_logical;
}
/// Half precision, which torch and NumPy widen before anything is copied here.
constexpr bool is_half(int32_t dtype) noexcept { return is_real(dtype) && dtype_size(dtype) == 2; }
/// True for the type of an array that Fortran can describe.
constexpr bool is_argument(int32_t dtype) noexcept { return dtype_facts(dtype).use == DtypeUse::argument; }
/// True for the type of an array that torch can have.
constexpr bool is_of_tensors(int32_t dtype) noexcept {
  return is_argument(dtype) || dtype_facts(dtype).use == DtypeUse::result;
}

/// The first type for which a row answers true; FPT_NONE if there is none.
template <class Predicate>
constexpr int32_t find_dtype(const Predicate& predicate) noexcept {
  for (int32_t dtype = FPT_BOOL; dtype < dtype_count; ++dtype)
    if (is_of_tensors(dtype) && predicate(dtype_table[dtype])) return dtype;
  return FPT_NONE;
}

/// True if every value of `from` has an exact counterpart in `to`.
bool is_widening(int32_t from, int32_t to) noexcept;

/// True if values may be converted when the user asked for it: never from complex to real or from real to integer.
bool is_castable(int32_t from, int32_t to) noexcept;

/// The type that an array of type `dtype` gets where real arrays become `real` (FPT_FLOAT32, FPT_FLOAT64; FPT_NONE: all
/// stay as they are): complex arrays follow in width, others are left alone.
constexpr int32_t cast_dtype(int32_t dtype, int32_t real) noexcept {
  if (real == FPT_NONE || !(is_real(dtype) || is_complex(dtype))) return dtype;
  if (is_real(dtype)) return real;
  return real == FPT_FLOAT32 ? FPT_COMPLEX64 : FPT_COMPLEX128;
}

/// Call `visit` with a value of the C++ type that has the elements of `dtype`. False, and nothing is called, where C++
/// has none: text, half precision.
template <class Visit>
bool with_type(int32_t dtype, Visit&& visit) {
  switch (dtype) {
    case FPT_BOOL:
    case FPT_UINT8:
      return visit(uint8_t{}), true;
    case FPT_INT8:
      return visit(int8_t{}), true;
    case FPT_INT16:
    case FPT_LOGICAL16:
      return visit(int16_t{}), true;
    case FPT_INT32:
    case FPT_LOGICAL32:
      return visit(int32_t{}), true;
    case FPT_INT64:
    case FPT_LOGICAL64:
      return visit(int64_t{}), true;
    case FPT_FLOAT32:
      return visit(float{}), true;
    case FPT_FLOAT64:
      return visit(double{}), true;
    case FPT_COMPLEX64:
      return visit(std::complex<float>{}), true;
    case FPT_COMPLEX128:
      return visit(std::complex<double>{}), true;
    default:
      return false;
  }
}

}  // namespace fpt
