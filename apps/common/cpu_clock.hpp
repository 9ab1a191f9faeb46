// SPDX-License-Identifier: Apache-2.0
// Processor time: what computing takes, however often others got the core meanwhile.
#pragma once

#include <ctime>

namespace apps {

/// Seconds that this thread has computed.
inline double cpu_seconds_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace apps
