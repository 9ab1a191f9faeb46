// SPDX-License-Identifier: Apache-2.0
// How much memory of this process the system has given it.
#pragma once

#include <unistd.h>

#include <cstdio>

inline long resident_kib() {
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  long pages = 0;
  long resident = 0;
  if (f == nullptr || std::fscanf(f, "%ld %ld", &pages, &resident) != 2) return 0;
  std::fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}
