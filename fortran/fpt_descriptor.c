/* SPDX-License-Identifier: MIT */
/**
 * Between the descriptors of the Fortran compiler and the C interface: fpt_in, fpt_out, fpt_copy and their named
 * forms make an fpt_arg of whatever they are given, fpt_point_... makes a Fortran pointer of memory and strides.
 *
 * Type codes, attribute codes and the layout of CFI_cdesc_t differ from compiler to compiler. This file therefore
 * belongs to the Fortran modules: it is compiled with the ISO_Fortran_binding.h of the compiler that builds them.
 */
#include <ISO_Fortran_binding.h>
#include <stdio.h>
#include <string.h>

#include "ftn_pytorch.h"

/* The standard names no code for logicals of more than one byte. GNU composes a code of type and kind; flang takes the
   codes of the C types of least width, which no Fortran integer has. */
#ifdef CFI_type_mask
#define LOGICAL(bits) (CFI_type_Logical + ((bits) / 8 << CFI_type_kind_shift))
#elif CFI_type_int_least32_t != CFI_type_int32_t
#define LOGICAL(bits) CFI_type_int_least##bits##_t
#endif

/* Kinds of arrays, as fpt_kinds.fypp and the compiler call them. */
#define KINDS(ROW)                                  \
  ROW(r32, CFI_type_float, FPT_FLOAT32)             \
  ROW(r64, CFI_type_double, FPT_FLOAT64)            \
  ROW(i8, CFI_type_int8_t, FPT_INT8)                \
  ROW(i16, CFI_type_int16_t, FPT_INT16)             \
  ROW(i32, CFI_type_int32_t, FPT_INT32)             \
  ROW(i64, CFI_type_int64_t, FPT_INT64)             \
  ROW(c32, CFI_type_float_Complex, FPT_COMPLEX64)   \
  ROW(c64, CFI_type_double_Complex, FPT_COMPLEX128) \
  ROW(l8, CFI_type_Bool, FPT_BOOL)

#define CASE(kind, type, dtype) \
  case type:                    \
    return dtype;

static int32_t dtype_of(CFI_type_t type) {
  switch (type) {
    KINDS(CASE)
    case CFI_type_char:
      return FPT_TEXT;
#ifdef LOGICAL
    case LOGICAL(16):
      return FPT_LOGICAL16;
    case LOGICAL(32):
      return FPT_LOGICAL32;
    case LOGICAL(64):
      return FPT_LOGICAL64;
#endif
    default:
      return FPT_NONE; /* class(*), derived types, real(10), real(16), ...: refused as FPT_ERR_KIND */
  }
}

/* What a program calls a type that dtype_of() does not know, for the text of the error. */
static void name_type(char *text, size_t size, CFI_type_t type) {
  const char *name = type == CFI_type_struct  ? "a derived type"
                     : type == CFI_type_cptr  ? "type(c_ptr)"
                     : type == CFI_type_char  ? "an array of character"
                     : type == CFI_type_other ? "class(*) or class(t)"
                                              : NULL;
#ifdef CFI_type_mask
  static const char *const intrinsic[] = {"integer", "logical", "real", "complex", "character"};
  const int number = type & CFI_type_mask, kind = type >> CFI_type_kind_shift;
  if (!name && number >= CFI_type_Integer && number <= CFI_type_Character) {
    snprintf(text, size, "%s(kind=%d)", intrinsic[number - CFI_type_Integer], kind);
    return;
  }
#elif defined CFI_type_extended_double /* flang */
  if (!name)
    name = type == CFI_type_int128_t                                                          ? "integer(kind=16)"
           : type == CFI_type_half_float                                                      ? "real(kind=2)"
           : type == CFI_type_bfloat                                                          ? "real(kind=3)"
           : type == CFI_type_extended_double || type == CFI_type_long_double                 ? "real(kind=10)"
           : type == CFI_type_float128                                                        ? "real(kind=16)"
           : type == CFI_type_extended_double_Complex || type == CFI_type_long_double_Complex ? "complex(kind=10)"
           : type == CFI_type_float128_Complex                                                ? "complex(kind=16)"
           : type == CFI_type_char16_t                                                        ? "character(kind=2)"
           : type == CFI_type_char32_t                                                        ? "character(kind=4)"
                                                                                              : NULL;
#endif
  snprintf(text, size, "%s", name ? name : "a type of the compiler's own");
}

/* gfortran multiplies strides by the span, a word of its own descriptor, and does not set it where an allocatable array
   gets memory from a function with an array as its result: x = reshape(...). It is then what the memory held, often 0.
   Such an array is whole, so its steps are contiguous ones times this word. True where no array has this word: its
   elements would lie on each other, or reach over more memory than there is. */
static int has_no_span(const CFI_cdesc_t *x) {
  const CFI_index_t longest = (CFI_index_t)1 << (sizeof(CFI_index_t) > 4 ? 46 : 30);
  const CFI_index_t span = x->dim[0].sm, size = (CFI_index_t)x->elem_len;
  if (span >= size && span <= longest) return 0;
  if (span <= -size && span >= -longest) return 0;
  uint64_t count = 1;
  for (int i = 0; i < x->rank; ++i) {
    if (x->dim[i].sm != (CFI_index_t)((uint64_t)span * count)) return 0;
    count *= (uint64_t)x->dim[i].extent;
  }
  return 1;
}

