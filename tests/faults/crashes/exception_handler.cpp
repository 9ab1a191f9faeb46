// SPDX-License-Identifier: Apache-2.0
// An exception leaves a one-way call, whose caller does not wait.
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_exception_handler) was killed by SIGABRT (aborted)
//! says   an exception left a one-way call (rpc_ff) outside of any finish: no such page
//! says   a call by rank 0, of .*main.*
// clang-format on
#include <sojourn/sojourn.hpp>

#include <stdexcept>

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) {
      sojourn::rpc_ff(sojourn::rank_count() - 1, [] { throw std::out_of_range("no such page"); });
    }
    sojourn::barrier();
    sojourn::barrier();
  });
}
