// SPDX-License-Identifier: Apache-2.0
#include "message/loop.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>

#include "base/check.hpp"
#include "fiber/block.hpp"
#include "fiber/forks.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/sleep.hpp"
#include "fiber/ticket_waits.hpp"
#include "fiber/timers.hpp"
#include "fiber/wait_clock.hpp"
#include "memory/address_map.hpp"
#include "memory/global_heap.hpp"
#include "message/bundle_table.hpp"
#include "message/bundles.hpp"
#include "message/dispatcher_state.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

constinit dispatcher_state dispatcher;
constinit dispatcher_hooks on_dispatch{};

namespace {

// How many ready pieces run between two polls.
constexpr int pieces_a_round = 32;
// How often a rank polls in vain before it counts as idle. If each rank has a core, these polls
// take longer than some round trips, so that a rank that waits for an answer is not idle. If not,
// they are fewer than the polls a rank makes before it gives its core to others.
constexpr unsigned looks_until_idle = 512;
constexpr unsigned looks_until_idle_when_crowded = 16;
// After so many rounds in a row in which fibers only gave their turns, a rank gives its core away:
// what the fibers look for cannot come from a rank that waits for the same core.
constexpr unsigned polling_rounds_most = 16;
// While fibers sleep and there is work, the clock is read once in so many rounds, or replies taken
// in place; a power of two.
constexpr unsigned rounds_a_look_at_the_clock = 16;

/// A rank that falls asleep counts as idle, even if it has polled fewer times than that: it may
/// sleep without having given its core away before.
void around_sleep(bool falls_asleep) {
  if (falls_asleep && dispatcher.looks_in_vain < dispatcher.looks_until_idle) {
    dispatcher.looks_in_vain = dispatcher.looks_until_idle;
    on_dispatch.when_idle(true);
  }
  on_dispatch.around_sleep(falls_asleep);
}

bool posts_wait() {
  return (dispatcher.round_calls.load(std::memory_order_relaxed) & dispatcher_state::posts_wait) !=
         0;
}

bool someone_can_send() {
  if (++dispatcher.looks_in_vain == dispatcher.looks_until_idle) on_dispatch.when_idle(true);
  if (has_new_loss() || posts_wait()) return true;
  if (dispatcher.waiting_senders == 0 && dispatcher.waiting_replies == 0) return false;
  return sender_can_go();
}

/// True when the time of a sleeper has come. Does not read the clock at every call.
[[gnu::noinline]] bool look_for_sleepers() {
  if (++dispatcher.rounds_with_sleepers % rounds_a_look_at_the_clock == 0 &&
      now_ns() >= next_timer_ns) {
    dispatcher.sleepers_are_due = true;
  }
  return dispatcher.sleepers_are_due;
}

int wake_sleepers(bool idle) {
  if (!idle && !look_for_sleepers()) return 0;
  dispatcher.sleepers_are_due = false;
  return wake_due(now_ns());
}

}  // namespace

active_transport& wire() { return *dispatcher.transport; }

void attach_dispatcher(std::byte* transport_memory, int rank, int ranks, int cores,
                       const shm::several_hosts* hosts) {
  void* room = runtime_memory(sizeof(active_transport));
  dispatcher.transport =
      ::new (room) active_transport(transport_memory, rank, ranks, cores, 0, hosts);
  dispatcher.transport->place_replies(on_dispatch.place_of_reply);
  dispatcher.looks_until_idle =
      dispatcher.transport->spins_for_replies() ? looks_until_idle : looks_until_idle_when_crowded;
  dispatcher.own.attach(rank, dispatcher.transport->payload_max());
  dispatcher.peers = runtime_array<peer>(static_cast<std::size_t>(ranks));
  dispatcher.ranks = ranks;
  dispatcher.bed = sleepers(transport_memory);
  attach_inbound();
}

