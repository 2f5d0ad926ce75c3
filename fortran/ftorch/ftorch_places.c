/* SPDX-License-Identifier: MIT */
/* What the module ftorch keeps for each thread: extents that it hands out by pointer, and which nameless tensor was
   read where. Fortran has no variables of a thread without OpenMP. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Called by Fortran, which declares them in fpt_ftorch.f90. */
int64_t *fpt_ftorch_row(void);
int64_t fpt_ftorch_place(const void *home, int64_t handle);

enum { ROWS = 64, MAX_RANK = 7, FIRST_SIZE = 64 };

/* A row for the extents or strides of one tensor; it is used again after 63 others. */
int64_t *fpt_ftorch_row(void) {
  static _Thread_local int64_t rows[ROWS][MAX_RANK];
  static _Thread_local unsigned next;
  return rows[next++ % ROWS];
}

typedef struct {
  const void *home;
  int64_t handle;
} Place;

static _Thread_local Place *places; /* open addressing; at least half of it is empty */
static _Thread_local size_t size, used;

static Place *find(Place *table, size_t length, const void *home) {
  size_t i = ((uintptr_t)home >> 3) * 0x9E3779B97F4A7C15u % length;
  while (table[i].home && table[i].home != home) i = (i + 1) % length;
  return &table[i];
}

static int grow(void) {
  const size_t length = size ? 2 * size : FIRST_SIZE;
  Place *larger = calloc(length, sizeof *larger);
  if (!larger) return 0;
  for (size_t i = 0; i < size; ++i)
    if (places[i].home) *find(larger, length, places[i].home) = places[i];
  free(places);
  places = larger;
  size = length;
  return 1;
}

/* Note that the tensor `handle` was read at the address `home`. Returns the tensor that was read there before, which is
   over, because the compiler has used its place again; 0 where there was none, or where it is the same. */
int64_t fpt_ftorch_place(const void *home, int64_t handle) {
  if (2 * used >= size && !grow()) return 0; /* without memory nothing is noted, and nothing is freed */
  Place *place = find(places, size, home);
  const int64_t before = place->home ? place->handle : 0;
  if (!place->home) ++used;
  place->home = home;
  place->handle = handle;
  return before == handle ? 0 : before;
}