/* What is wrong with x is recorded in the result, and reported by the call that uses it. */
static void describe(fpt_arg *arg, const CFI_cdesc_t *x, int32_t access) {
  const int32_t dtype = dtype_of(x->type);
  if (dtype == FPT_TEXT && x->rank == 0) {
    fpt_arg_text(arg, x->base_addr, (int64_t)x->elem_len, access);
    return;
  }

  /* Only the address of an unallocated array means anything; its extents are whatever the memory held. */
  const int32_t rank = x->base_addr ? x->rank : 0;
  int64_t extents[CFI_MAX_RANK], strides[CFI_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) {
    extents[i] = x->dim[i].extent; /* -1 for the last axis of an assumed-size array */
    strides[i] = x->dim[i].sm;
  }
  if (rank > 0 && has_no_span(x)) {
    strides[0] = (int64_t)x->elem_len;
    for (int32_t i = 1; i < rank; ++i) strides[i] = strides[i - 1] * extents[i - 1];
  }
  if (fpt_arg_array(arg, x->base_addr, dtype, rank, extents, strides, access) == FPT_ERR_KIND && arg->dtype == FPT_NONE)
    name_type(arg->u.text, sizeof arg->u.text, x->type);
}

static void describe_named(fpt_arg *arg, const CFI_cdesc_t *name, const CFI_cdesc_t *x, int32_t access) {
  describe(arg, x, access);
  if (dtype_of(name->type) == FPT_TEXT && name->rank == 0)
    fpt_arg_name(arg, name->base_addr, (int64_t)name->elem_len);
  else
    fpt_arg_name(arg, NULL, 0);
}

/* An fpt_arg as the Fortran modules declare it. Link-time optimisation says of a function whose results have another
   type on the other side that it may compute wrongly. */
typedef struct torch_arg {
  void *data;
  int64_t words[31];
} torch_arg;

static torch_arg in_fortran(const fpt_arg *arg) {
  torch_arg words;
  _Static_assert(sizeof words == sizeof *arg, "the same memory");
  memcpy(&words, arg, sizeof words);
  return words;
}

#define GENERIC(function, access)                                             \
  torch_arg function(const CFI_cdesc_t *x) {                                  \
    fpt_arg arg;                                                              \
    describe(&arg, x, access);                                                \
    return in_fortran(&arg);                                                  \
  }                                                                           \
  torch_arg function##_named(const CFI_cdesc_t *name, const CFI_cdesc_t *x) { \
    fpt_arg arg;                                                              \
    describe_named(&arg, name, x, access);                                    \
    return in_fortran(&arg);                                                  \
  }

GENERIC(fpt_in, FPT_IN)
GENERIC(fpt_out, FPT_OUT)
GENERIC(fpt_copy, FPT_COPY)

/**
 * Associate a Fortran pointer of any type and rank with memory; lower bounds become 1.
 *
 * @param pointer  its type, kind and rank say how the memory is read; keeps its target on failure
 * @param data     first element; NULL only for an array without elements
 * @param extents  [rank] in elements, Fortran order
 * @param strides  [rank] in bytes, may be negative
 * @return FPT_OK, or a negated status: the Fortran side has the texts for those, see get_last_error of fpt_status.f90
 */
static fpt_status point(CFI_cdesc_t *pointer, void *data, const int64_t extents[], const int64_t strides[]) {
  static int64_t nothing; /* a pointer to no elements must be associated all the same */
  CFI_CDESC_T(CFI_MAX_RANK) storage;
  CFI_cdesc_t *array = (CFI_cdesc_t *)&storage;
  CFI_index_t shape[CFI_MAX_RANK], lower_bounds[CFI_MAX_RANK];
  const CFI_rank_t rank = pointer->rank;

  for (int i = 0; i < rank; ++i) {
    if (strides[i] % (int64_t)pointer->elem_len != 0) return -FPT_ERR_STRIDE;
    /* One element for all: has_no_span() could not tell such a pointer from an array. */
    if (strides[i] == 0 && extents[i] > 1) return -FPT_ERR_STRIDE;
    shape[i] = (CFI_index_t)extents[i];
    lower_bounds[i] = 1;
  }
  if (CFI_establish(array, data ? data : &nothing, CFI_attribute_other, pointer->type, pointer->elem_len, rank,
                    shape) != CFI_SUCCESS)
    return -FPT_ERR_INTERNAL;
  for (int i = 0; i < rank; ++i) array->dim[i].sm = (CFI_index_t)strides[i];
  return CFI_setpointer(pointer, array, lower_bounds) == CFI_SUCCESS ? FPT_OK : -FPT_ERR_INTERNAL;
}

/* One name per type, because compilers compare the Fortran interfaces of one name with each other. */
#define POINT(kind, type, dtype)                                                                                    \
  fpt_status fpt_point_##kind(CFI_cdesc_t *pointer, void *data, const int64_t extents[], const int64_t strides[]) { \
    return point(pointer, data, extents, strides);                                                                  \
  }

KINDS(POINT)
