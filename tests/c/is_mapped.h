/* SPDX-License-Identifier: MIT */
/* Whether a file whose name contains a text is in this process (Linux). */
#ifndef IS_MAPPED_H
#define IS_MAPPED_H

#include <stdio.h>
#include <string.h>

static int is_mapped(const char *name) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) found = found || strstr(line, name);
  if (maps) fclose(maps);
  return found;
}

#endif
