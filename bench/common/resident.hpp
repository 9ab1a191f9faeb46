// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process has in use. Knows nothing of Sojourn, so that the peers can share
// it.
#pragma once

#include <fstream>
#include <string>

namespace bench {

/// Bytes in memory; of pages that several processes have, this one's share. 0 where the system does
/// not say.
inline double proportional_bytes() {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string word; lines >> word;) {
    double kibibytes = 0;
    if (word == "Pss:" && lines >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace bench
