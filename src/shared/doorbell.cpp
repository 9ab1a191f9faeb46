// SPDX-License-Identifier: Apache-2.0
#include "shared/doorbell.hpp"

#include <algorithm>
#include <cstddef>

#include "base/loaded_libraries.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/timers.hpp"
#include "frames/code_owner.hpp"
#include "frames/walk.hpp"
#include "memory/address_map.hpp"
#include "memory/runtime_resource.hpp"
#include "memory/stack_slots.hpp"
#include "message/loop.hpp"
#include "shared/shared_settings.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/waiting/clock.hpp"
#include "transport/neighbours.hpp"

namespace sojourn::detail::pages {

namespace {

/// The program allocates memory by the C library's functions, and has none of its own.
bool program_calls_malloc = false;

/// No call of the runtime into libraries is this many frames deep.
constexpr int frames_of_libraries = 64;

}  // namespace

bool is_in_program_without_malloc(const void* context) {
  return program_calls_malloc && is_in_program(interrupted_at(context).pc);
}

void prepare_doorbell() {
  const auto allocator = reinterpret_cast<std::uint64_t>(address_for_libraries("malloc"));
  program_calls_malloc = allocator != 0 && !is_in_program(allocator);
  learn_code_owners();
}

bool interrupts_user_code(const void* context) {
  const piece* p = running_piece();
  if (p == nullptr || !knows_code_owners()) return false;
  const code_position at = interrupted_at(context);
  if (at.sp < slots.low(p->slot) + stack_slots::guard_bytes || at.sp >= p->hi) return false;
  struct {
    std::uint64_t hi;
    int frames = 0;
    bool is_users = false;
  } seen{p->hi};
  // Walks up to the first frame that tells whose code was interrupted: a frame of the runtime, or
  // one that calls the program, such as the oldest frame of the piece.
  const bool is_whole = walk_frames_carefully(
      {at.pc},
      [](const walked_frame& frame, void* data) {
        auto& s = *static_cast<decltype(seen)*>(data);
        // The last frame of the piece: two words may lie between its end and frames that are
        // elsewhere.
        const bool is_last = frame.low + 16 >= s.hi;
        const code_owner owner = is_last ? code_owner::calls_program : owner_in_signal(frame.code);
        const bool is_runtimes = owner == code_owner::runtime;
        if (s.frames++ == 0) return !is_runtimes && owner != code_owner::calls_program;
        s.is_users =
            owner == code_owner::calls_program || (!is_runtimes && s.frames > frames_of_libraries);
        return !is_runtimes && !s.is_users;
      },
      &seen);
  return is_whole && seen.is_users;
}

// --- Ringing

namespace {

constexpr std::uint64_t longest_pause_ns = 1'000'000;
ringer* ringer_of_rank = nullptr;

}  // namespace

ringer::ringer(const tick_clock& clock)
    : clock_(clock), was_sent_(runtime_array<bool>(static_cast<std::size_t>(job.count))) {
  ringer_of_rank = this;
}

void ringer::begin_wait() {
  // A new question is rung for soon, even if other fibers have waited so long for their answers
  // that the pauses have become long.
  const bool asks_anew = std::exchange(was_asked_, false) && rang_;
  if (waiting_++ != 0 && is_set_ && !asks_anew) return;
  since_ns_ = clock_.ns();
  // Not before the question can have arrived.
  again_after_ns_ = settings().bell_after_ns + wire().way_ns();
  rang_ = false;
  // An alarm that was set for an earlier wait is kept: when it goes off, look() finds that it is
  // too early, and sets another.
  if (is_set_ && !asks_anew) return;
  is_set_ = true;
  set_alarm(now_ns() + again_after_ns_, on_alarm);
}

void ringer::end_wait() {
  if (--waiting_ == 0) std::fill_n(was_sent_, job.count, false);
}

void ringer::on_alarm() {
  ringer_of_rank->is_set_ = false;
  ringer_of_rank->look();
}

void ringer::look() {
  if (waiting_ == 0) {
    is_set_ = false;
    return;
  }
  std::uint64_t waited_ns = clock_.since(since_ns_);
  if (waited_ns < again_after_ns_ && is_set_) return;
  is_set_ = false;
  if (waited_ns >= again_after_ns_) {
    // The rank that was asked may have passed the question on, so from the second time on this
    // rings at all ranks. If none of them had to be interrupted, all of them sleep: they have read
    // everything, and ringing again would be of no use.
    const bool anybody = ring_at(rang_);
    if (rang_ && !anybody) return;
    rang_ = true;
    since_ns_ = clock_.ns();
    waited_ns = 0;
    again_after_ns_ = std::min(2 * again_after_ns_, longest_pause_ns);
  }
  is_set_ = true;
  set_alarm(now_ns() + again_after_ns_ - waited_ns, on_alarm);
}

bool ringer::ring_at(bool all) {
  bool anybody = false;
  for (int r = 0; r < job.count; ++r) {
    if (r == job.me || !(all || was_sent_[r]) || !near_ranks().include(r)) continue;
    anybody = near_ranks().interrupt(r) || anybody;
  }
  return anybody;
}

}  // namespace sojourn::detail::pages
