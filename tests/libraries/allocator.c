/* SPDX-License-Identifier: MIT */
/* A malloc of somebody else, as a cluster or a program preloads it: a mark stands before each block, and what it has
 * not given ends the program. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void __libc_free(void *block);

static const uint64_t mark = 0x0123456789abcdef;
typedef struct {
  uint64_t mark;
  void *whole;
  size_t size, unused;
} Head;

static void *give(size_t alignment, size_t size) {
  if (alignment < 32) alignment = 32;
  char *whole = __libc_malloc(size + alignment + sizeof(Head));
  if (whole == NULL) return NULL;
  char *block = whole + sizeof(Head);
  block += (alignment - (uintptr_t)block % alignment) % alignment;
  *((Head *)block - 1) = (Head){mark, whole, size, 0};
  return block;
}

static Head *head_of(void *block) {
  Head *head = (Head *)block - 1;
  if (head->mark == mark) return head;
  static const char text[] = "freed by an allocator that has not given it\n";
  if (write(2, text, sizeof text - 1) < 0) abort();
  abort();
}

void *malloc(size_t size) { return give(32, size); }

void free(void *block) {
  if (block == NULL) return;
  const int before = errno;
  Head *head = head_of(block);
  head->mark = 0;
  __libc_free(head->whole);
  errno = before;
}

void *calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  void *block = give(32, bytes);
  return block ? memset(block, 0, bytes) : NULL;
}

void *realloc(void *block, size_t size) {
  void *larger = give(32, size);
  if (block == NULL || larger == NULL) return larger;
  const size_t before = head_of(block)->size;
  memcpy(larger, block, before < size ? before : size);
  free(block);
  return larger;
}

void *memalign(size_t alignment, size_t size) { return give(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return give(alignment, size); }
void *valloc(size_t size) { return give((size_t)sysconf(_SC_PAGESIZE), size); }
size_t malloc_usable_size(void *block) { return block ? head_of(block)->size : 0; }

int posix_memalign(void **block, size_t alignment, size_t size) {
  void *given = give(alignment, size);
  if (given == NULL) return ENOMEM;
  *block = given;
  return 0;
}
