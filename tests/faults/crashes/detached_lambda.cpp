// SPDX-License-Identifier: Apache-2.0
// An exception leaves a thread that is a lambda, that nobody joins, and that may have moved.
// clang-format off
//! status 134
//! says   an exception left a detached thread.*: int
//! several: says   an exception left a detached thread on rank LAST: int
//! says   thrown on rank LAST, youngest frame first:
//! says     #0  0x[0-9a-f]*  .*main.*operator().* at .*detached_lambda.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) {
      sojourn::spawn(
          [](int where) {
            sojourn::migrate(sojourn::self(), where);
            throw 5;  // here
          },
          sojourn::rank_count() - 1)
          .detach();
    }
    sojourn::barrier();
    sojourn::barrier();
  });
}
