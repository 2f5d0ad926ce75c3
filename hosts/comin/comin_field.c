/* SPDX-License-Identifier: MIT
 * What a field of ICON is, by ComIn's C interface. Its header fits the ComIn that is there: in Fortran the type of a
 * field is another one from 0.3 on. */
#include <comin.h>
#include <string.h>

#define DIMENSIONS 5
#define HAS_TYPES (COMIN_VERSION_MAJOR > 0 || COMIN_VERSION_MINOR >= 3)

/* Whether an axis is one of the field, rather than one of the five that each field of ComIn has. */
static int is_axis(void* handle, const int shape[DIMENSIONS], int axis) {
#if HAS_TYPES
  int meanings[DIMENSIONS];
  comin_var_get_dim_semantics(handle, meanings);
  if (meanings[axis] == COMIN_DIM_SEMANTICS_UNDEF) return shape[axis] > 1;
  return meanings[axis] != COMIN_DIM_SEMANTICS_UNUSED && meanings[axis] != COMIN_DIM_SEMANTICS_CONTAINER;
#else
  int cell, level, block, contained;
  comin_var_get_pos(handle, &cell, &level, &block, &contained);
  return axis == cell || axis == level || axis == block || (axis != contained && shape[axis] > 1);
#endif
}

#if HAS_TYPES
static int is_valid(void) {
  int is = comin_error_get() == COMIN_SUCCESS;
  comin_error_reset();
  return is;
}
#endif

/* 1: double, 2: float, 3: int, 0: anything else. ComIn tells by an error, and a container has no metadata to ask. */
static int type_of(void* handle) {
#if HAS_TYPES
  comin_var_get_ptr_double(handle);
  if (is_valid()) return 1;
  comin_var_get_ptr_float(handle);
  if (is_valid()) return 2;
  comin_var_get_ptr_int(handle);
  return is_valid() ? 3 : 0;
#else
  (void)handle;
  return 1;
#endif
}

/* Ask ComIn for a field, in the secondary constructor only. entry_point: where it is used. domain: from 1 on. access:
 * COMIN_FLAG_ of all that use it there; ComIn keeps those of the first question. shape: receives the extents in
 * Fortran order. rank: how many these are, or 0 for a container of fields. type: see type_of.
 * Returns ComIn's handle, or NULL if there is no such field. */
void* comin_field_find(int entry_point, const char* name, int domain, int access, int shape[DIMENSIONS], int* rank,
                       int* type) {
  struct t_comin_var_descriptor descriptor = {.id = domain};
  if (strlen(name) >= sizeof descriptor.name) return NULL;
  strcpy(descriptor.name, name);
  void* entry_points = &entry_point; /* of int in 0.2, of an enumeration later */

  comin_error_set_errors_return(true); /* ComIn's own text does not name the field */
#if HAS_TYPES
  comin_error_reset();
#endif
  void* handle = comin_var_get(1, entry_points, descriptor, access);
#if HAS_TYPES
  if (!is_valid()) handle = NULL; /* on some errors 0.4 returns the field of the last question */
#endif
  if (handle != NULL) *type = type_of(handle);
  comin_error_set_errors_return(false);
  if (handle == NULL) return NULL;

  int extents[DIMENSIONS];
  long long whole = 1, kept = 1;
  comin_var_get_shape(handle, extents);
  *rank = 0;
  for (int axis = 0; axis < DIMENSIONS; ++axis) {
    whole *= extents[axis];
    if (!is_axis(handle, extents, axis)) continue;
    kept *= extents[axis];
    shape[(*rank)++] = extents[axis];
  }
  if (whole != kept) *rank = 0;
  return handle;
}
