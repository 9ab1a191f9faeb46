// SPDX-License-Identifier: Apache-2.0
// On two hosts, two ranks on each: what comes while a rank computes.
#include <sojourn/shared.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>

#include "check.hpp"

using namespace sojourn;

namespace {

/// A near rank rings for a page that has come by way of another host.
void a_rank_that_spins_on_a_word_sees_what_another_stores() {
  std::uintptr_t at = 0;
  if (rank_me() == 2)
    at = reinterpret_cast<std::uintptr_t>(shared::alloc<long>(1, shared::protocol::seq));
  auto* word = reinterpret_cast<volatile long*>(broadcast(at, 2));
  barrier();
  if (rank_me() == 0) {
    while (*word == 0) {
    }
  }
  if (rank_me() == 1) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < until) {
    }
    *word = 1;
  }
  barrier();
  CHECK_EQUAL(long{*word}, 1);
  barrier();
}

volatile std::sig_atomic_t taken_elsewhere = 0;
pid_t worker = 0;

void a_signal_that_the_rank_has_blocked_is_not_taken_by_another_thread() {
  worker = static_cast<pid_t>(syscall(SYS_gettid));
  std::signal(SIGUSR2, [](int) {
    if (syscall(SYS_gettid) != worker) taken_elsewhere = taken_elsewhere + 1;
  });
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &mine, nullptr);
  for (int i = 0; i < 20; ++i) {
    kill(getpid(), SIGUSR2);
    usleep(500);
  }
  CHECK_EQUAL(int{taken_elsewhere}, 0);
  pthread_sigmask(SIG_UNBLOCK, &mine, nullptr);
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a rank that spins on a word sees what another stores",
                 a_rank_that_spins_on_a_word_sees_what_another_stores);
    check::claim("a signal that the rank has blocked is not taken by another thread",
                 a_signal_that_the_rank_has_blocked_is_not_taken_by_another_thread);
    return check::verdict();
  });
}
