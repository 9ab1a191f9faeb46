// SPDX-License-Identifier: Apache-2.0
// The body of run() is a lambda, which the compiler has put into a template of the runtime.
// clang-format off
//! status 139
//! says     #0  0x[0-9a-f]*  main::.*operator().* at .*in_body.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
long* volatile nowhere;
}

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == sojourn::rank_count() - 1) {
      return *faults::nowhere != 0 ? 3 : 4;  // here
    }
    sojourn::barrier();
    return 0;
  });
}
