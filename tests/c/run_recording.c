/* SPDX-License-Identifier: MIT */
/* Run saved recordings as told, a command a line, and answer each with "ok" or a status and its text. For
 * tests/python/program_without_python.py, which writes the files of calls and says what is in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ftn_pytorch.h"
#include "is_mapped.h"

enum { MOST = 256, LINE = 16384 };

/* A file of a call in memory, and how far it was read. */
typedef struct {
  char *bytes, *next;
} content;

static void stop(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(2);
}

static content read_file(const char *path) {
  content made = {NULL, NULL};
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) stop("a file of a call cannot be read");
  const long size = ftell(file);
  rewind(file);
  made.bytes = made.next = malloc((size_t)size + 1);
  if (!made.bytes || fread(made.bytes, 1, (size_t)size, file) != (size_t)size) stop("a file of a call is too short");
  fclose(file);
  return made;
}

static int64_t number(content *from) {
  int64_t value;
  memcpy(&value, from->next, sizeof value);
  from->next += sizeof value;
  return value;
}

static void numbers(content *from, int64_t count, int64_t values[]) {
  for (int64_t i = 0; i < count; ++i) values[i] = number(from);
}

static const char *bytes(content *from, int64_t count) {
  const char *found = from->next;
  from->next += count;
  return found;
}

/* An argument: memory of a block, a scalar or a text. */
static void describe(content *from, char *blocks[], fpt_arg *arg) {
  int64_t extents[FPT_MAX_RANK], strides[FPT_MAX_RANK];
  const int64_t dtype = number(from), access = number(from), block = number(from);
  if (dtype == FPT_TEXT) {
    const int64_t length = number(from);
    fpt_arg_text(arg, bytes(from, length), length, FPT_IN);
  } else if (block < 0) {
    double value; /* aligned for all kinds */
    memcpy(&value, bytes(from, sizeof value), sizeof value);
    fpt_arg_array(arg, &value, (int32_t)dtype, 0, NULL, NULL, FPT_IN);
  } else {
    const int64_t offset = number(from), rank = number(from);
    numbers(from, rank, extents);
    numbers(from, rank, strides);
    /* a scalar that is described as an input is copied, one that goes by reference is not */
    fpt_arg_array(arg, blocks[block] + offset, (int32_t)dtype, (int32_t)rank, extents, strides, (int32_t)access);
  }
  const int64_t length = number(from);
  if (length > 0) fpt_arg_name(arg, bytes(from, length), length);
}

static void write_elements(FILE *file, const char *data, int64_t size, int64_t rank, const int64_t extents[],
                           const int64_t strides[]) {
  if (rank == 0) {
    fwrite(data, 1, (size_t)size, file);
    return;
  }
  for (int64_t i = 0; i < extents[rank - 1]; ++i)
    write_elements(file, data + i * strides[rank - 1], size, rank - 1, extents, strides);
}

/* A result that is wanted as an array, a scalar or a text of a type; its extents, and what is in it. */
static fpt_status write_result(content *from, fpt_results results, int32_t index, FILE *file) {
  int64_t extents[FPT_MAX_RANK], strides[FPT_MAX_RANK], length;
  const int64_t dtype = number(from), size = number(from), rank = number(from);
  fpt_status status;
  if (dtype == FPT_TEXT) {
    const char *text;
    if ((status = fpt_results_text(results, index, &text, &length)) != FPT_OK) return status;
    fwrite(text, 1, (size_t)length, file);
  } else if (rank < 0) {
    double value = 0; /* aligned for all kinds */
    fpt_arg output;
    fpt_arg_array(&output, &value, (int32_t)dtype, 0, NULL, NULL, FPT_OUT);
    if ((status = fpt_results_copy(results, index, &output, 0)) != FPT_OK) return status;
    fwrite(&value, 1, (size_t)size, file);
  } else {
    void *data;
    status = fpt_results_data(results, index, (int32_t)dtype, (int32_t)rank, &data, extents, strides);
    if (status != FPT_OK) return status;
    fwrite(extents, sizeof extents[0], (size_t)rank, file);
    write_elements(file, data, size, rank, extents, strides);
  }
  return FPT_OK;
}

