// SPDX-License-Identifier: Apache-2.0
// Adds up the processor time of pieces of work, which is theirs also where ranks share a core.
#pragma once

#include <time.h>

namespace apps {

class cpu_meter {
 public:
  /// Requires: `work` does not wait, for what runs meanwhile would be counted too.
  template <class Work>
  void add(Work work) {
    const double start = now();
    work();
    seconds_ += now() - start;
  }
  double seconds() const { return seconds_; }

 private:
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }
  double seconds_ = 0;
};

}  // namespace apps
