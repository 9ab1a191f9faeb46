// SPDX-License-Identifier: Apache-2.0
// Programs that close all descriptors but their own, and block all signals, as daemons, test
// drivers and libraries with threads do: what the runtime needs stays.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
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

/// Those that no test driver passes on: of memory, and of what the kernel makes for a process.
std::vector<int> opened_by_runtime() {
  std::vector<int> all;
  for (int d : open_now()) {
    char target[64] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(d);
    if (readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
    const std::string_view what(target);
    if (what.starts_with("anon_inode:") || what.starts_with("/memfd:")) all.push_back(d);
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

void what_the_runtime_opened_stays(const std::vector<int>& before) {
  CHECK(!before.empty());
  for (int d = 3; d < some; ++d) close(d);
  CHECK(opened_by_runtime() == before);
  all_goes_on();
  for (int d : before) {
    CHECK(dup2(1, d) < 0 && errno == EBADF);
    CHECK(dup3(1, d, O_CLOEXEC) < 0 && errno == EBADF);
  }
  all_goes_on();
  // More than has been mapped at first.
  constexpr std::size_t words = std::size_t{160} << 17;
  auto much = broadcast(rank_me() == 0 ? shared::pointer<long>(shared::alloc<long>(words))
                                       : shared::pointer<long>());
  if (rank_me() == rank_count() - 1) much[words - 1] = 7;
  shared::barrier();
  CHECK_EQUAL(much[words - 1], 7);
  shared::barrier();
  CHECK_EQUAL(dup2(1, some), some);
  CHECK_EQUAL(dup3(1, some, O_CLOEXEC), some);
  CHECK_EQUAL(close(some), 0);
}

/// In a child, which must leave the frames of its parent alone.
[[noreturn, gnu::noinline]] void replace_and_close(const std::vector<int>& all) {
  for (int d : all) {
    if (dup2(1, d) != d || close(d) != 0) _exit(1);
  }
  _exit(0);
}

/// A process that the rank makes may close and replace whatever it has.
void children_have_descriptors_of_their_own(const std::vector<int>& of_runtime) {
  for (const auto make : {fork, vfork}) {
    const pid_t child = make();
    if (child == 0) replace_and_close(of_runtime);
    int status = -1;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
  }
  CHECK(opened_by_runtime() == of_runtime);
  all_goes_on();
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

void handle(int signal) {
  struct sigaction action{};
  action.sa_handler = [](int) { value_in_handler = *seen_by_handler; };
  sigfillset(&action.sa_mask);
  CHECK_EQUAL(sigaction(signal, &action, nullptr), 0);
}

/// Of the two signals, the first has had its handler since before run().
void handlers_that_block_all_may_load_shared_memory() {
  handle(SIGUSR2);
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    auto cell = broadcast(rank_me() == 0 ? shared::pointer<long>(shared::alloc<long>(1))
                                         : shared::pointer<long>());
    if (rank_me() == 0) *cell = signal;
    shared::barrier();
    seen_by_handler = &*cell;
    CHECK_EQUAL(raise(signal), 0);
    CHECK_EQUAL(value_in_handler, signal);
    shared::barrier();
  }
}

}  // namespace

int main(int argc, char** argv) {
  handle(SIGUSR1);
  return run(argc, argv, [] {
    pages_are_shared();
    const std::vector<int> of_runtime = opened_by_runtime();
    what_the_program_opened_can_be_closed();
    what_the_runtime_opened_stays(of_runtime);
    children_have_descriptors_of_their_own(of_runtime);
    // What the sanitizer takes for itself: src/base/owned_signals.hpp.
    if (!sanitized) {
      signals_that_are_blocked_do_not_end_shared_memory();
      handlers_that_block_all_may_load_shared_memory();
    }
    return 0;
  });
}
