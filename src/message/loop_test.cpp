// SPDX-License-Identifier: Apache-2.0
#include "message/loop.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>

#include "base/clock.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/timers.hpp"
#include "memory/region_test.hpp"
#include "message/dispatcher.hpp"
#include "transport/sleepers.hpp"

namespace {

using namespace sojourn::detail;

constexpr std::uint64_t hour_ns = 3'600'000'000'000;

std::string calls;
int sleeps_left = 0;

/// A job of this rank alone, without a core of its own: so it looks for no tickets.
void attach_alone() {
  map_as(0, 4 * gib, 1);
  void* memory = mmap(nullptr, transport_bytes(1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CLAIM(memory != MAP_FAILED);
  attach_dispatcher(static_cast<std::byte*>(memory), 0, 1, 0);
  wire().begin();
  on_dispatch.each_round = [](bool) {
    calls.push_back('e');
    return 0;
  };
  on_dispatch.next_round = [](bool) { calls.push_back('n'); };
}
/// Goes round once, and once more after each of so many sleeps. They last until a time for which
/// the test's clock does not wait, and at which nobody is woken.
void go_round(int sleeps) {
  calls.clear();
  sleeps_left = sleeps;
  dispatch_until([] {
    next_timer_ns = sojourn::now_ns() + 1;
    return --sleeps_left < 0;
  });
}

void calls_what_was_asked_for() {
  attach_alone();
  const test_clock clock(1000);
  go_round(3);
  CLAIM(calls.empty());
  // Once, however often it was asked for.
  call_next_round();
  call_next_round();
  go_round(3);
  CLAIM(calls == "n");
  call_each_round();
  go_round(2);
  CLAIM(calls == "eee");
  call_next_round();
  go_round(2);
  CLAIM(calls == "neee");
  // What is called may ask for the next round.
  on_dispatch.next_round = [](bool) {
    calls.push_back('n');
    if (calls.size() < 4) call_next_round();
  };
  call_next_round();
  go_round(3);
  CLAIM(calls == "nenenee");
}

TEST(loop, calls_what_was_asked_for_once_or_each_round) { EXPECT_CLAIMS(calls_what_was_asked_for); }

void sleeps_until_times() {
  attach_alone();
  const test_clock clock(1000);
  static int sleeps = 0;
  on_dispatch.around_sleep = [](bool falls_asleep) { sleeps += falls_asleep; };
  next_timer_ns = 1000 + hour_ns;
  dispatch_until([] { return sojourn::now_ns() >= 1000 + hour_ns; });
  CLAIM(sleeps == 1);
}

TEST(loop, sleeps_until_the_next_time) { EXPECT_CLAIMS(sleeps_until_times); }

}  // namespace
