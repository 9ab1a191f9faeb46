// SPDX-License-Identifier: Apache-2.0
// Programs that close all descriptors but their own, and block all signals, as daemons, test
// drivers and libraries with threads do: what the runtime needs stays.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "check.hpp"
#include "shared_cells.hpp"

using namespace sojourn;

namespace {

constexpr int some = 256;

/// Ranks that sleep are woken, also by those of other hosts.
void ranks_are_reached() {
  if (rank_me() == 0) {
    for (int r = 0; r < rank_count(); ++r) CHECK_EQUAL(rpc(r, [] { return rank_me(); }).get(), r);
  }
  barrier();
}

void all_goes_on() {
  pages_are_shared();
  ranks_are_reached();
}

std::vector<int> open_now() {
  std::vector<int> all;
  for (int d = 3; d < some; ++d) {
    if (fcntl(d, F_GETFD) >= 0) all.push_back(d);
  }
  return all;
}

void what_the_program_opened_can_be_closed() {
  for (int way = 0; way < 3; ++way) {
    const int own = dup(1);
    CHECK(own > 2);
    if (way == 0) CHECK_EQUAL(close(own), 0);
    if (way == 1) CHECK_EQUAL(close_range(static_cast<unsigned>(own), some, 0), 0);
    if (way == 2) closefrom(own);
    CHECK(fcntl(own, F_GETFD) < 0 && errno == EBADF);
    const int beyond = fcntl(1, F_DUPFD, some);
    closefrom(3);
    CHECK(fcntl(beyond, F_GETFD) < 0);
    all_goes_on();
  }
  CHECK(close(some) < 0 && errno == EBADF);
  CHECK(close_range(5, 4, 0) < 0 && errno == EINVAL);
  CHECK_EQUAL(close_range(3, ~0u, 0), 0);
  all_goes_on();
}

void what_the_runtime_opened_stays() {
  const std::vector<int> before = open_now();
  CHECK(!before.empty());
  for (int d = 3; d < some; ++d) close(d);
  CHECK(open_now() == before);
  all_goes_on();
  for (int d : before) {
    CHECK(dup2(1, d) < 0 && errno == EBUSY);
    CHECK(dup3(1, d, O_CLOEXEC) < 0 && errno == EBUSY);
  }
  all_goes_on();
  CHECK_EQUAL(dup2(1, some), some);
  CHECK_EQUAL(dup3(1, some, O_CLOEXEC), some);
  CHECK_EQUAL(close(some), 0);
}

void signals_that_are_blocked_do_not_end_shared_memory() {
  sigset_t all, before, now;
  sigfillset(&all);
  CHECK_EQUAL(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
  all_goes_on();
  CHECK_EQUAL(sigprocmask(SIG_SETMASK, nullptr, &now), 0);
  CHECK_EQUAL(sigismember(&now, SIGUSR1), 1);
  CHECK_EQUAL(sigismember(&now, SIGSEGV), 0);
  CHECK_EQUAL(sigprocmask(SIG_SETMASK, &before, nullptr), 0);
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, &all, nullptr), 0);
  all_goes_on();
  CHECK_EQUAL(pthread_sigmask(SIG_UNBLOCK, &all, nullptr), 0);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, nullptr, &now), 0);
  CHECK_EQUAL(sigismember(&now, SIGUSR1), 0);
  CHECK_EQUAL(pthread_sigmask(12345, &all, nullptr), EINVAL);
  CHECK(sigprocmask(12345, &all, nullptr) < 0 && errno == EINVAL);
  all_goes_on();
}

long* seen_by_handler;
long value_in_handler;

void handlers_that_block_all_may_load_shared_memory() {
  auto cell = broadcast(rank_me() == 0 ? shared::pointer<long>(shared::alloc<long>(1))
                                       : shared::pointer<long>());
  if (rank_me() == 0) *cell = 42;
  shared::barrier();
  seen_by_handler = &*cell;
  struct sigaction action{};
  action.sa_handler = [](int) { value_in_handler = *seen_by_handler; };
  sigfillset(&action.sa_mask);
  CHECK_EQUAL(sigaction(SIGUSR1, &action, nullptr), 0);
  CHECK_EQUAL(raise(SIGUSR1), 0);
  CHECK_EQUAL(value_in_handler, 42);
  shared::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    pages_are_shared();
    what_the_program_opened_can_be_closed();
    what_the_runtime_opened_stays();
    // What the sanitizer takes for itself: src/base/owned_signals.hpp.
    if (!sanitized) {
      signals_that_are_blocked_do_not_end_shared_memory();
      handlers_that_block_all_may_load_shared_memory();
    }
    return 0;
  });
}
