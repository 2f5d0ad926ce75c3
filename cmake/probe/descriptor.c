/* SPDX-License-Identifier: MIT */
/* C side of descriptor.f90. */
#include <ISO_Fortran_binding.h>

int is_null(const CFI_cdesc_t *x) { return x->base_addr == NULL; }

/* array(4:1:-2, 2:4) of real(c_double) :: array(5, 4) */
int is_section(const CFI_cdesc_t *x) {
  return x->rank == 2 && x->type == CFI_type_double && x->elem_len == sizeof(double) && x->dim[0].extent == 2 &&
         x->dim[0].sm == -16 && x->dim[1].extent == 3 && x->dim[1].sm == 40;
}

/* "name" */
int is_text(const CFI_cdesc_t *x) { return x->rank == 0 && x->type == CFI_type_char && x->elem_len == 4; }
