// SPDX-License-Identifier: Apache-2.0
// The body of run() and what it gives to rpc are lambdas: their lines are known as others' are, and
// one that the compiler has put into a template of the runtime is named alone.
// clang-format off
//! status 139
//! says     #0  0x[0-9a-f]*  main::.*operator().* at .*in_lambda.cpp:LINE
//! says   a call by rank 0, of main::.*lambda.*
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
long* volatile nowhere;
}

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) {
      sojourn::rpc(
          sojourn::rank_count() - 1,
          [](long n) {
            return *faults::nowhere + n;  // here
          },
          5L)
          .get();
    }
    sojourn::barrier();
  });
}