/* What a file says, and into another one: the memory afterwards, and the results. */
static fpt_status call(fpt_module module, const char *name, const char *given, const char *found) {
  static fpt_arg args[MOST];
  char *blocks[MOST];
  int64_t sizes[MOST];
  fpt_results results = 0;
  content from = read_file(given);
  const int64_t count = number(&from);
  for (int64_t i = 0; i < count; ++i) {
    sizes[i] = number(&from);
    /* where torch would put it: kernels may add up in another order elsewhere */
    blocks[i] = aligned_alloc(64, ((size_t)sizes[i] / 64 + 1) * 64);
    if (!blocks[i]) stop("there is no memory for an argument");
    memcpy(blocks[i], bytes(&from, sizes[i]), (size_t)sizes[i]);
  }
  const int64_t inputs = number(&from);
  for (int64_t i = 0; i < inputs; ++i) describe(&from, blocks, &args[i]);
  fpt_status status = fpt_module_call(module, name, (int64_t)strlen(name), args, (int32_t)inputs, NULL, 0, &results);
  FILE *file = fopen(found, "wb");
  if (!file) stop("the file of a result cannot be written");
  if (status == FPT_OK) {
    int32_t there = 0;
    for (int64_t i = 0; i < count; ++i) fwrite(blocks[i], 1, (size_t)sizes[i], file);
    status = fpt_results_count(results, &there);
    const int64_t wanted = number(&from);
    if (status == FPT_OK && there != wanted) status = FPT_ERR_RESULT_COUNT;
    for (int32_t i = 1; i <= wanted && status == FPT_OK; ++i) status = write_result(&from, results, i, file);
  }
  fclose(file);
  for (int64_t i = 0; i < count; ++i) free(blocks[i]);
  free(from.bytes);
  fpt_results_free(results);
  return status;
}

static fpt_status obey(fpt_module *module, char *words[]) {
  const char *verb = words[0], *first = words[1];
  const int64_t length = (int64_t)strlen(first);
  if (strcmp(verb, "load") == 0) return fpt_module_load(module, 1, first, length, NULL, 0, NULL, 0);
  if (strcmp(verb, "restore") == 0) return fpt_module_restore(*module, first, length, 0, -1, NULL);
  if (strcmp(verb, "checkpoint") == 0) return fpt_module_checkpoint(*module, first, length, 1, 1);
  if (strcmp(verb, "save") == 0) return fpt_module_save(*module, first, length);
  if (strcmp(verb, "call") == 0) return call(*module, first, words[2], words[3]);
  if (strcmp(verb, "set") == 0) {
    fpt_arg args[2];
    fpt_results results = 0;
    double value = strtod(words[2], NULL);
    fpt_arg_text(&args[0], first, length, FPT_IN);
    fpt_arg_array(&args[1], &value, FPT_FLOAT64, 0, NULL, NULL, FPT_IN);
    const fpt_status status = fpt_module_call(*module, "ftn_pytorch_set", 15, args, 2, NULL, 0, &results);
    fpt_results_free(results);
    return status;
  }
  stop("a command that is not known");
  return FPT_ERR_INTERNAL;
}

int main(void) {
  static char line[LINE];
  fpt_module module = 0;
  while (fgets(line, sizeof line, stdin)) {
    char *words[4] = {"", "", "", ""};
    int count = 0;
    for (char *word = strtok(line, "\t\n"); word && count < 4; word = strtok(NULL, "\t\n")) words[count++] = word;
    if (strcmp(words[0], "python") == 0) {
      printf("%d\n", is_mapped("libpython"));
    } else if (obey(&module, words) == FPT_OK) {
      printf("ok\n");
    } else {
      const char *text;
      int64_t length;
      fpt_error_text(&text, &length);
      for (int64_t i = 0; i < length; ++i) putchar(text[i] == '\n' ? ' ' : text[i]);
      putchar('\n');
    }
    fflush(stdout);
  }
  fpt_module_free(module);
  return 0;
}
