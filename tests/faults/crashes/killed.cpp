// SPDX-License-Identifier: Apache-2.0
// SIGKILL, as by the kernel when memory runs out: the process itself can say nothing.
// clang-format off
//! status 137
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_killed) was killed by SIGKILL (killed)
//! says   no process can tell who sends SIGKILL: kill -9, or the system, which does so when memory runs out (see dmesg)
// clang-format on
#include <sojourn/sojourn.hpp>

#include <csignal>

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == sojourn::rank_count() - 1) std::raise(SIGKILL);
    sojourn::barrier();
  });
}
