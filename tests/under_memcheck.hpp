// SPDX-License-Identifier: Apache-2.0
// Whether this process runs under memcheck, which has limits of its own.
#pragma once

#include <cstdlib>
#include <cstring>

/// Valgrind preloads its part of the client, and says so in the client's environment.
inline bool under_memcheck() {
  const char* preloaded = std::getenv("LD_PRELOAD");
  return preloaded != nullptr && std::strstr(preloaded, "vgpreload_memcheck") != nullptr;
}