namespace {

/// Makes the calls that call_each_round() and call_next_round() have asked for, and takes posted
/// functions.
int call_in_round(unsigned calls, bool idle) {
  int did = 0;
  if ((calls & dispatcher_state::posts_wait) != 0) {
    dispatcher.round_calls.fetch_and(~dispatcher_state::posts_wait);
    did = dispatcher.posts.take();
  }
  if ((calls & dispatcher_state::next_round) != 0) {
    // Cleared before the call, which may ask for another round.
    dispatcher.round_calls.fetch_and(~dispatcher_state::next_round);
    on_dispatch.next_round(idle);
  }
  if ((calls & dispatcher_state::each_round) != 0) did += on_dispatch.each_round(idle);
  return did;
}

/// To be called at the end of a round. `did`: how much was done in it; `turns`: how often fibers
/// gave their turns in it.
inline void note_round(int did, std::uint64_t turns) {
  if (static_cast<std::uint64_t>(did) != turns) {
    dispatcher.polling_rounds = 0;
  } else if (++dispatcher.polling_rounds >= polling_rounds_most) {
    dispatcher.polling_rounds = 0;
    dispatcher.transport->give_core_away();
  }
}

/// `Delayed`: SOJOURN_DELAY is on.
template <bool Delayed>
void dispatch(bool (*done)()) {
  for (;;) {
    const bool is_loss_noted = has_new_loss();
    if (is_loss_noted) [[unlikely]]
      note_losses();
    const std::uint64_t turns_before = counts.yields;
    // Messages come first, because this rank has just been waiting for them.
    int did = dispatcher.transport->poll(anything_ready() ? deliver_all : deliver, nullptr,
                                         messages_a_round);
    // All messages of the lost ranks have been read. Not delayed until no fiber is ready: a fiber
    // may yield until a result of such a rank is here.
    if (is_loss_noted && did == 0) [[unlikely]]
      meet_losses();
    if (!dispatcher.own.empty()) {
      if (Delayed && dispatcher.transport->holds_own()) {
        ++did;  // the loop goes round until the time of its own message has come
      } else {
        did += deliver_own();
        if (Delayed) dispatcher.transport->own_passed();
      }
    }
    did += run_what_is_here(pieces_a_round);
    did += retry_senders();
    wait_times.end_round();
    if (bundles_waiting != 0) [[unlikely]]
      did += send_due_bundles(did == 0 && !anything_ready());
    if (next_timer_ns != never_ns) [[unlikely]]
      did += wake_sleepers(did == 0);
    if (const unsigned calls = dispatcher.round_calls.load(std::memory_order_relaxed); calls != 0)
        [[unlikely]]
      did += call_in_round(calls, did == 0 && !anything_ready());
    if (did > 0 || anything_ready()) {
      note_round(did, counts.yields - turns_before);
      continue;
    }
    if (done()) return;
    if (posted.first != nullptr || anything_ready()) continue;
    if (dispatcher.transport->spins_for_replies() && wake_to_stand_by()) continue;
    dispatcher.looks_in_vain = 0;
    if (heap_bytes_kept != 0) [[unlikely]]
      trim_heap();
    dispatcher.transport->wait(someone_can_send, around_sleep, next_timer_ns);
    if (dispatcher.looks_in_vain >= dispatcher.looks_until_idle) on_dispatch.when_idle(false);
  }
}

}  // namespace

void dispatch_until(bool (*done)()) {
  dispatcher.transport->delays_messages() ? dispatch<true>(done) : dispatch<false>(done);
}

bool take_reply_in_place(int rank) {
  if (anything_ready() || !dispatcher_idle() || someone_goes_on_if_blocked()) return false;
  // The copies in which its methods run are made new when it goes on.
  if (on_fiber.copies.any_is_old && running.holds != nullptr) [[unlikely]]
    return false;
  // Fibers whose time has come get their turn, however fast replies come.
  if (next_timer_ns != never_ns && look_for_sleepers()) [[unlikely]]
    return false;
  return dispatcher.transport->poll_reply(rank, deliver, nullptr);
}

void take_replies_until(bool (*over)(void* context), void* context) {
  constexpr int spins = 2000;
  constexpr int yields = 200;
  constexpr long shortest_sleep_ns = 20'000;
  constexpr long longest_sleep_ns = 1'000'000;
  long sleep_ns = shortest_sleep_ns;
  const int at_first = dispatcher.transport->spins_for_replies() ? 0 : spins;
  for (int in_vain = at_first; !over(context);) {
    // The question for whose answer this waits may itself still wait for room.
    for (int to = 0; dispatcher.waiting_replies != 0 && to < job.count; ++to)
      (void)send_late_replies(to);
    if (dispatcher.transport->poll_replies(deliver_all, nullptr, messages_a_round,
                                           transport::any_handler) != 0) {
      in_vain = at_first;
      sleep_ns = shortest_sleep_ns;
    } else if (++in_vain < spins) {
      continue;
    } else if (in_vain < spins + yields) {
      sched_yield();
    } else {
      // Not transport::wait, which returns at once if a request has arrived: requests must wait
      // here.
      const timespec time{0, sleep_ns};
      nanosleep(&time, nullptr);
      sleep_ns = std::min(2 * sleep_ns, longest_sleep_ns);
    }
  }
}

void take_replies_about_shared_memory(interrupted what) {
  const auto half_written = dispatcher.transport->set_aside();
  dispatcher.transport->enter_handler(what);
  (void)dispatcher.transport->poll_replies(deliver_all, nullptr, messages_a_round,
                                           static_cast<int>(runtime_message::shared_memory));
  dispatcher.transport->enter_handler(interrupted::nothing);
  dispatcher.transport->take_up(half_written);
}

traffic traffic_so_far() { return dispatcher.moved; }
traffic collective_traffic_so_far() { return dispatcher.moved_collective; }

void call_each_round() { dispatcher.round_calls.fetch_or(dispatcher_state::each_round); }

void call_next_round() { dispatcher.round_calls.fetch_or(dispatcher_state::next_round); }

bool takes_posts() { return dispatcher.posts.take != nullptr; }
void open_posts() {
  if (takes_posts()) dispatcher.posts.open();
}
int close_posts() { return takes_posts() ? dispatcher.posts.close() : 0; }

bool waits_for_room() { return dispatcher.waiting_senders != 0 || dispatcher.waiting_replies != 0; }

bool dispatcher_idle() {
  return posted.first == nullptr && first_shut_out == nullptr && shut_out_tasks.first == nullptr &&
         dispatcher.waiting_senders == 0 && dispatcher.waiting_replies == 0 &&
         dispatcher.own.empty() && !posts_wait();
}

}  // namespace sojourn::detail

namespace sojourn {

void yield() { detail::give_turn_to_any(); }

}  // namespace sojourn
