// SPDX-License-Identifier: Apache-2.0
#include "message/loop.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/timers.hpp"
#include "memory/region_test.hpp"
#include "memory/stack_slots.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/losses.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/threads/thread.hpp"
#include "sojourn/waiting/post.hpp"
#include "transport/neighbours.hpp"
#include "transport/sleepers.hpp"

namespace {
int cores_given_away = 0;
}

/// Takes the place of the system's function.
extern "C" int sched_yield() noexcept {
  ++cores_given_away;
  return 0;
}

namespace {

using namespace sojourn::detail;

constexpr std::uint64_t hour_ns = 3'600'000'000'000;

std::string calls;
int sleeps_left = 0;

/// A job of this rank alone. Without a core of its own it looks for no tickets.
void attach_alone(int cores = 0) {
  map_as(0, 4 * gib, 1);
  void* memory = mmap(nullptr, transport_bytes(1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CLAIM(memory != MAP_FAILED);
  attach_dispatcher(static_cast<std::byte*>(memory), 0, 1, cores);
  wire().begin();
  on_dispatch.each_round = [](bool) {
    calls.push_back('e');
    return 0;
  };
  on_dispatch.next_round = [](bool) { calls.push_back('n'); };
}
/// Goes round once, and once more after each of `sleeps` sleeps. A sleep lasts until a time for
/// which the test's clock does not wait, and at which no fiber is woken.
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
  // Called once, however often a call was asked for.
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
  // The function that is called may ask for another call in the next round.
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

piece* no_watch() { return nullptr; }

/// Gives the turn `turns` times, when no other fiber is there to take it.
void gives_turns(int turns, int cores) {
  attach_alone(cores);
  slots.attach(0, no_watch);
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  attach_scheduler(here - (1 << 20), here + (64 << 10));
  static int left = 0;
  left = turns;
  static task polls{[](task*) {
                      while (left-- > 0) sojourn::yield();
                    },
                    nullptr};
  post_task(&polls);
  cores_given_away = 0;
  dispatch_until([] { return true; });
  CLAIM(left < 0);
}

void gives_its_core_away() {
  gives_turns(170, 0);
  CLAIM(cores_given_away == 10);
}
void keeps_its_core() {
  gives_turns(170, 1);
  CLAIM(cores_given_away == 0);
}

TEST(loop, gives_its_core_away_while_fibers_only_poll_where_ranks_share_one) {
  EXPECT_CLAIMS(gives_its_core_away);
  EXPECT_CLAIMS(keeps_its_core);
}

void posts_that_come_too_late_are_counted() {
  attach_alone(1);
  open_posts();
  static int ran = 0;
  const auto held = std::make_shared<int>(0);
  for (int i = 0; i < 3; ++i) sojourn::post([held] { ++ran; });
  CLAIM(held.use_count() == 4);
  CLAIM(close_posts() == 3);
  CLAIM(held.use_count() == 1);
  CLAIM(ran == 0);
  bool refused = false;
  try {
    sojourn::post([] { ++ran; });
  } catch (const sojourn::error&) {
    refused = true;
  }
  CLAIM(refused);
}

TEST(loop, posts_that_come_too_late_are_counted) {
  EXPECT_CLAIMS(posts_that_come_too_late_are_counted);
}

/// Of a job of three ranks, of which the test says who is lost.
class fake_neighbours final : public neighbours {
 public:
  bool include(int) const override { return true; }
  counts_page& counts_of(int) const override { std::abort(); }
  const std::atomic<std::uint32_t>& losses() const override { return losses_; }
  bool lost(int rank) const override { return lost_[static_cast<std::size_t>(rank)]; }
  bool nothing_can_happen() const override { return false; }
  bool interrupt(int) const override { return false; }

  void lose(int rank) {
    lost_[static_cast<std::size_t>(rank)] = true;
    ++losses_;
  }

 private:
  std::array<bool, 3> lost_{};
  std::atomic<std::uint32_t> losses_ = 0;
};

/// Rank 2 says its last word and ends while rank 0 meets the loss of rank 1.
void reads_last_words_of_each_loss() {
  map_as(0, 4 * gib, 3);
  void* memory = mmap(nullptr, transport_bytes(3), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CLAIM(memory != MAP_FAILED);
  static active_transport second(static_cast<std::byte*>(memory), 2, 3, 0);
  attach_dispatcher(static_cast<std::byte*>(memory), 0, 3, 0);
  wire().begin();
  static fake_neighbours near;
  attach_neighbours(near);
  attach_losses();
  on_message(runtime_message::kept_ended, [](arrival& a) {
    wire().consume(a);
    calls += "word ";
  });
  on_dispatch.fail_waits = [](int rank) {
    calls += std::to_string(rank) + " ";
    if (rank != 1) return;
    CLAIM(second.reserve(0, message_class::reply, 0) != nullptr);
    second.commit(0, message_class::reply, static_cast<std::uint16_t>(runtime_message::kept_ended),
                  0, 0);
    near.lose(2);
  };
  near.lose(1);
  dispatch_until([] { return is_lost(2); });
  CLAIM(calls == "1 word 2 ");
}

TEST(loop, reads_the_last_words_of_each_rank_that_is_lost) {
  EXPECT_CLAIMS(reads_last_words_of_each_loss);
}

TEST(loop, sleeps_until_the_next_time) { EXPECT_CLAIMS(sleeps_until_times); }

}  // namespace
