// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/check.hpp"
#include "sojourn/detail/times.hpp"

namespace sojourn {

namespace detail {

std::uint64_t clock_ahead_ns = 0;

namespace {

constexpr std::uint64_t ns_a_second = 1'000'000'000;

/// The time of a test_clock, and whether there is one. Atomic, as other threads may read the clock.
std::atomic<std::uint64_t> test_time = 0;
std::atomic<bool> is_replaced = false;

bool replaced() { return is_replaced.load(std::memory_order_relaxed); }

timespec span_of(std::uint64_t ns) {
  return {static_cast<time_t>(ns / ns_a_second), static_cast<long>(ns % ns_a_second)};
}

}  // namespace

bool sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t deadline_ns) {
  long slept;
  if (deadline_ns == never_ns) {
    slept = syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
  } else if (replaced()) {
    if (word.load() != value) return false;
    if (deadline_ns > test_time) test_time = deadline_ns;
    return true;
  } else {
    // Unlike FUTEX_WAIT, this call takes a time of the monotonic clock, not a span.
    const timespec deadline = span_of(deadline_ns - clock_ahead_ns);
    slept = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, &deadline, nullptr,
                    FUTEX_BITSET_MATCH_ANY);
  }
  if (slept == 0 || errno == EAGAIN || errno == EINTR) return false;
  if (errno != ETIMEDOUT) die("futex: %s", std::strerror(errno));
  return true;
}

void wake_sleeper_on(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

bool sleep_on(std::span<pollfd> descriptors, std::uint64_t deadline_ns) {
  timespec span{};
  const timespec* at_most = nullptr;
  if (deadline_ns != never_ns && !replaced()) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return true;
    span = span_of(deadline_ns - now);
  }
  if (deadline_ns != never_ns) at_most = &span;
  const int found = ppoll(descriptors.data(), descriptors.size(), at_most, nullptr);
  if (found < 0 && errno != EINTR && errno != EAGAIN) die("poll: %s", std::strerror(errno));
  if (found != 0 || deadline_ns == never_ns) return false;
  if (replaced() && deadline_ns > test_time) test_time = deadline_ns;
  return now_ns() >= deadline_ns;
}

namespace {

struct moment {
  std::uint64_t ticks;
  std::uint64_t ns;
};

/// Reads both clocks at the same time: of several readings, takes the one in which the least time
/// passed.
moment both_clocks() {
  moment best{};
  std::uint64_t shortest = never_ns;
  for (int i = 0; i < 8; ++i) {
    timespec t;
    const std::uint64_t before = ticks();
    clock_gettime(CLOCK_MONOTONIC, &t);
    const std::uint64_t passed = ticks() - before;
    if (passed >= shortest) continue;
    shortest = passed;
    best = {before + passed / 2, static_cast<std::uint64_t>(t.tv_sec) * ns_a_second +
                                     static_cast<std::uint64_t>(t.tv_nsec)};
  }
  return best;
}

}  // namespace

tick_clock::tick_clock() {
  constexpr std::uint64_t span_ns = 200'000;
  const moment begin = both_clocks();
  moment end;
  do end = both_clocks();
  while (end.ns - begin.ns < span_ns || end.ticks <= begin.ticks);
  ns_per_tick_ = static_cast<std::uint64_t>((static_cast<unsigned_128>(end.ns - begin.ns) << 32) /
                                            (end.ticks - begin.ticks));
}

test_clock::test_clock(std::uint64_t start_ns) {
  SOJOURN_CHECK(!is_replaced, "there is a test clock already");
  test_time = start_ns;
  is_replaced = true;
}
test_clock::~test_clock() { is_replaced = false; }

void test_clock::advance(std::uint64_t ns) { test_time += ns; }

std::uint64_t ns_from_now(double about_ns, std::int64_t exact_ns) {
  if (about_ns <= 0) return 0;
  std::uint64_t now = now_ns();
  return about_ns + static_cast<double>(now) >= 9e18 ? never_ns
                                                     : now + static_cast<std::uint64_t>(exact_ns);
}

}  // namespace detail

std::uint64_t now_ns() {
  if (detail::replaced()) [[unlikely]]
    return detail::test_time;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * detail::ns_a_second +
         static_cast<std::uint64_t>(t.tv_nsec) + detail::clock_ahead_ns;
}

}  // namespace sojourn
