// SPDX-License-Identifier: Apache-2.0
// An exception leaves a one-way call, whose caller does not wait.
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_exception_handler) was killed by SIGABRT (aborted)
//! says   an exception left a one-way call (rpc_ff) outside of any finish: std::out_of_range: no such page
//! says   thrown on rank LAST, youngest frame first:
//! says     #0  0x[0-9a-f]*  .*main.* at .*exception_handler.cpp:[0-9]*
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
